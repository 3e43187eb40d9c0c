package cockpit

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// TokenName is the file with the token of a live page that other machines can reach. It stays the
// same, so that a monitoring system can be told once.
const TokenName = "live.token"

// openToken reads the token of the crawl in a directory, or makes one.
func openToken(dir string) (string, error) {
	name := filepath.Join(dir, TokenName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text() + "\n")
		err = os.WriteFile(name, text, 0o600)
	}
	token := strings.TrimSpace(string(text))
	if err == nil && token == "" {
		err = fmt.Errorf("%s is empty: remove it", name)
	}
	return token, err
}

// hostNames returns the names in the value of a flag.
func hostNames(text string) []string {
	return listed(strings.ToLower(text))
}

// A guard decides which requests the live page answers. A page of another origin can make a browser
// send any request, even with a name that it resolves to this server.
type guard struct {
	names []string // by which the server may be addressed, besides addresses and localhost
	token string   // "": not needed
}

// tokenCookie keeps the token in a browser.
const tokenCookie = "live_token"

// around returns a handler that refuses requests, and keeps the live page from loading anything
// from elsewhere.
func (g guard) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		switch {
		case !g.knows(r.Host):
			http.Error(w, fmt.Sprintf("open this page by its IP address or localhost, or allow %q with -listen-names",
				r.Host), http.StatusForbidden)
		case isForeign(r):
			http.Error(w, "cross-site request refused", http.StatusForbidden)
		case g.enters(r): // keeps the token out of addresses
			cookie := http.Cookie{Name: tokenCookie, Value: g.token, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode}
			http.SetCookie(w, &cookie)
			// To a browser, a link in an archived page is one of another website.
			cookie.Path, cookie.SameSite = archivePath, http.SameSiteLaxMode
			http.SetCookie(w, &cookie)
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case !g.permits(r):
			http.Error(w, "open the address that the crawl printed, or send the token in "+TokenName+
				" as Authorization: Bearer", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knows reports whether the server may be addressed by a Host field.
func (g guard) knows(field string) bool {
	host, _, err := net.SplitHostPort(field)
	if err != nil {
		host = field
	}
	_, isAddr := stage.Literal(host)
	host = strings.ToLower(host)
	return isAddr || host == "localhost" || slices.Contains(g.names, host)
}

// isForeign reports whether another website made a browser send a request. Over plain HTTP browsers
// name the website only in Origin and Referer, and not always; hence the token. Only the page
// itself may be linked to: some responses are expensive.
func isForeign(r *http.Request) bool {
	for _, field := range []string{"Origin", "Referer"} {
		from := r.Header.Get(field)
		u, err := url.Parse(from)
		if from != "" && (err != nil || u.Host != r.Host) && !isLink(r, field) {
			return true
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "none" && site != "same-origin" && !isLink(r, "Sec-Fetch-Site")
}

// isLink reports whether a request may come from a link. Links send no Origin.
func isLink(r *http.Request, field string) bool {
	return r.URL.Path == "/" && r.Method == http.MethodGet && field != "Origin"
}

// enters reports whether a request is for the printed address.
func (g guard) enters(r *http.Request) bool {
	return g.token != "" && r.URL.Path == "/" && r.Method == http.MethodGet && g.is(r.URL.Query().Get("token"))
}

// permits reports whether a request has the token. Archived content has tokens of its own: browsers
// send no cookie with it.
func (g guard) permits(r *http.Request) bool {
	if g.token == "" || strings.HasPrefix(r.URL.Path, archivePath+"replay/") {
		return true
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	cookie, err := r.Cookie(tokenCookie)
	return g.is(bearer) || err == nil && g.is(cookie.Value)
}

func (g guard) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// CheckListen refuses an address without a host: whether other machines can reach the live page is
// a decision.
func CheckListen(addr string) error {
	if addr == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return fmt.Errorf("-listen %q: %w", addr, err)
	case host == "":
		return errors.New("-listen needs an address, such as 127.0.0.1:8080, or 0.0.0.0:8080 for all")
	}
	return nil
}

// exposed reports whether an address may be reachable from other machines.
func exposed(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "localhost" {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err != nil || !addr.IsLoopback()
}
