package scheduler

// A limiter is what leases are spaced by: a host, an address or a group. Addresses and groups are
// shared limiters, as many hosts may belong to one. The record is half a cache line; what few
// limiters need is in an extra. When its delay has passed is in its timer.
type limiter struct {
	key   uint32 // the IPv4 address itself, or where in names the key is
	extra uint32 // 0 if there is nothing unusual to remember

	// Of a shared limiter: the waitlist, a chain of hosts. Of a host: its first and last task that
	// may be leased, which are linked by their own next. With none, tail is the stamp of when the
	// host was last used.
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

// lastFront is the last host of a waitlist that no host may overtake. All before it are such hosts,
// too. It is 0 if there is none.
func (p *limiter) lastFront() *uint32 { return &p.group }

// pendingBit is set in limiter.out while a lease is out of which it is not known when the request
// reaches the server. It makes out larger than any bound, so that no other lease is given. It is
// used only where several leases may be out; a single one needs no bit to keep the next one
// waiting.
const pendingBit = 1 << 15

// A kind says what a limiter is.
type kind uint8

const (
	aHost  kind = iota
	anIPv4      // the most frequent kind of address needs no name
	anIPv6      // with its zone, if it has one
	aGroup
	kinds
)

// A state says where a host or a shared limiter is to be found:
//
//	waiting ──► atAddr, atGroup ──► ready ──► leased
//	   ▲               ▲              ▲         │
//	   └───────────────┴──────────────┴─────────┤  something to do
//	idle ◄──────────────────────────────────────┘  nothing to do
//
// What a host has to do is its queue, what a shared limiter has to do is its waitlist. Only
// placeHost, placeShared and serve choose between these states. An idle limiter is forgotten after
// its delay, when sweep comes to it.
type state uint8

const (
	vacant  state = iota // no limiter
	idle                 // nothing to do, perhaps a delay that runs
	waiting              // in the wheel
	atAddr               // host: in the waitlist of its address
	atGroup              // host: in the waitlist of its group
	holding              // host: atAddr and next there, while its group is held for it
	held                 // group: for the host that is holding it
	leased               // as often as possible at a time, or with nothing more to do
	ready                // plus its level: in the ready list of that level
)

// The levels of the ready lists: a level for each priority, and one for callers of Wait.
const (
	waitLevel = priorities
	levels    = waitLevel + 1
)

// readyLists has a list for each level. A word has a bit for each list that is not empty.
type readyLists struct {
	of    [levels]chain
	inUse uint16
	count int
}
