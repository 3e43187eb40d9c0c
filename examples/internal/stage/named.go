package stage

import "github.com/spinneret-go/spinneret/dedupe/weburl"

// The pages of an owner may make freeHosts hosts known, and hostsEarned for each of these that has had a page:
// a wildcard in the DNS makes any number of names, and those of owners who do not exist cost nothing. At most
// strangeHosts of these may be hosts of one other owner, whose server answers for all of them in turn.
const freeHosts, hostsEarned, strangeHosts = 5000, 2, 125

// TakesHost reports whether the host of a URL that a page names may be known, and counts it if it is not
// known yet, once for all links to it until they are committed.
func (b *HostTable) TakesHost(url, page string) bool {
	host, by := weburl.Host(url), siteOf(weburl.Host(page))
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, counted := b.naming[host]; counted || b.hosts[host] != nil {
		return true
	}
	site := siteOf(host)
	of := by + " " + site
	if b.named[by] >= freeHosts || by != site && b.named[of] >= strangeHosts {
		return false
	}
	b.naming[host] = struct{}{}
	b.named[by]++
	if by != site {
		b.named[of]++
	}
	return true
}

// earn records that a host has had a page. It requires that b.mu is held.
func (b *HostTable) earn(e *hostEntry) {
	if e.by == "" {
		return
	}
	b.named[e.by] -= hostsEarned
	of := e.by + " " + e.site
	if left := b.named[of] - hostsEarned; left > 0 {
		b.named[of] = left
	} else {
		delete(b.named, of)
	}
}
