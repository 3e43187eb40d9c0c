package scheduler

import "time"

// Stats is what a [Scheduler] holds and has done, as of the latest time it was told. Hosts is the
// sum of Idle, Waiting, Ready and Leased. A host, address or group that need not be known any
// longer may be counted for a while.
type Stats struct {
	Queued int // tasks that were added and not yet leased
	Hosts  int // that are known: busy ones, those whose delay runs, those with a delay of their own
	Addrs  int // that are known: those of tasks and leases, and those whose delay runs
	Groups int // that are known, likewise

	Idle    int // hosts with nothing queued and nothing leased
	Waiting int // hosts with tasks that wait for their time, their address or their group
	Ready   int // hosts that could be leased at once; one that was put off may count a while
	Leased  int // hosts that are leased, and cannot be leased once more at the same time

	Out   int   // leases that are out
	Given int64 // leases given so far

	// How often some Next had to wait although tasks were queued, and how long in all: the price of
	// politeness. Callers who wait at the same time count once.
	Waits  int64
	Waited time.Duration

	// WaitedFor counts leases by the rule that they had waited for last.
	WaitedFor [rules]int64

	// Lateness counts leases that had waited for a time by how much later they were given: by less
	// than a millisecond, 10 ms, 100 ms, 1 s, 10 s, or more.
	Lateness [lateBuckets]int64
}

// lateBuckets is how many figures Stats.Lateness has.
const lateBuckets = 6

// lateBucket returns the bucket of a lateness in nanoseconds.
func lateBucket(late int64) int {
	bucket := 0
	for bound := int64(time.Millisecond); late >= bound && bucket < lateBuckets-1; bound *= 10 {
		bucket++
	}
	return bucket
}

// Stats returns the present figures in constant time.
func (s *Scheduler[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &s.book
	busy := b.known[aHost] - b.inState[idle] - b.inState[leased]
	st := Stats{
		Queued: s.queued,
		Hosts:  b.known[aHost],
		Addrs:  b.known[anIPv4] + b.known[anIPv6],
		Groups: b.known[aGroup],

		Idle:   b.inState[idle],
		Ready:  min(b.rings.turns, busy), // the turn of a gate may outlive its line
		Leased: b.inState[leased],

		Out:       s.leased,
		Given:     int64(b.serial),
		Waits:     s.sleep.waits,
		Waited:    time.Duration(s.sleep.waited),
		WaitedFor: b.waitedFor,
		Lateness:  b.lateness,
	}
	st.Waiting = busy - st.Ready
	return st
}
