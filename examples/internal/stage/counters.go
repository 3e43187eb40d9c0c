package stage

import (
	"hash/maphash"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// The pages of an owner may make freeHosts of his hosts known, and hostsEarned for each that has had a page: a
// wildcard in the DNS makes any number of names. Those of others may make as many known, and each other owner
// an eighth of that, so that nobody's made-up names bar the hosts that somebody else names. All hosts that
// the pages of an owner make known are bounded in the same way: names of owners who do not exist cost nothing.
const freeHosts, freeNames, hostsEarned, ownersOfNames = 1000, 20_000, 2, 8

// counters count events by key in a memory that does not grow with the keys. They may count too much,
// and hardly ever do while the keys are fewer than a million. They are not safe for concurrent use.
type counters struct {
	seed maphash.Seed
	rows [2][]int32
}

// counterSlots are the slots of a row.
const counterSlots = 1 << 16

func newCounters() counters {
	return counters{maphash.MakeSeed(), [2][]int32{make([]int32, counterSlots), make([]int32, counterSlots)}}
}

// slots returns where a key is counted.
func (c *counters) slots(key string) (first, second *int32) {
	hash := maphash.String(c.seed, key)
	return &c.rows[0][hash%counterSlots], &c.rows[1][hash>>32%counterSlots]
}

func (c *counters) add(key string) {
	first, second := c.slots(key)
	*first++
	*second++
}

func (c *counters) of(key string) int {
	first, second := c.slots(key)
	return int(min(*first, *second))
}

// TakesHost reports whether the host of a URL that a page names may be known, and counts it if it is not
// known yet. A host that is named again before its first page is committed counts again.
func (b *HostTable) TakesHost(url, page string) bool {
	host, by := weburl.Host(url), siteOf(weburl.Host(page))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts[host] != nil {
		return true
	}
	site := siteOf(host)
	most := freeHosts + hostsEarned*b.fetchedOf.of(site)
	pair, all, named := by+" "+site, "* "+site, by+" *"
	switch {
	case b.named.of(named) >= freeNames+hostsEarned*b.ledTo.of(by):
		return false
	case by == site:
		if b.named.of(pair) >= most {
			return false
		}
	case b.named.of(all) >= most || b.named.of(pair) >= most/ownersOfNames:
		return false
	default:
		b.named.add(all)
	}
	b.named.add(pair)
	b.named.add(named)
	return true
}

// earn records that a host has had a page. It requires that b.mu is held.
func (b *HostTable) earn(e *hostEntry) {
	b.fetchedOf.add(e.site)
	if e.by != "" {
		b.ledTo.add(e.by)
	}
}
