package scheduler

// A limiter spaces out leases: it is a host, an address or a group. Addresses and groups are shared
// limiters, as many hosts may belong to one. The record is half a cache line; data that few
// limiters need is in an extra. The time at which its delay has passed is in its timer.
type limiter struct {
	key   uint32 // the IPv4 address itself, or the position of the key in names
	extra uint32 // 0 if there is none

	// Of a shared limiter: the waitlist, a chain of hosts. Of a host: the first and last of its
	// tasks that may be leased, linked by their next fields. If there are none, tail is the stamp
	// of the host's last use.
	chain

	tasks uint32 // queued; of a shared limiter, those of all its hosts

	// Of a host: its address and its group, or 0. A shared limiter has other uses for them, see
	// hosts and lastFront.
	addr, group uint32

	out   uint16 // leases, and pendingBit
	state state
	kind  kind
}

// hosts is how many hosts belong to a shared limiter.
func (p *limiter) hosts() *uint32 { return &p.addr }

// lastFront is the last of the hosts at the front of a waitlist, which only hosts with a caller of
// Wait may overtake. It is 0 if there is none.
func (p *limiter) lastFront() *uint32 { return &p.group }

// pendingBit is set in limiter.out while the arrival time of some request in flight is unknown. It
// makes out larger than any bound, so that no other lease is given. It is used only where several
// leases are allowed; a single one blocks the next one without it.
const pendingBit = 1 << 15

// A kind is the kind of a limiter.
type kind uint8

const (
	aHost  kind = iota
	anIPv4      // the most common kind of address; its key is not in names
	anIPv6      // with its zone, if it has one
	aGroup
	kinds
)

// A state is the list that a host or a shared limiter is in, if any:
//
//	waiting ──► atAddr, atGroup ──► ready ──► leased
//	   ▲               ▲              ▲         │
//	   └───────────────┴──────────────┴─────────┤  something to do
//	idle ◄──────────────────────────────────────┘  nothing to do
//
// The work of a host is its queue, that of a shared limiter its waitlist. Only placeHost,
// placeShared and serve choose between these states. Once its delay has passed, sweep removes an
// idle limiter.
type state uint8

const (
	vacant  state = iota // no limiter
	idle                 // nothing to do; its delay may still be running
	waiting              // in the wheel
	atAddr               // host: in the waitlist of its address
	atGroup              // host: in the waitlist of its group
	holding              // host: atAddr and next there, with its group held for it
	held                 // group: for the host that is holding it
	leased               // as many leases as allowed, or no more work
	ready                // plus its level: in the ready list of that level
)

// The levels of the ready lists: a level for each priority, and one for callers of Wait.
const (
	waitLevel = priorities
	levels    = waitLevel + 1
)

// readyLists has a list for each level, and a word with a bit for each list that is not empty.
type readyLists struct {
	of    [levels]chain
	inUse uint16
	count int
}
