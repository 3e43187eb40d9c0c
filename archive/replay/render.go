package replay

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

//go:embed pages
var pageFiles embed.FS

// pages are the templates of the handler's own pages. A handler has a copy, with its addresses.
var pages = template.Must(template.New("").Funcs(addressesBelow("", "")).Funcs(template.FuncMap{
	"when":   when,
	"iso":    func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") },
	"number": number,
	"size":   bytesText,
	"moment": formatMoment,
}).ParseFS(pageFiles, "pages/*.html"))

// addressesBelow returns the functions that write addresses below a path, and the title.
func addressesBelow(base, title string) template.FuncMap {
	attribute := func(name string) func(string) template.HTMLAttr {
		return func(address string) template.HTMLAttr {
			return urlAttribute(name, prefixed(base, address))
		}
	}
	return template.FuncMap{"href": attribute("href"), "src": attribute("src"),
		"base": func() string { return base }, "title": func() string { return title }}
}

// prefixed returns an address for browsers, with the prefix. Internally, addresses start at the
// root.
func prefixed(base, address string) string {
	if strings.HasPrefix(address, "/") {
		return base + address
	}
	return address
}

// urlAttribute writes an attribute with an address of the handler. The template package would
// escape parentheses in it, and so change which archived URL it names.
func urlAttribute(name, address string) template.HTMLAttr {
	return template.HTMLAttr(name + `="` + html.EscapeString(address) + `"`)
}

// when formats a time for people.
func when(t time.Time) string {
	if t.IsZero() {
		return "now"
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05 UTC")
}

// number formats a number in groups of three digits.
func number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

// bytesText formats a size for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// frameOf is the common frame of all pages.
type frameOf struct {
	Title string
	Query string // the URL in the search box
	When  string // the time in the search form
	Page  any
}

// writePage writes one of the handler's own pages.
func (v *Handler) writePage(w http.ResponseWriter, code int, name string, f frameOf) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// The page is buffered, because a failing template must not leave half a page.
	var out bytes.Buffer
	if err := v.pages.ExecuteTemplate(&out, name, f); err != nil {
		http.Error(w, "The page cannot be written.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes())
}

// message is the content of a page without a table or a frame.
type message struct {
	Title, Text string
	Links       []linkTo
}

type linkTo struct{ Address, Text string }

// fail writes an error page.
func (v *Handler) fail(w http.ResponseWriter, code int, title, text string,
	links ...linkTo) {
	v.writePage(w, code, "message", frameOf{Title: title, Page: message{title, text, links}})
}

// missing writes a page that says that a page is not in the archive at that time, with a link to
// the nearest version. hops is the number of redirects that were followed.
func (v *Handler) missing(w http.ResponseWriter, p place, err error, hops int) {
	url := p.url.String()
	if !errors.Is(err, archive.ErrNotFound) {
		v.writePage(w, http.StatusBadGateway, "message", frameOf{Title: "Damaged", Query: url,
			Page: message{"The archive cannot read this page", err.Error(),
				[]linkTo{{versionsAddress(url), "All versions"}}}})
		return
	}
	m := message{Title: "Not in the archive", Text: "There is no version of " + url + "."}
	if nearest, err := v.find(p); err == nil {
		m.Text = "As of " + when(p.moment) + " there is no version of " + url + " yet."
		m.Links = append(m.Links, linkTo{at(viewPath, nearest.Time, nearest.URL),
			"The nearest version, " + nearest.URL + ", found on " + when(nearest.Time)},
			linkTo{versionsAddress(nearest.URL), "All versions"})
	}
	if hops > 0 {
		m.Text = "A redirect points to another page. " + m.Text
	}
	dir := folderOf(p.url)
	m.Links = append(m.Links, linkTo{browseAddress(dir.String(), p.moment), "Other pages in " +
		dir.String()})
	if dir.Path != "/" {
		dir.Path = "/"
		m.Links = append(m.Links, linkTo{browseAddress(dir.String(), p.moment),
			"All pages of " + dir.Host})
	}
	v.writePage(w, http.StatusNotFound, "message", frameOf{Title: m.Title, Query: url, Page: m})
}

// folderOf returns the URL of the directory of a page: up to the last slash of its path.
func folderOf(u weburl.URL) weburl.URL {
	u.Path = cmp.Or(u.Path[:strings.LastIndexByte(u.Path, '/')+1], "/")
	u.Query, u.HasQuery = "", false
	return u
}

// The addresses of the handler's own pages have the URL in the query.

func versionsAddress(page string) string {
	return "/versions?" + url.Values{"url": {page}}.Encode()
}

// versionsBetween returns the address of the versions of a page in a part of the time.
func versionsBetween(page string, from, to time.Time) string {
	return versionsAddress(page) + "&from=" + formatMoment(from) + "&to=" + formatMoment(to)
}

func browseAddress(prefix string, moment time.Time) string {
	q := url.Values{"prefix": {prefix}}
	if !moment.IsZero() {
		q.Set("t", formatMoment(moment))
	}
	return "/browse?" + q.Encode()
}

func diffAddress(page string, a, b time.Time) string {
	return "/diff?" + url.Values{"url": {page}, "a": {formatMoment(a)},
		"b": {formatMoment(b)}}.Encode()
}
