// Package scheduler decides which URL may be fetched next, and when.
//
// A [Scheduler] has a queue for each host. A [Lease] permits one request, and ends with Done:
//
//	for lease, err := range s.Leases(ctx) { // ends when nothing is queued or in flight
//		start := time.Now()
//		resp, err := get(lease.Item())
//		lease.Done(schedulerhttp.Outcome(start, resp, err)) // status, failure, latency
//	}
//
// [Scheduler.Wait] is for requests without a queue, package schedulerhttp for any HTTP client. Pass
// [Lease.Context] to what makes other requests on the way, so that it does not wait for the caller.
//
// # What it promises
//
// At most one lease per host, address and group is outstanding, unless Options allow more. Two
// leases on a host start at least its delay apart; the same holds for addresses and groups. Callers
// cannot break this: a second Done has no effect, a lease without Done ends after
// Options.LeaseTimeout, and [Scheduler.Restore] preserves the delays across a crash. Slow
// responses, failures and Retry-After lengthen the delay of a host and of its address.
//
// Tasks of one host and priority are leased in the order in which they were added. Hosts that share
// an address or a group take turns: none overtakes a waiting one more than once, unless a caller of
// Wait wants it, which always comes first. A host with both waits for its address, its group, and
// at most once more for its address, while no other host of the group is leased. Otherwise Next
// does not block while a host is ready.
//
// # What it costs
//
// Add, TryNext and Done take amortized constant time, independent of the number of hosts, except
// that the hosts of a slow address in a busy group change lists at each visit there: 16 ms for
// 100,000. A host takes 60 bytes plus its name, an address 80, a task 8 plus its item, or 32 with a
// NotBefore. Memory is reused but does not shrink. Queues are in memory. No Close is needed.
//
// # Reading the source
//
// limiter.go has the records of hosts, addresses and groups, and states.go the states that they can
// be in, with all changes of these. engine.go is the course of a visit, delay.go what follows from
// its outcome, known.go how limiters are found and forgotten, queue.go the tasks. scheduler.go,
// lease.go and wait.go are the exported side, with locks and goroutines. The rest are containers.
package scheduler
