package replay

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// admit refuses requests that a browser showing the archive to its user never makes.
func (v *Handler) admit(w http.ResponseWriter, r *http.Request) bool {
	refuse := func(code int, why string) bool {
		v.secure(w, r)
		http.Error(w, why, code)
		return false
	}
	switch {
	case !v.knows(r.Host):
		// With DNS rebinding, a foreign name that resolves to this computer would make the handler
		// part of the foreign website.
		return refuse(http.StatusMisdirectedRequest, "This host name is not allowed here. Use localhost, or let the "+
			"operator allow the name.")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		return refuse(http.StatusMethodNotAllowed, "This archive is read-only.")
	case r.Header.Get("Service-Worker") != "":
		// It would outlive the page, and could intercept later requests.
		return refuse(http.StatusForbidden, "Service workers are not allowed.")
	case foreignLoad(r) && !strings.HasPrefix(r.RequestURI, replayPath):
		return refuse(http.StatusForbidden, "Other websites may only link here.")
	}
	return true
}

// foreignLoad reports whether another website, or an archived page, wants to embed a response.
// Browsers say so in headers; a client without them cannot be misled.
func foreignLoad(r *http.Request) bool {
	if from := r.Header.Get("Origin"); from != "" && from != "http://"+r.Host &&
		from != "https://"+r.Host {
		return true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && !isNavigation(r)
}

// isNavigation reports whether the response is for a whole window.
func isNavigation(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

// knows reports whether a Host field has one of the handler's names. Such a name is safe in a
// policy.
func (v *Handler) knows(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), "80"
	}
	if port == "" || strings.Trim(port, "0123456789") != "" {
		return false
	}
	name = strings.ToLower(name)
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" && addr.IsLoopback() {
		return true
	}
	if strings.ContainsAny(name, " ;,'\"/\\") {
		return false
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || v.hosts[name]
}

// origin returns the handler's own origin for a policy. Policies cannot express IPv6 addresses.
func origin(r *http.Request) string {
	if strings.HasPrefix(r.Host, "[") {
		return ""
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// permissions are the browser features that archived pages do not need.
const permissions = "accelerometer=(), browsing-topics=(), camera=(), clipboard-read=(), " +
	"display-capture=(), geolocation=(), gyroscope=(), hid=(), idle-detection=(), " +
	"magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), " +
	"screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()"

// common sets the headers of all responses. Without nosniff an archived text could be interpreted
// as a script; a referrer would reveal an address in the replay path.
func common(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", permissions)
	h.Set("Origin-Agent-Cluster", "?1")
	h.Set("X-DNS-Prefetch-Control", "off")
}

// secure sets the headers of the handler's own pages. They run one script of their own, and may not
// be framed.
func (v *Handler) secure(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	common(h)
	frames := "'self'"
	if o := origin(r); o != "" {
		frames = o + v.opts.Base + replayPath
	}
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
		"img-src 'self'; frame-src "+frames+"; form-action 'self'; base-uri 'none'; "+
		"frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// policy returns the Content-Security-Policy of archived content.
//
// Its sandbox gives the content an opaque origin, wherever it is shown. Without scripts, rewritten
// links may replace the whole window, since all of them point to the handler.
func (v *Handler) policy(r *http.Request, p place, owner string, s served) string {
	from, same := "'self'", "'none'"
	if o := origin(r); o != "" {
		from = o + v.opts.Base + replayPath + owner + "/"
		if isPlainHost(p.url.Host) {
			site := weburl.URL{Scheme: p.url.Scheme, Host: p.url.Host, Port: p.url.Port, Path: "/",
				HasHost: true}
			same = origin(r) + v.opts.Base + v.replayAddress(owner, place{p.moment, site})
		}
	}
	// Content that is not rewritten, such as an SVG image or an overlong page, has links to the
	// live web. Those fail: the frame may only load replayed content, and a sandbox without flags
	// may not navigate the window.
	sandbox, script, connect := "sandbox", "'none'", "'none'"
	switch {
	case s.scripts:
		// No flag for the window: a script could use a click to leave the handler.
		sandbox = "sandbox allow-scripts"
		script = from + " 'unsafe-inline' 'unsafe-eval' data: blob:"
		connect = same // as if this were the website's origin
	case s.rewritten:
		sandbox = "sandbox " + linkFlags
	}
	// Inline styles are allowed: they cannot run, and the other directives prevent loading. Data
	// URLs are allowed where they are passive; a frame with a data URL would escape the rewriting
	// of links.
	return "default-src 'none'; script-src " + script + "; connect-src " + connect +
		"; img-src " + from + " data: blob:; style-src " + from + " 'unsafe-inline'; font-src " +
		from + " data:; media-src " + from + " data: blob:; frame-src " + from + "; object-src " +
		from + "; worker-src 'none'; manifest-src 'none'; form-action 'none'; base-uri 'none'; " +
		sandbox
}

// isPlainHost reports whether a host can be used in a policy. The URL Standard allows semicolons
// and commas in hosts, but they end directives and policies.
func isPlainHost(host string) bool {
	return strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// linkFlags allow the user, but no script, to follow links from a sandboxed page.
const linkFlags = "allow-top-navigation-by-user-activation allow-popups " +
	"allow-popups-to-escape-sandbox"

// served says how archived content is served.
type served struct {
	media              string // "" for a redirect or an error
	scripts, rewritten bool
	shared             bool // its own server let the page read it
}

// archived sets the headers of archived content for a page of the owner.
func (v *Handler) archived(w http.ResponseWriter, r *http.Request, p place, owner string,
	s served) {
	h := w.Header()
	common(h)
	h.Set("Content-Security-Policy", v.policy(r, p, owner, s))
	// Sandboxed content has an opaque origin, so its own parts are cross-origin to it.
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if v.isReadable(r, s, owner == v.owner(p.url)) {
		h.Set("Access-Control-Allow-Origin", "null")
	}
	// A response for a frame must not be shown in a separate window.
	h.Set("Vary", "Sec-Fetch-Dest, Sec-Fetch-Mode")
	// What was valid at a time changes, too: a crawl adds versions, and others are erased.
	h.Set("Cache-Control", "no-store")
}
