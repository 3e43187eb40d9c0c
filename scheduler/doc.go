// Package scheduler decides which URL may be fetched next, and when.
//
// A [Scheduler] has a queue for each host. A [Lease] permits one request, and ends with Done:
//
//	for lease, err := range s.Leases(ctx) { // ends when nothing is queued or in flight
//		if err != nil {
//			return err
//		}
//		go func() {
//			start := time.Now()
//			resp, err := get(lease.Item())
//			lease.Done(schedulerhttp.Outcome(start, resp, err)) // status, failure, latency
//		}()
//	}
//
// [Scheduler.Wait] is for requests without a queue, package schedulerhttp for any HTTP client.
//
// # What it promises
//
// At most one lease per host, address and group is out, or as many as Options say. Two leases on a
// host start at least its delay apart, likewise on an address and on a group, whatever the callers
// do: a lease returned twice counts once, one never returned ends after Options.LeaseTimeout, and
// [Scheduler.Restore] carries the delays over a crash. Slow responses, failures and Retry-After
// make the delay of a host and of its address longer.
//
// Tasks of one host and priority are leased in the order in which they were added. Hosts of an
// address, or of a group, take turns: each overtakes a waiting one at most once. A host that has
// both waits for a turn of its address, then of its group, and at most once more for its address;
// the group is held for it that long. Otherwise, Next does not block while a host is ready.
//
// # What it costs
//
// Add, TryNext and Done take amortized constant time at any number of hosts. A host takes 60 bytes
// beside its name, an address 58, a task 8 beside its item, one with a NotBefore 28. The memory is
// that of the most held at once, with no pointers for the garbage collector but those in items.
//
// # What it does not do
//
// It keeps its queues in memory, reads no robots.txt and resolves no name. It takes host names as
// they are: spell a host in one way. It needs no Close.
package scheduler
