package replay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// A replay address begins with the site of the page that loads it, its owner, and a seal for the
// site that is loaded. A script can read its own seals and leak them, so a seal opens nothing but
// one site to another one, as of one time. Other sites are served to a page as on the live web: to
// be shown or run, but not to be read.

// ownerLen is the length in bytes of the name of a site in an address, and sealLen that of a seal.
const ownerLen, sealLen = 8, 16

// siteOf returns the host and port of a URL. http and https are one site, because the archive lets
// either stand in for the other.
func siteOf(u weburl.URL) string { return u.Host + ":" + u.Port }

// owner returns the name of the site of a page.
func (v *Handler) owner(u weburl.URL) string { return v.sum(ownerLen, "site", siteOf(u)) }

// seal returns the seal with which a page of the owner loads what is at a place.
func (v *Handler) seal(owner string, p place) string {
	return v.sum(sealLen, "seal", owner+" "+formatMoment(p.moment)+" "+siteOf(p.url))
}

// permits reports whether a seal is the right one.
func (v *Handler) permits(owner, seal string, p place) bool {
	return hmac.Equal([]byte(seal), []byte(v.seal(owner, p)))
}

// sum returns n bytes of a keyed digest in hexadecimal.
func (v *Handler) sum(n int, purpose, text string) string {
	h := hmac.New(sha256.New, v.key)
	_, _ = h.Write([]byte(purpose + " " + text)) // a digest takes everything
	return hex.EncodeToString(h.Sum(nil)[:n])
}

// replayAddress returns the address with which a page of the owner loads what is at a place.
func (v *Handler) replayAddress(owner string, p place) string {
	return at(replayPath+owner+"/"+v.seal(owner, p)+"/", p.moment, p.url.String())
}

// rawAddress returns the address of a file to save. Whether a browser saves something or opens a
// page tells a website what is in the archive, so that each address has a seal of its own.
func (v *Handler) rawAddress(p place) string {
	return at(rawPath+v.fileSeal(p)+"/", p.moment, p.url.String())
}

func (v *Handler) fileSeal(p place) string {
	return v.sum(sealLen, "file", at("", p.moment, p.url.String()))
}

// embeds reports whether a browser loads a response for something that it shows or runs. A script
// cannot read such a response of another site. Without scripts, browsers may not say.
func embeds(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "", "iframe", "frame", "object", "embed", "image", "font", "style", "script", "audio",
		"video", "track":
		return true
	}
	return false
}

// isReadable reports whether a browser may let an opaque origin read a response. own says that the
// owner is of the same site.
func (v *Handler) isReadable(r *http.Request, s served, own bool) bool {
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "font": // always loaded with CORS; only a script could draw it and look
		return own || s.shared || !v.opts.Scripts
	case "script": // a module hands out its exports, and a script its errors
		return own || s.shared
	case "image":
		return own // masks need it
	case "": // no script runs
		return strings.HasPrefix(s.media, "font/") || strings.Contains(s.media, "font-")
	}
	return own && v.opts.Scripts
}

// isShared reports whether the server of a response let any page read it, or those of the owner.
func (v *Handler) isShared(c *capture, owner string) bool {
	allowed := c.head.Get("Access-Control-Allow-Origin")
	u, err := parseURL(allowed)
	return allowed == "*" || err == nil && owner == v.owner(u)
}
