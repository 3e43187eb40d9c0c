package fetch

import (
	"net/http"
	"net/url"
	"strings"
)

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
	if own := req.Header["Cookie"]; len(own) > 1 { // AddCookie keeps the first
		req.Header.Set("Cookie", strings.Join(own, "; "))
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
