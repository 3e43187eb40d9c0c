// Package cookies keeps a bounded number of cookies.
//
//	jar := new(cookies.Jar)
//	err := jar.Load(file) // cookies of a browser, if the crawl needs any
//	client, err := fetch.New(fetch.Options{Jar: jar, …})
//
// A [Jar] is an http.CookieJar. Any http.Client can use it.
//
// # Promise
//
// A Jar follows the rules of net/http/cookiejar with the public suffix list: which host may set a
// cookie for which domain, and which request gets it. Three rules are stricter. A cookie that is
// Secure is sent over https only, even to this machine. Cookies last at most 400 days. Attributes
// of more than 1,024 bytes are ignored.
//
// The bounds are those of Chrome: 180 cookies per site, which is a registrable domain with all its
// hosts, 3,300 in all, and 4,096 bytes of name and value. One is added: 64 KiB of names and values
// per site. Beyond a bound, expired cookies go first, and then those that were least recently sent or
// set, of the site or, until 3,000 are left, of all. A site that sets too many evicts its own: whatever
// it does, it has at most 180 of the 3,300 places.
//
// A request gets at most 8 KiB of cookies, since many servers refuse more, and any host of a site can
// set cookies for all the others. Cookies of the host itself come first, then those of longer paths,
// then older ones. The rest stay in the jar.
//
// Cookies of [Jar.Load] are neither evicted nor counted, and always sent. Their server can replace and delete them,
// as in a browser.
//
// # Cost
//
// A Jar takes at most 18 MB, and usually one. A request or a cookie takes time proportional to the
// cookies of its site.
package cookies

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// The bounds.
const (
	maxSite      = 180
	maxSiteBytes = 64 << 10
	maxSent      = 8 << 10 // with the punctuation between cookies
	maxCookies   = 3300
	keptCookies  = 3000 // beyond maxCookies, since looking for those to evict takes time
	maxCookie    = 4096
	maxAttribute = 1024
	maxAge       = 400 * 24 * time.Hour
)

// A Jar keeps cookies. The zero Jar is empty and ready to use. Its methods are safe for concurrent
// use.
type Jar struct {
	mu    sync.Mutex
	sites map[string][]*cookie // by registrable domain
	held  int                  // cookies that servers have set
	uses  uint64               // how often a cookie was sent or set
}

// A cookie is one that is kept. Another with the same id replaces it.
type cookie struct {
	id       cookieID
	value    string
	quoted   bool // the value was in quotes
	hostOnly bool // not for subdomains of the domain
	secure   bool
	loaded   bool      // from the operator's file
	expires  time.Time // the zero Time means with the session
	created  uint64    // the number of its first use
	used     uint64    // the number of its last use
}

type cookieID struct{ name, domain, path string }

// A place is where a cookie is set from or sent to.
type place struct {
	host, site, path string
	https            bool
}

// newPlace returns false for a host that cannot have cookies.
func newPlace(scheme, host, path string) (at place, ok bool) {
	host, err := weburl.HostName(host)
	if err != nil || scheme != "http" && scheme != "https" {
		return at, false
	}
	at = place{host: host, site: host, path: path, https: scheme == "https"}
	if _, err := netip.ParseAddr(host); err != nil {
		if site, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
			at.site = site
		}
	}
	return at, true
}

// Cookies implements http.CookieJar.
func (j *Jar) Cookies(u *url.URL) (sent []*http.Cookie) {
	at, ok := newPlace(u.Scheme, u.Hostname(), cmp.Or(u.Path, "/"))
	if !ok {
		return nil
	}
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	var matches []*cookie
	for _, c := range j.sites[at.site] {
		if c.matches(at) && !c.expired(now) {
			matches = append(matches, c)
		}
	}
	slices.SortFunc(matches, func(a, b *cookie) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), inField(a, b))
	})
	left := maxSent
	matches = slices.DeleteFunc(matches, func(c *cookie) bool {
		if n := c.size() + len(`="";_`); !c.loaded && n > left {
			return true
		} else if !c.loaded {
			left -= n
		}
		j.uses++
		c.used = j.uses
		return false
	})
	slices.SortFunc(matches, inField)
	for _, c := range matches {
		sent = append(sent, &http.Cookie{Name: c.id.name, Value: c.value, Quoted: c.quoted})
	}
	return sent
}

// inField compares two cookies by their order in a request (RFC 6265, 5.4).
func inField(a, b *cookie) int {
	return cmp.Or(cmp.Compare(len(b.id.path), len(a.id.path)), cmp.Compare(a.created, b.created))
}

// SetCookies implements http.CookieJar.
func (j *Jar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	at, ok := newPlace(u.Scheme, u.Hostname(), u.Path)
	if !ok {
		return
	}
	now := time.Now()
	var kept []*cookie
	for _, set := range cookies {
		if c, err := newCookie(at, set, now); err == nil {
			kept = append(kept, c)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.put(at.site, kept, now)
}

// put keeps cookies of a site, each instead of an earlier one with its id, unless they have
// expired. It requires that j.mu is held.
func (j *Jar) put(site string, set []*cookie, now time.Time) {
	if len(set) == 0 {
		return
	}
	of := j.dropExpired(site, now)
	byID := make(map[cookieID]*cookie, len(of)+len(set))
	for _, c := range of {
		byID[c.id] = c
	}
	for _, c := range set {
		j.uses++
		c.created, c.used = j.uses, j.uses
		if old := byID[c.id]; old != nil && !old.expired(now) {
			c.created, c.loaded = old.created, c.loaded || old.loaded
			old.expires = now
		}
		byID[c.id] = c
		if !c.loaded {
			j.held++
		}
	}
	if j.sites == nil {
		j.sites = make(map[string][]*cookie)
	}
	if of == nil {
		site = strings.Clone(site) // it may be a part of a long URL
	}
	j.sites[site] = append(of, set...)
	number, bytes := 0, 0
	for _, c := range j.dropExpired(site, now) {
		if !c.loaded {
			number, bytes = number+1, bytes+c.size()
		}
	}
	if number > maxSite || bytes > maxSiteBytes {
		j.evict(slices.Values([]string{site}), maxSite, maxSiteBytes, now)
	}
	if j.held > maxCookies {
		j.evict(maps.Keys(j.sites), keptCookies, math.MaxInt, now)
	}
}

// evict keeps the most recently used cookies of some sites, within a number and a size.
func (j *Jar) evict(sites iter.Seq[string], number, bytes int, now time.Time) {
	var all []*cookie
	for site := range sites {
		for _, c := range j.dropExpired(site, now) {
			if !c.loaded {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b *cookie) int { return cmp.Compare(b.used, a.used) })
	for i, c := range all {
		if bytes -= c.size(); i >= number || bytes < 0 {
			c.expires = now
		}
	}
	for site := range sites {
		j.dropExpired(site, now)
	}
}

// dropExpired returns the cookies of a site that are left.
func (j *Jar) dropExpired(site string, now time.Time) []*cookie {
	left := slices.DeleteFunc(j.sites[site], func(c *cookie) bool {
		if c.expired(now) && !c.loaded {
			j.held--
		}
		return c.expired(now)
	})
	if len(left) == 0 {
		delete(j.sites, site)
		return nil
	}
	if cap(left) > 2*len(left) { // a response may set thousands, most of which expire at once
		left = slices.Clone(left)
	}
	j.sites[site] = left
	return left
}

func (c *cookie) expired(now time.Time) bool { return !c.expires.IsZero() && !c.expires.After(now) }

func (c *cookie) size() int { return len(c.id.name) + len(c.value) }

// rank returns which cookies are sent if there are too many: those with a lower rank.
func (c *cookie) rank() int {
	switch {
	case c.loaded:
		return 0
	case c.hostOnly:
		return 1
	}
	return 2
}

// matches reports whether a request gets the cookie.
func (c *cookie) matches(at place) bool {
	rest, below := strings.CutPrefix(at.path, c.id.path)
	return (at.host == c.id.domain || !c.hostOnly && strings.HasSuffix(at.host, "."+c.id.domain)) &&
		below && (rest == "" || rest[0] == '/' || strings.HasSuffix(c.id.path, "/")) &&
		(at.https || !c.secure)
}

// newCookie returns a cookie that is set from a place (RFC 6265, 5.3), or why it is not kept. One
// that deletes another has expired.
func newCookie(at place, set *http.Cookie, now time.Time) (*cookie, error) {
	path, expires := set.Path, set.Expires
	if len(path) > maxAttribute || !strings.HasPrefix(path, "/") {
		path = at.path[:max(strings.LastIndexByte(at.path, '/'), 0)]
		if !strings.HasPrefix(path, "/") {
			path = "/"
		}
	}
	if len(path) > maxAttribute || len(set.Name)+len(set.Value) > maxCookie {
		return nil, errors.New("a name and a value of more than 4,096 bytes, or a path of more than 1,024")
	}
	domain, hostOnly, ok := domainOf(at, set.Domain)
	if !ok {
		return nil, errors.New("a domain that the host may not set cookies for")
	}
	if set.MaxAge != 0 { // it wins over Expires; a negative one deletes
		expires = now.Add(time.Duration(max(-1, min(set.MaxAge, int(maxAge/time.Second)))) * time.Second)
	}
	if latest := now.Add(maxAge); expires.After(latest) {
		expires = latest
	}
	c := &cookie{quoted: set.Quoted, hostOnly: hostOnly, secure: set.Secure, expires: expires}
	// They may be a few bytes of a long header field or URL, which would be kept with them.
	c.id.name, c.id.domain, c.id.path = strings.Clone(set.Name), strings.Clone(domain), strings.Clone(path)
	c.value = strings.Clone(set.Value)
	return c, nil
}

// domainOf returns the hosts that get a cookie whose attribute Domain is given, or false if the
// host that sets it may not.
func domainOf(at place, attribute string) (domain string, hostOnly, ok bool) {
	if attribute == "" || len(attribute) > maxAttribute {
		return at.host, true, true
	}
	if _, err := netip.ParseAddr(at.host); err == nil {
		return at.host, true, at.host == attribute
	}
	domain = strings.ToLower(strings.TrimPrefix(attribute, "."))
	switch suffix, _ := publicsuffix.PublicSuffix(domain); {
	case domain == suffix: // of the hosts of many owners
		return domain, true, domain == at.host
	case domain == at.host:
		return domain, false, true
	}
	return domain, false, domain != "" && strings.HasSuffix(at.host, "."+domain)
}
