package replay

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// hostsPerPage is how many hosts are on one page of the list.
const hostsPerPage = 100

// started is the content of the start page.
type started struct {
	*summary
	Filter string
	Shown  []hostCount
	Pager  pager
}

// start shows the contents of the archive.
func (v *Handler) start(w http.ResponseWriter, r *http.Request) {
	s, err := v.summary.of(v.archive, v.maxScan)
	if err != nil {
		v.fail(w, http.StatusInternalServerError, "The archive cannot be read", err.Error())
		return
	}
	q := r.URL.Query()
	d := started{summary: s, Filter: strings.TrimSpace(q.Get("host"))}
	matching := s.Hosts
	if d.Filter != "" {
		matching = nil
		for _, h := range s.Hosts {
			if strings.Contains(h.Host, strings.ToLower(d.Filter)) {
				matching = append(matching, h)
			}
		}
	}
	d.Shown, d.Pager = pageOf(matching, q.Get("page"), hostsPerPage)
	d.Pager.Link = "/?" + url.Values{"host": {d.Filter}}.Encode() + "&page="
	v.writePage(w, http.StatusOK, "start", frameOf{Title: v.opts.Title, Page: d})
}

// search redirects from the entered text to the versions of a page, or with a time to the one of
// that time. It tries several URLs, and otherwise shows links to similar pages.
func (v *Handler) search(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	text := strings.TrimSpace(q.Get("url"))
	moment, ok := parseTime(q.Get("t"))
	if !ok {
		v.fail(w, http.StatusBadRequest, "Invalid time",
			"Enter a time such as 2026, 2026-11, 2026-11-02 or 2026-11-02T09:30.")
		return
	}
	text, all := strings.CutSuffix(text, "*")
	if text == "" {
		v.redirectTo(w, "/")
		return
	}
	var first place // the first valid URL, for the error page
	for i, candidate := range candidates(text) {
		u, err := parseURL(candidate)
		if err != nil {
			continue
		}
		u = v.stored(u)
		p := place{moment, u}
		if i == 0 || first.url.Host == "" {
			first = p
		}
		if all {
			v.redirectTo(w, browseAddress(u.String(), moment))
			return
		}
		_, err = v.archive.At(u.String(), time.Time{})
		switch {
		case errors.Is(err, archive.ErrNotFound):
			continue
		case err != nil:
			v.missing(w, p, err, 0)
		case q.Get("t") != "":
			v.redirectTo(w, at(viewPath, moment, u.String()))
		default:
			v.redirectTo(w, versionsAddress(u.String()))
		}
		return
	}
	if first.url.Host == "" {
		v.fail(w, http.StatusBadRequest, "Invalid address", "“"+text+
			"” is not an http or https URL.")
		return
	}
	v.missing(w, first, archive.ErrNotFound, 0)
}

// candidates returns the URLs that the user may mean, who may omit the scheme and "www.". A given
// scheme is tried first, otherwise https, which most sites use.
func candidates(text string) []string {
	scheme, after, _ := strings.Cut(text, "://")
	if scheme = strings.ToLower(scheme); scheme == "http" || scheme == "https" {
		text = scheme + "://" + after // some keyboards write Http
	}
	rest, secure := strings.CutPrefix(text, "https://")
	plain := false
	if !secure {
		rest, plain = strings.CutPrefix(text, "http://")
	}
	if plain {
		return []string{text, "https://" + rest, "http://www." + rest, "https://www." + rest}
	}
	return []string{"https://" + rest, "http://" + rest, "https://www." + rest,
		"http://www." + rest}
}
