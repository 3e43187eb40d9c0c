package replay

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/archive"
)

// hostsPerPage is how many hosts are on one page of the list.
const hostsPerPage = 100

// started is the content of the first page.
type started struct {
	*summary
	Filter    string
	Shown     []hostCount
	Matching  int
	Page      int
	HasBefore bool
	HasAfter  bool
}

// start shows the contents of the archive.
func (v *Handler) start(w http.ResponseWriter, r *http.Request) {
	s, err := v.summary.of(v.archive, v.opts.MaxScan)
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
	d.Matching = len(matching)
	d.Shown, d.Page = pageOf(matching, q.Get("page"), hostsPerPage)
	d.HasBefore, d.HasAfter = d.Page > 1, d.Page*hostsPerPage < len(matching)
	v.writePage(w, http.StatusOK, "start", frameOf{Title: v.opts.Title, Page: d})
}

// Before and After are the numbers of the pages beside this one.
func (d started) Before() int { return d.Page - 1 }

// After is the number of the next page.
func (d started) After() int { return d.Page + 1 }

// pageOf returns the part of a list for a page number from an address. An invalid or missing number
// means the first page: lists shrink when they are filtered.
func pageOf[T any](list []T, number string, size int) (part []T, page int) {
	page, err := strconv.Atoi(number)
	pages := max((len(list)+size-1)/size, 1)
	if err != nil || page < 1 || page > pages {
		page = 1
	}
	return list[(page-1)*size : min(page*size, len(list))], page
}

// search redirects from the text that was typed to the page, by any of the names that it may have,
// or else to a page about similar ones.
func (v *Handler) search(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	text := strings.TrimSpace(q.Get("url"))
	moment, ok := parseTime(q.Get("t"))
	if !ok {
		v.fail(w, http.StatusBadRequest, "This is no time",
			"A time is given as 2026, 2026-11, 2026-11-02 or 2026-11-02T09:30.")
		return
	}
	if text == "" {
		v.redirectTo(w, "/")
		return
	}
	text, all := strings.CutSuffix(text, "*")
	var first place // the first valid URL, for the page that says that nothing was found
	for i, url := range candidates(text) {
		u, err := parseURL(url)
		if err != nil {
			continue
		}
		p := place{moment, u}
		if i == 0 || first.url.Host == "" {
			first = p
		}
		if all {
			v.redirectTo(w, browseAddress(u.String(), moment))
			return
		}
		if v.lead(w, p, q.Get("t") != "") {
			return
		}
	}
	if first.url.Host == "" {
		v.fail(w, http.StatusBadRequest, "This is no web address", "“"+text+
			"” is no http or https URL.")
		return
	}
	v.missing(w, first, archive.ErrNotFound, 0)
}

// lead redirects to a page if it exists: to its versions, or to the one at a time if that was given.
func (v *Handler) lead(w http.ResponseWriter, p place, timed bool) bool {
	url := p.url.String()
	versions, err := v.archive.Versions(url)
	if err != nil || len(versions) == 0 {
		return false
	}
	if timed {
		v.redirectTo(w, at(viewPath, p.moment, url))
	} else {
		v.redirectTo(w, versionsAddress(url))
	}
	return true
}

// candidates are the URLs that the user may mean without the parts that browsers add. A given
// scheme is tried first, otherwise the one that most sites have now.
func candidates(text string) []string {
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
