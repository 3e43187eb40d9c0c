package scheduler

// A limiter spaces out leases: it is what a host and a shared limiter have in common. The time at
// which its delay has passed is in its timer, and what few limiters need is in an extra.
type limiter struct {
	key   uint32 // the position of its name in names
	extra uint32 // 0 if there is none
	tasks uint32 // queued; of a shared limiter, those of all its hosts
	out   uint16 // leases, and pendingBit
	state state
	kind  kind
}

// A hostLimiter is a host. It fills half a cache line.
type hostLimiter struct {
	limiter
	last        uint32 // of the tasks that may be leased; 0 if there are none. Its next one is the first
	used        uint32 // stamp of the last use
	addr, group uint32 // to which it belongs; 0 if there is none
}

// A sharedLimiter is an address or a group, to which many hosts may belong.
type sharedLimiter struct {
	limiter
	waitlist
	hosts  uint32 // that belong to it
	holder uint32 // of a group: the host that it is held for; 0 if there is none
}

// sharedBit is set in the numbers of shared limiters, and not in those of hosts.
const sharedBit = 1 << 31

// A waitlist has the hosts that wait for a shared limiter, in the order in which they get it: those
// at the front, then the rest. Those with a caller of Wait come before all others, in the order in which
// they were called. They keep their place among the others, for the case that the caller gives up.
type waitlist struct {
	chain
	lastFront uint32 // of the hosts at the front; 0 if there is none
	called    chain  // of the extras of the hosts with a caller
}

// join requires that the host is in no chain.
func (w *waitlist) join(timers *timers, host uint32, front bool) {
	if !front {
		w.push(timers, host)
		return
	}
	w.insert(timers, host, w.lastFront)
	w.lastFront = host
}

// leave requires that the host is in the waitlist.
func (w *waitlist) leave(timers *timers, host uint32) {
	if w.lastFront == host {
		w.lastFront = timers.at(host).prev
	}
	w.remove(timers, host)
}

// pendingBit is set in limiter.out while the arrival time of some request in flight is unknown. It
// makes out larger than any bound, so that no other lease is given. It is used only where several
// leases are allowed; a single one blocks the next one without it.
const pendingBit = 1 << 15

// A kind is the kind of a limiter.
type kind uint8

const (
	aHost kind = iota
	anAddr
	aGroup
	kinds
)

// An extra is the state that few limiters have, mostly what makes a delay longer than the default.
type extra struct {
	owner    uint32
	failures uint8  // net of successes, for the back-off
	stays    uint8  // see strange: how many times in a row the host has stayed
	raised   uint64 // serial of the last flight when a failure was last counted
	start    int64  // of the last visit, from which the delays count; longAgo if there was none
	retry    int64  // the Retry-After of the server; longAgo if there is none

	// The delays for the latencies of the last visits, newest first; 0 if a delay is not more than
	// the default. A host needs only the first.
	slow [3]int64

	// Only hosts have the rest.
	waiters uint32             // callers of Wait
	calls   uint32             // the shared limiter in whose list of called hosts it is; 0 if in none
	spent   uint32             // leases of which only the task is left; the host stays known
	strange uint32             // the address to which a visit was refused while the host waited for another one
	wanted  int64              // Host.Delay; 0 if that is not more than the default
	asked   int64              // Host.CrawlDelay, likewise
	ranked  bool               // the queue has tasks of several priorities
	tails   [priorities]uint32 // the last task of each priority, if ranked
}
