package replay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// A replay address begins with a token of the page that loads it. A script can read its own token
// and leak it, so a token opens what the script can read anyway: the pages of one site as of one
// time. Other sites are served to it as on the live web: to be shown or run, but not to be read.

// siteLen is the length in bytes of the name of a site in a token, and sealLen that of its seal.
const siteLen, sealLen = 8, 16

// siteOf returns the host and port of a URL. http and https are one site, because the archive lets
// either stand in for the other.
func siteOf(u weburl.URL) string { return u.Host + ":" + u.Port }

// token returns the token of a page.
func (v *Handler) token(p place) string {
	site := v.sum(siteLen, "site", siteOf(p.url))
	return site + v.sum(sealLen, "seal", site+formatMoment(p.moment))
}

// permits reports whether a token is that of any page as of a time.
func (v *Handler) permits(token string, moment time.Time) bool {
	if len(token) != 2*(siteLen+sealLen) {
		return false
	}
	site, seal := token[:2*siteLen], token[2*siteLen:]
	return hmac.Equal([]byte(seal), []byte(v.sum(sealLen, "seal", site+formatMoment(moment))))
}

// sum returns n bytes of a keyed digest in hexadecimal.
func (v *Handler) sum(n int, purpose, text string) string {
	h := hmac.New(sha256.New, v.key)
	_, _ = h.Write([]byte(purpose + " " + text)) // a digest takes everything
	return hex.EncodeToString(h.Sum(nil)[:n])
}

// replayAddress returns the address of a page for a frame.
func replayAddress(token string, p place) string {
	return at(replayPath+token+"/", p.moment, p.url.String())
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
// page with the token is of the same site.
func (v *Handler) isReadable(r *http.Request, media string, own bool) bool {
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "font", "script":
		return true // they need it, and the browser hands out none of their bytes
	case "image":
		return own // masks need it
	case "":
		return strings.HasPrefix(media, "font/") || strings.Contains(media, "font-")
	}
	return own && v.opts.Scripts
}
