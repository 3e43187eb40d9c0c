package stage

import (
	"hash/maphash"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
)

// DefaultSharedAfter is the number of domain owners with answers from one address at which it
// counts as shared infrastructure. The servers of small web hosts have fewer in one crawl.
const DefaultSharedAfter = 256

// spreadShare is the part of them that suffices if their names resolve to several addresses each,
// as those of a content delivery network do, and those of a single machine do not. Owners could
// publish any number of addresses.
const spreadShare = 8

// maxTenants bounds the owners that are remembered, over all addresses. With one owner per address
// they take 30 MB.
const maxTenants = 1 << 17

// An address loses its status if one in troubleShare of troubleAnswers answers is a failure, and
// several owners have failures. A single owner could stage them.
const troubleAnswers, troubleShare = 64, 4

// SharedAddrs knows which addresses unrelated hosts share, such as those of a content delivery
// network. Each of their hosts has its own delay, and the address has none.
//
// An address is shared if the operator says so, or by evidence: hosts of many owners have answered
// there, see [Owner]. Evidence can be wrong. If a quarter of the answers of such an address are
// failures, of several owners, it counts as one machine from then on.
//
// Evidence can also be forged: a name can resolve to the server of somebody else, which answers.
// Free names are not evidence, however many there are. A forgery takes an eighth of the owners,
// with two addresses for each name: by default 32 domains, at one to ten dollars a year each, and
// the crawl must find links to all of them. The server then gets one request per delay for each of
// the names that resolve to it, which may be many below each domain, until a quarter of its answers
// are failures. With -shared-after 0 only the operator's ranges count. Its methods are safe for
// concurrent use.
type SharedAddrs struct {
	ranges map[netip.Prefix]bool
	bits   []int // that the ranges have
	after  int
	seed   maphash.Seed
	shared atomic.Pointer[map[netip.Addr]bool] // by evidence

	mu      sync.Mutex
	tenants map[netip.Addr]*tenancy
	known   int // owners in all of them
}

// A tenancy is the evidence about one address.
type tenancy struct {
	owners, spread        []uint64 // sorted hashes; spread is of names with several addresses
	shared, refuted       bool
	answers, troubleCount int      // of a shared address, lately
	troubled              []uint64 // sorted hashes of the owners with failures among these
}

// NewSharedAddrs returns a table with the operator's ranges. Other addresses are shared when hosts
// of the given number of owners have answered there; 0 means never.
func NewSharedAddrs(ranges []netip.Prefix, after int) *SharedAddrs {
	s := &SharedAddrs{
		ranges: map[netip.Prefix]bool{}, after: after, seed: maphash.MakeSeed(),
		tenants: map[netip.Addr]*tenancy{},
	}
	for _, r := range ranges {
		s.ranges[r.Masked()] = true
		if !slices.Contains(s.bits, r.Bits()) {
			s.bits = append(s.bits, r.Bits())
		}
	}
	s.shared.Store(&map[netip.Addr]bool{})
	return s
}

// Has reports whether an address is shared. It takes no lock, as it is called for each link. A nil
// table has none.
func (s *SharedAddrs) Has(addr netip.Addr) bool {
	if s == nil {
		return false
	}
	addr = addr.Unmap()
	for _, bits := range s.bits {
		if r, err := addr.Prefix(bits); err == nil && s.ranges[r] {
			return true
		}
	}
	return (*s.shared.Load())[addr]
}

// Counted returns the address if its hosts share a delay, and the zero Addr if they do not.
func (s *SharedAddrs) Counted(addr netip.Addr) netip.Addr {
	if s.Has(addr) {
		return netip.Addr{}
	}
	return addr
}

// Saw records a visit to a host at an address. addrs is the number of addresses of the host's name,
// and failed means that there was no good answer. It reports whether the address has become shared,
// or is no longer so.
func (s *SharedAddrs) Saw(addr netip.Addr, host string, addrs int, failed bool) (changed bool) {
	addr = addr.Unmap()
	domain := Owner(host)
	if s.after <= 0 || !addr.IsValid() || domain == "" {
		return false
	}
	owner := maphash.String(s.seed, domain)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[addr]
	switch {
	case t == nil && failed, t != nil && t.refuted:
		return false
	case t == nil:
		t = &tenancy{}
		s.tenants[addr] = t
	case t.shared:
		return s.countAnswer(addr, t, owner, failed)
	}
	if failed {
		return false
	}
	s.known += insert(&t.owners, owner)
	if addrs > 1 {
		s.known += insert(&t.spread, owner)
	}
	if len(t.owners) < s.after && len(t.spread) < s.enoughSpread() {
		s.forget(addr)
		return false
	}
	s.known -= len(t.owners) + len(t.spread)
	*t = tenancy{shared: true}
	s.publish(func(shared map[netip.Addr]bool) { shared[addr] = true })
	return true
}

// insert adds a hash to sorted ones, and returns how many were added.
func insert(sorted *[]uint64, hash uint64) int {
	at, found := slices.BinarySearch(*sorted, hash)
	if found {
		return 0
	}
	*sorted = slices.Insert(*sorted, at, hash)
	return 1
}

// enoughSpread returns how many owners suffice if their names resolve to several addresses each.
func (s *SharedAddrs) enoughSpread() int { return max(s.after/spreadShare, 2) }

// countAnswer counts an answer of a shared address. It requires that s.mu is held.
func (s *SharedAddrs) countAnswer(
	addr netip.Addr, t *tenancy, owner uint64, failed bool,
) (changed bool) {
	t.answers++
	if failed {
		t.troubleCount++
		insert(&t.troubled, owner)
	}
	if t.answers < troubleAnswers {
		return false
	}
	least := max(min(s.enoughSpread(), troubleAnswers)/troubleShare, 2)
	if t.troubleCount*troubleShare < t.answers || len(t.troubled) < least {
		t.answers, t.troubleCount, t.troubled = 0, 0, nil
		return false
	}
	*t = tenancy{refuted: true}
	s.publish(func(shared map[netip.Addr]bool) { delete(shared, addr) })
	return true
}

// publish changes a copy of the addresses that are shared. It requires that s.mu is held.
func (s *SharedAddrs) publish(change func(map[netip.Addr]bool)) {
	shared := maps.Clone(*s.shared.Load())
	change(shared)
	s.shared.Store(&shared)
}

// forget makes room by dropping evidence, which then starts again: first that of addresses with few
// owners. It requires that s.mu is held.
func (s *SharedAddrs) forget(keep netip.Addr) {
	if s.known <= maxTenants {
		return
	}
	for _, most := range []int{2, s.after} {
		for addr, t := range s.tenants {
			if s.known <= maxTenants*3/4 {
				return
			}
			if addr != keep && !t.shared && !t.refuted && len(t.owners) <= most {
				s.known -= len(t.owners) + len(t.spread)
				delete(s.tenants, addr)
			}
		}
	}
}
