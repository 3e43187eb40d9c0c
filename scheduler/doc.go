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
// At most one lease per host and one per address is out at any moment. Two leases on a host start
// at least the host's delay apart, two leases on an address at least the address's delay, whatever
// the callers do: a lease given back twice counts once, and a lease never given back blocks its
// host and its address and nothing else.
//
// Every known host is idle (nothing queued), waiting (for its time or its turn), ready, or leased.
// If some host is ready, Next does not block. Tasks of one host are leased in the order they were
// added; hosts that share an address take turns.
//
// Add, TryNext and Done take amortised constant time at any number of hosts. A host with nothing
// queued is forgotten as soon as its delay has passed, and not before; memory is that of the most
// hosts, addresses and tasks that were held at once.
//
// # What it does not do
//
// It keeps its queues in memory, opens no socket, reads no robots.txt and resolves no name. It
// takes host names as they are: whoever adds tasks has to spell a host in one way. It keeps no
// goroutine running, so it needs no Close.
package scheduler
