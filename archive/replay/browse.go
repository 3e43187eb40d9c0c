package replay

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/allen"
)

// itemsPerPage is how many pages and directories are on one page of a listing.
const itemsPerPage = 200

// maxListed bounds the total length of the URLs on a page of a list, in bytes. A page repeats each of
// them several times, and an escaped byte may take five.
const maxListed = 256 << 10

// maxListings bounds the listings that are made at once, since each reads a whole directory.
const maxListings = 2

// item is a page, or a directory of pages. A page whose path ends in a slash is in the directory of
// that name, where it is listed as "/". The same path without the slash is a page next to that
// directory.
type item struct {
	Name     string // relative to the listed directory
	URL      string // of the page, or of a page in the directory
	Dir      bool
	Pages    int
	Versions int
	Last     archive.Version // of the page
	Address  string
	List     string // address of the versions of the page
	key      string
}

// listing collects one page of the items of a directory from a walk through the index. Its memory
// does not depend on the length of the list. It is not safe for concurrent use.
//
// Each page of the list costs a walk over the whole directory, because there is no copy of the
// index in another order. A million versions take a few seconds.
type listing struct {
	prefix string // without scheme
	after  string // the key of the last item of the previous page
	size   int
	left   int // of the total length of URLs

	items    []item
	more     bool // there are more after items
	begun    bool // the item with the key after was visited
	current  item
	lastURL  string
	pages    int
	versions int
	first    time.Time
	last     time.Time
}

// visit adds one version. The versions of a URL are visited one after another.
func (l *listing) visit(v *archive.Version) {
	l.versions++
	l.first, l.last = widen(l.first, l.last, v.Time)
	fresh := v.URL != l.lastURL
	if fresh {
		l.pages++
		l.lastURL = v.URL
	}
	key, name, dir := l.split(v.URL)
	if key != l.current.key {
		l.flush()
		l.current = item{Name: name, URL: v.URL, Dir: dir, key: key}
	}
	c := &l.current
	c.Versions++
	if fresh {
		c.Pages++
	}
	if c.Last.URL == "" || v.Time.After(c.Last.Time) {
		c.Last = *v
	}
}

// split returns the item of a URL: a directory directly below the prefix, or the page itself. Only
// pages are distinguished by scheme: the index has http and https next to each other, and few
// directories have both. A slash in a query does not make a directory.
func (l *listing) split(url string) (key, name string, dir bool) {
	_, rest, _ := strings.Cut(url, "://")
	below, ok := strings.CutPrefix(rest, l.prefix)
	if !ok {
		// Another port of the host, which is named in full.
		below, rest = rest, rest[:0]
	} else {
		rest = l.prefix
	}
	path, _, _ := strings.Cut(below, "?")
	if slash := strings.IndexByte(path, '/'); slash >= 0 {
		name = below[:slash+1]
		return rest + name, name, true
	}
	return url, below, false
}

// flush adds the current item to the list, if it belongs on the page.
func (l *listing) flush() {
	switch {
	case l.current.key == "":
	case l.after != "" && !l.begun:
		l.begun = l.current.key == l.after
	case l.more || len(l.items) == l.size || len(l.items) > 0 && len(l.current.URL) > l.left:
		l.more = true
	default:
		l.items = append(l.items, l.current)
		l.left -= len(l.current.URL)
	}
}

// end returns the items of the page, and whether there are more.
func (l *listing) end() (items []item, more bool) {
	l.flush()
	return l.items, l.more
}

// browsed is the data of the page of a host or directory.
type browsed struct {
	Prefix      string
	Crumbs      []linkTo
	Items       []item
	Pages       int
	Versions    int
	First, Last time.Time
	AsOf        time.Time
	After       string // address of the next page of the list; "" if there is none
	Begin       string // address of the first page; "" if this is the first
}

// maxPrefix bounds a prefix, which a page of the list repeats for each directory.
const maxPrefix = 8 << 10

// browse lists the pages and directories below a prefix.
func (v *Handler) browse(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	moment, ok := parseTime(q.Get("t"))
	prefix := q.Get("prefix")
	if !strings.Contains(prefix, "://") {
		prefix = "http://" + prefix
	}
	u, err := parseURL(prefix)
	if err != nil || !ok || len(prefix) > maxPrefix {
		v.fail(w, http.StatusBadRequest, "Invalid address", "A URL of at most 8 KiB and an optional "+
			"time are needed.")
		return
	}
	giveBack, err := v.listings.take(r.Context(), unit)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable) // if somebody waits for an answer
		return
	}
	giveBack = sync.OnceFunc(giveBack)
	defer giveBack()
	var below string
	var l *listing
	for u = range respelled(u) {
		prefix = u.String()
		_, below, _ = strings.Cut(prefix, "://")
		l = &listing{prefix: below, after: q.Get("after"), size: itemsPerPage,
			left: maxListed}
		if err := v.list(r.Context(), l, prefix, moment); err != nil {
			giveBack()
			v.fail(w, http.StatusInternalServerError, "The archive cannot be read", err.Error())
			return
		}
		if l.versions > 0 {
			break
		}
	}
	items, more := l.end()
	giveBack()                     // before the response, which a client may never read
	if l.after != "" && !l.begun { // it was erased
		v.redirectTo(w, browseAddress(prefix, moment))
		return
	}
	d := browsed{Prefix: below, Crumbs: crumbs(u.Scheme, below, moment), Pages: l.pages,
		Versions: l.versions, Items: items, First: l.first, Last: l.last, AsOf: moment}
	for i := range items {
		items[i].link(u.Scheme, moment)
	}
	if l.after != "" {
		d.Begin = browseAddress(prefix, moment)
	}
	if more {
		d.After = browseAddress(prefix, moment) + "&after=" +
			url.QueryEscape(items[len(items)-1].key)
	}
	v.writePage(w, http.StatusOK, "browse", frameOf{Title: below, Query: prefix + "*",
		When: field(moment), Page: d})
}

// longestPrefix is the longest one that finds all URLs, see archive.Query.
const longestPrefix = 400

// list visits all versions below a prefix that were found by a time.
func (v *Handler) list(ctx context.Context, l *listing, prefix string, moment time.Time) error {
	// Found excludes later versions, so that a listing as of a time counts those of that time.
	query := archive.Query{Relations: allen.Found, Failed: true, Prefix: prefix}
	if host := hostOf(prefix); strings.HasSuffix(prefix, "://"+host+"/") {
		query.Prefix, query.Host = "", host // all its ports
	}
	_, below, _ := strings.Cut(prefix, "://")
	if len(prefix) > longestPrefix {
		query.Prefix = prefix[:longestPrefix]
	}
	if !moment.IsZero() {
		query.To = moment.Add(time.Microsecond)
	}
	for version, err := range v.archive.List(query) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		_, rest, _ := strings.Cut(version.URL, "://")
		if query.Prefix == "" || strings.HasPrefix(rest, below) {
			l.visit(&version)
		}
	}
	return nil
}

// maxName is how much of a long name is shown, in bytes.
const maxName = 500

// link adds the addresses of an item, and shortens its name.
func (it *item) link(scheme string, moment time.Time) {
	it.Name = shortened(it.Name, maxName)
	if it.Dir {
		it.Address = browseAddress(scheme+"://"+it.key, moment)
		return
	}
	it.Address, it.List = at(viewPath, moment, it.URL), versionsAddress(it.URL)
	it.Name = cmp.Or(it.Name, "/")
}

// maxCrumbs bounds the crumbs of a directory, because each has the whole path in its address.
const maxCrumbs = 50

// crumbs returns links to a directory and those above it. Deeper levels are one link.
func crumbs(scheme, below string, moment time.Time) (list []linkTo) {
	start := 0
	for i := range len(below) {
		if below[i] == '/' && len(list) < maxCrumbs-1 || i == len(below)-1 {
			list = append(list, linkTo{browseAddress(scheme+"://"+below[:i+1], moment),
				below[start : i+1]})
			start = i + 1
		}
		if below[i] == '?' {
			break
		}
	}
	return list
}
