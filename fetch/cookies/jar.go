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
// Secure is sent over https only, even to this machine. Cookies last at most 400 days. Attributes of
// more than 1,024 bytes are ignored.
//
// The bounds are those of Chrome: 180 cookies per site, which is a registrable domain with all its
// hosts, 3,300 in all, and 4,096 bytes of name and value. One is added, since a server refuses a
// request with more: 64 KiB of names and values per site. Beyond a bound, expired cookies go first,
// and then those that were least recently sent or set. A site that sets too many evicts its own:
// whatever it does, it has at most 180 of the 3,300 places.
//
// Cookies of [Jar.Load] are neither evicted nor counted. Their server can replace and delete them,
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

// The bounds. When there are maxCookies, so many go at once that the search for them costs little
// per cookie.
const (
	maxCookies   = 3300
	purged       = 300
	maxSite      = 180
	maxSiteBytes = 64 << 10
	maxCookie    = 4096
	maxAttribute = 1024
	maxAge       = 400 * 24 * time.Hour
)

// A Jar keeps cookies. The zero Jar is empty and ready to use. Its methods are safe for concurrent
// use.
type Jar struct {
	mu    sync.Mutex
	sites map[string][]*cookie // by registrable domain, each in the order of creation
	held  int                  // cookies that servers have set
	uses  uint64               // how often a cookie was sent or set
}

// A cookie is one that is kept.
type cookie struct {
	name, value, domain, path string

	quoted   bool // the value was in quotes
	hostOnly bool // not for subdomains of domain
	secure   bool
	loaded   bool      // from the operator's file
	expires  time.Time // the zero Time means with the session
	used     uint64    // the number of its last use
}

// A place is where a cookie is set from or sent to.
type place struct {
	host, site, path string
	https            bool
}

// newPlace returns false for a host that cannot have cookies. The path is that of a net/url value.
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
			j.use(c)
			matches = append(matches, c)
		}
	}
	slices.SortStableFunc(matches, func(a, b *cookie) int { return cmp.Compare(len(b.path), len(a.path)) })
	for _, c := range matches {
		sent = append(sent, &http.Cookie{Name: c.name, Value: c.value, Quoted: c.quoted})
	}
	return sent
}

// SetCookies implements http.CookieJar.
func (j *Jar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	at, ok := newPlace(u.Scheme, u.Hostname(), u.Path)
	if !ok || len(cookies) == 0 {
		return
	}
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop(at.site, func(c *cookie) bool { return c.expired(now) })
	for _, set := range cookies {
		c, err := newCookie(at, set, now)
		if err != nil {
			continue
		}
		if latest := now.Add(maxAge); c.expires.After(latest) {
			c.expires = latest
		}
		j.put(at.site, c, now)
	}
}

// put keeps c instead of the one with the same name, domain and path, or only removes that one if c
// has expired. It requires that j.mu is held.
func (j *Jar) put(site string, c *cookie, now time.Time) {
	same := func(other *cookie) bool {
		return other.name == c.name && other.domain == c.domain && other.path == c.path
	}
	if c.expired(now) {
		j.drop(site, same)
		return
	}
	if j.sites == nil {
		j.sites = make(map[string][]*cookie)
	}
	j.use(c)
	if at := slices.IndexFunc(j.sites[site], same); at >= 0 {
		old := j.sites[site][at]
		c.loaded = c.loaded || old.loaded
		j.count(old, -1)
		j.sites[site][at] = c // in its place, since age decides about the order
	} else if of := j.sites[site]; of != nil {
		j.sites[site] = append(of, c)
	} else {
		j.sites[strings.Clone(site)] = []*cookie{c}
	}
	j.count(c, 1)
	j.shrink(site)
	if j.held > maxCookies {
		j.purge(now)
	}
}

// shrink evicts the least recently used cookies of a site that has too many.
func (j *Jar) shrink(site string) {
	for {
		number, bytes, oldest := 0, 0, j.uses
		for _, c := range j.sites[site] {
			if !c.loaded {
				number, bytes, oldest = number+1, bytes+len(c.name)+len(c.value), min(oldest, c.used)
			}
		}
		if number <= maxSite && bytes <= maxSiteBytes {
			return
		}
		j.drop(site, func(c *cookie) bool { return c.used == oldest })
	}
}

// purge makes room: it drops all expired cookies and, if that is not enough, the least recently used
// ones.
func (j *Jar) purge(now time.Time) {
	var uses []uint64
	for site := range j.sites {
		j.drop(site, func(c *cookie) bool { return c.expired(now) })
		for _, c := range j.sites[site] {
			if !c.loaded {
				uses = append(uses, c.used)
			}
		}
	}
	excess := j.held - (maxCookies - purged)
	if excess <= 0 {
		return
	}
	slices.Sort(uses)
	for site := range j.sites {
		j.drop(site, func(c *cookie) bool { return !c.loaded && c.used <= uses[excess-1] })
	}
}

// drop removes the cookies of a site that are unwanted.
func (j *Jar) drop(site string, unwanted func(*cookie) bool) {
	kept := slices.DeleteFunc(j.sites[site], func(c *cookie) bool {
		if !unwanted(c) {
			return false
		}
		j.count(c, -1)
		return true
	})
	if len(kept) == 0 {
		delete(j.sites, site)
		return
	}
	j.sites[site] = kept
}

// count adds n to the number of cookies if c is one of those that count.
func (j *Jar) count(c *cookie, n int) {
	if !c.loaded {
		j.held += n
	}
}

// use makes c the most recently used cookie.
func (j *Jar) use(c *cookie) {
	j.uses++
	c.used = j.uses
}

func (c *cookie) expired(now time.Time) bool { return !c.expires.IsZero() && !c.expires.After(now) }

// matches reports whether a request gets the cookie (RFC 6265, 5.4).
func (c *cookie) matches(at place) bool {
	below, path := strings.CutPrefix(at.path, c.path)
	return (at.host == c.domain || !c.hostOnly && strings.HasSuffix(at.host, "."+c.domain)) &&
		path && (below == "" || below[0] == '/' || strings.HasSuffix(c.path, "/")) &&
		(at.https || !c.secure)
}

// The reasons why a cookie is not kept.
var (
	errSize   = errors.New("a name and a value of more than 4,096 bytes, or a path of more than 1,024")
	errDomain = errors.New("a domain that the host may not set cookies for")
)

// newCookie returns a cookie that is set from a place (RFC 6265, 5.3). One that deletes another has
// expired.
func newCookie(at place, set *http.Cookie, now time.Time) (*cookie, error) {
	c := &cookie{
		name: set.Name, value: set.Value, path: set.Path,
		quoted: set.Quoted, secure: set.Secure, expires: set.Expires,
	}
	if set.MaxAge != 0 { // it wins over Expires; a negative one deletes
		c.expires = now.Add(time.Duration(max(-1, min(set.MaxAge, int(maxAge/time.Second)))) * time.Second)
	}
	if len(c.path) > maxAttribute || !strings.HasPrefix(c.path, "/") {
		c.path = at.path[:max(strings.LastIndexByte(at.path, '/'), 0)]
		if !strings.HasPrefix(c.path, "/") {
			c.path = "/"
		}
	}
	if len(c.path) > maxAttribute || len(c.name)+len(c.value) > maxCookie {
		return nil, errSize
	}
	var ok bool
	if c.domain, c.hostOnly, ok = domain(at, set.Domain); !ok {
		return nil, errDomain
	}
	// They may be a few bytes of a long header field or URL, which would be kept with them.
	for _, text := range []*string{&c.name, &c.value, &c.domain, &c.path} {
		*text = strings.Clone(*text)
	}
	return c, nil
}

// domain returns the hosts that get a cookie whose attribute Domain is given, or false if the host
// that sets it may not.
func domain(at place, attribute string) (domain string, hostOnly, ok bool) {
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
