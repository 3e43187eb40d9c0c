package cookies

import (
	"net/url"

	"golang.org/x/net/publicsuffix"
)

// Held returns how many cookies of servers the jar has, after a check of the books.
func (j *Jar) Held() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	held := 0
	for site, of := range j.sites {
		if len(of) == 0 {
			panic("an empty site: " + site)
		}
		for _, c := range of {
			if !c.loaded {
				held++
			}
		}
	}
	if held != j.held {
		panic("the count is wrong")
	}
	return held
}

// The bounds.
const (
	MaxCookies   = maxCookies
	KeptCookies  = keptCookies
	MaxSite      = maxSite
	MaxSiteBytes = maxSiteBytes
	MaxSent      = maxSent
	MaxAge       = maxAge
)

// PublicSuffix is for the jar that ours is compared with, since only this package may import the
// list.
func PublicSuffix(domain string) string {
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return suffix
}

// Site returns the registrable domain of a URL.
func Site(u *url.URL) string {
	at, _ := newPlace(u.Scheme, u.Hostname(), u.Path)
	return at.site
}

// Len returns how many cookies the jar has.
func (j *Jar) Len() (n int) {
	for _, of := range j.sites {
		n += len(of)
	}
	return n
}
