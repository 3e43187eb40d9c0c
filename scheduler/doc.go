// Package scheduler decides which URL may be fetched next, and when.
//
// A [Scheduler] holds one queue per host and hands out [Lease] values. Who has a lease may send
// one request to its host, and gives the lease back with [Lease.Done]:
//
//	lease, err := s.Next(ctx) // waits; ErrDrained when nothing is left to wait for
//	if err != nil {
//		return err
//	}
//	start := time.Now()
//	visit(lease.Item())
//	lease.Done(scheduler.Outcome{Start: start, Took: time.Since(start)})
//
// # Invariants
//
// At most one lease per host, address and group is out at any moment, or as many as Options say.
// Two leases on a host start at least the host's delay apart, likewise on an address and a group,
// whatever the callers do: a lease given back twice counts once, and one never given back blocks
// its host, address and group and nothing else. [Scheduler.LoadState] carries this over a kill.
//
// Every known host is idle (nothing queued), waiting (for its time or its turn), ready, or leased;
// [Scheduler.Explain] says why. If some host is ready, Next does not block. Tasks of one host and
// priority are leased in the order they were added; hosts that share an address take turns.
//
// Add, TryNext and Done take amortised constant time at any number of hosts. Only where tasks have
// both an address and a group may a host be moved from line to line each time one of them gets
// free; then a host may also be overtaken by one that needs the same group but another address.
// A host with nothing queued is forgotten some time after its delay has passed, not before. Memory
// is that of the most that was held at once, and has no pointers for the garbage collector to
// follow but those in the items.
//
// [Stepped] is a simpler scheduler, that of a paper, for comparison and for strictly fixed memory.
//
// # What it does not do
//
// It keeps its queues in memory, opens no socket, reads no robots.txt and resolves no name. It
// takes host names as they are: whoever adds tasks has to spell a host in one way. It keeps no
// goroutine running, so it needs no Close, which only ends what others wait for.
package scheduler
