package scheduler

// A place is whatever has a delay: a host, an address or a group. Addresses and groups are also
// called gates, as hosts stand in line there. The record is half a cache line; what few places
// need is in a manner.
type place struct {
	due    int64  // when the delays have passed; longAgo if none was ever charged
	key    uint32 // the IPv4 address itself, or where in names the key is
	manner uint32 // 0 if there is nothing unusual to remember

	// Of a host these are its first and last task, of a gate the first and last host in its line.
	head uint32 // 0 if there is none
	tail uint32

	count uint32 // of a host: tasks queued; of a gate: tasks queued that go there, and leases
	out   uint16 // leases
	state state
	kind  kind
}

// A kind says what a place is.
type kind uint8

const (
	aHost  kind = iota
	anIPv4      // the most frequent kind of address needs no name
	anIPv6      // with its zone, if it has one
	aGroup
	kinds
)

// A state says where a host or a gate is to be found:
//
//	waiting ──► inLine ──► ready ──► leased
//	   ▲           ▲         ▲          │
//	   └───────────┴─────────┴──────────┤  something to do there
//	idle ◄──────────────────────────────┘  nothing to do
//
// What a host has to do is its queue, what a gate has to do is its line of hosts. Only settleHost
// and settleGate choose between these states. What is idle is forgotten after its delay, when the
// hand that sweeps over the places comes to it.
type state uint8

const (
	vacant  state = iota // no place
	idle                 // nothing to do, perhaps a delay that runs
	waiting              // in the wheel
	inLine               // of a host only: at a gate, which need not be ready
	ready                // in the rings
	leased               // as often as may be at once, or with nothing more to do
	states
)
