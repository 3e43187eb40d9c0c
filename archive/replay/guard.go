package replay

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// admit refuses what no browser asks that shows the archive to its user.
func (v *Handler) admit(w http.ResponseWriter, r *http.Request) bool {
	refuse := func(code int, why string) bool {
		v.secure(w, r)
		http.Error(w, why, code)
		return false
	}
	switch {
	case !v.knows(r.Host):
		// A stranger's name that resolves to this computer (DNS rebinding) would make the handler
		// part of the stranger's website.
		return refuse(http.StatusMisdirectedRequest, "This name is not one of this archive's.")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		return refuse(http.StatusMethodNotAllowed, "This archive is only read.")
	case r.Header.Get("Service-Worker") != "":
		// It would outlive the page, and stand between the archive and its user.
		return refuse(http.StatusForbidden, "No service workers here.")
	case foreignLoad(r) && !strings.HasPrefix(r.RequestURI, replayPath):
		return refuse(http.StatusForbidden, "Other websites may link here, but load nothing.")
	}
	return true
}

// foreignLoad tells whether another website, or an archived page, wants to load something as part
// of itself. Browsers say so; what does not say it is none that could be misled.
func foreignLoad(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && !isNavigation(r)
}

// isNavigation tells whether a whole window is to show the answer.
func isNavigation(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

// knows tells whether a Host field has one of the handler's names. What it lets through is fit to
// stand in a policy.
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

// origin returns the handler's own origin, for a policy. Those have no form for IPv6 addresses.
func origin(r *http.Request) string {
	if strings.HasPrefix(r.Host, "[") {
		return ""
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// permissions are all that a page could ask of a computer that the archive's pages have no use for.
const permissions = "accelerometer=(), browsing-topics=(), camera=(), clipboard-read=(), " +
	"display-capture=(), geolocation=(), gyroscope=(), hid=(), idle-detection=(), " +
	"magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), " +
	"screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()"

// common sets the headers that all answers have. Without nosniff an archived text could be taken
// for a script; a referrer would tell the token of the replay path.
func common(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", permissions)
	h.Set("Origin-Agent-Cluster", "?1")
	h.Set("X-DNS-Prefetch-Control", "off")
}

// secure sets the headers of the handler's own pages. They run one script of their own, and may be
// framed by no one.
func (v *Handler) secure(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	common(h)
	frames := "'self'"
	if o := origin(r); o != "" {
		frames = o + v.opts.Base + replayPath + v.token + "/"
	}
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
		"img-src 'self'; frame-src "+frames+"; form-action 'self'; base-uri 'none'; "+
		"frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// policy returns the Content-Security-Policy of something archived.
//
// Its sandbox makes its origin none, whatever shows it. Without scripts, and once its links have
// been rewritten, they may replace the whole window: all of them lead to the handler.
func (v *Handler) policy(r *http.Request, p place, scripts, rewritten bool) string {
	from, same := "'self'", "'none'"
	if o := origin(r); o != "" {
		from = o + v.opts.Base + replayPath + v.token + "/"
		if isPlainHost(p.url.Host) {
			site := weburl.URL{Scheme: p.url.Scheme, Host: p.url.Host, Port: p.url.Port, Path: "/",
				HasHost: true}
			same = from + formatMoment(p.moment) + "/" + site.String()
		}
	}
	// What is not rewritten, such as an SVG image or a page that is too long, has links that lead
	// to the live web. Those fail: the frame may load nothing but what is replayed, and a sandbox
	// without any flag may not touch the window.
	sandbox, script, connect := "sandbox", "'none'", "'none'"
	switch {
	case scripts:
		// No flag for the window: a script would wait for a click to lead it away.
		sandbox = "sandbox allow-scripts"
		script = from + " 'unsafe-inline' 'unsafe-eval' data: blob:"
		connect = same // as if it were its website's origin
	case rewritten:
		sandbox = "sandbox " + linkFlags
	}
	// Styles may stand in the page, as they can neither run nor, by the other directives, load.
	// Data is allowed where it can do nothing; a frame with data would escape the rewriting of
	// links.
	return "default-src 'none'; script-src " + script + "; connect-src " + connect +
		"; img-src " + from + " data: blob:; style-src " + from + " 'unsafe-inline'; font-src " +
		from + " data:; media-src " + from + " data: blob:; frame-src " + from + "; object-src " +
		from + "; worker-src 'none'; manifest-src 'none'; form-action 'none'; base-uri 'none'; " +
		sandbox
}

// isPlainHost tells whether a host is fit to stand in a policy. The URL Standard allows semicolons
// and commas in one, which end directives and policies.
func isPlainHost(host string) bool {
	return strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// linkFlags let a person, and no script, go on from a sandboxed page in the same or a new window.
const linkFlags = "allow-top-navigation-by-user-activation allow-popups " +
	"allow-popups-to-escape-sandbox"

// archived sets the headers of something archived.
func (v *Handler) archived(w http.ResponseWriter, r *http.Request, p place,
	scripts, rewritten bool) {
	h := w.Header()
	common(h)
	h.Set("Content-Security-Policy", v.policy(r, p, scripts, rewritten))
	// What is sandboxed has no origin, and so is a stranger to its own parts. The token keeps other
	// strangers out.
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Access-Control-Allow-Origin", "null")
	// What a frame got must not be shown in a window of its own.
	h.Set("Vary", "Sec-Fetch-Dest, Sec-Fetch-Mode")
	h.Set("Cache-Control", "no-store")
	if !p.moment.IsZero() {
		h.Set("Cache-Control", "private, max-age=600")
	}
}
