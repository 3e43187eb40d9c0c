package fetch

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// readCookies reads a file of cookies into a jar. An error names the line that is at fault; the
// cookies before it are in the jar.
func readCookies(jar http.CookieJar, r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, httpOnly := strings.CutPrefix(strings.TrimRight(lines.Text(), "\r"), "#HttpOnly_")
		if line == "" || line[0] == '#' && !httpOnly {
			continue
		}
		site, cookie, err := parseCookie(line)
		if err != nil {
			return fmt.Errorf("fetch: read cookies: line %d: %w", n, err)
		}
		cookie.HttpOnly = httpOnly
		jar.SetCookies(site, []*http.Cookie{cookie})
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("fetch: read cookies: %w", err)
	}
	return nil
}

// parseCookie reads one line: domain, whether it includes subdomains, path, whether it is for https
// only, expiry (0: with the session), name and value.
func parseCookie(line string) (*url.URL, *http.Cookie, error) {
	f := strings.Split(line, "\t")
	if len(f) == 6 {
		f = append(f, "") // an empty value, whose tab an editor has removed
	}
	if len(f) != 7 {
		return nil, nil, fmt.Errorf("%d fields, want 7 with tabs between them", len(f))
	}
	expires, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("expiry %q is not a number of seconds", f[4])
	}
	host := strings.TrimPrefix(f[0], ".")
	site := &url.URL{Scheme: "http", Host: host, Path: f[2]}
	cookie := &http.Cookie{Name: f[5], Value: f[6], Path: f[2]}
	if strings.EqualFold(f[3], "TRUE") {
		site.Scheme, cookie.Secure = "https", true
	}
	if strings.EqualFold(f[1], "TRUE") {
		cookie.Domain = host
	}
	if expires != 0 {
		cookie.Expires = time.Unix(expires, 0)
	}
	if host == "" || cookie.Name == "" {
		return nil, nil, fmt.Errorf("no domain or no name")
	}
	return site, cookie, nil
}

// addCookies puts what the jar has for page on req.
func (c *Client) addCookies(req *http.Request, page string) {
	if c.opts.Jar == nil {
		return
	}
	// A jar compares the path, which req's URL has in another form. A URL that net/url does not
	// accept gets no cookies.
	u, err := url.Parse(page)
	if err != nil {
		return
	}
	for _, cookie := range c.opts.Jar.Cookies(u) {
		req.AddCookie(cookie)
	}
}

// keepCookies stores the cookies that the response for page sets.
func (c *Client) keepCookies(resp *http.Response, page string) {
	if c.opts.Jar == nil || len(resp.Header["Set-Cookie"]) == 0 {
		return
	}
	if u, err := url.Parse(page); err == nil {
		c.opts.Jar.SetCookies(u, resp.Cookies())
	}
}
