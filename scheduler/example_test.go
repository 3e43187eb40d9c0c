package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

func Example() {
	s := scheduler.New[string](scheduler.Options{HostDelay: 10 * time.Millisecond})
	for _, url := range []string{"http://a.test/1", "http://a.test/2", "http://b.test/1"} {
		_ = s.Add(scheduler.Task[string]{Host: url[7:13], Item: url})
	}
	for {
		lease, err := s.Next(context.Background())
		if errors.Is(err, scheduler.ErrDrained) {
			break
		}
		start := time.Now()
		fmt.Println(lease.Item()) // the visit
		lease.Done(scheduler.Outcome{Start: start, Took: time.Since(start)})
	}
	// Output:
	// http://a.test/1
	// http://b.test/1
	// http://a.test/2
}

// A simulation brings its own time: no second passes while this runs.
func ExampleScheduler_TryNext() {
	s := scheduler.New[int](scheduler.Options{HostDelay: 5 * time.Second, AddrDelay: time.Second})
	shared := netip.MustParseAddr("192.0.2.1")
	for i := range 2 {
		_ = s.Add(scheduler.Task[int]{Host: "a.test", Addr: shared, Item: i})
		_ = s.Add(scheduler.Task[int]{Host: "b.test", Addr: shared, Item: i})
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for now := start; s.Stats().Queued > 0; {
		lease, wait := s.TryNext(now)
		if lease == nil {
			now = now.Add(wait)
			continue
		}
		fmt.Println(now.Sub(start), lease.Host(), lease.Item())
		lease.Done(scheduler.Outcome{})
	}
	// Output:
	// 0s a.test 0
	// 1s b.test 0
	// 5s a.test 1
	// 6s b.test 1
}

// What is found in a robots.txt slows its host alone.
func ExampleScheduler_SetDelay() {
	s := scheduler.New[int](scheduler.Options{})
	s.SetDelay("slow.test", time.Minute)
	for i := range 2 {
		_ = s.Add(scheduler.Task[int]{Host: "slow.test", Item: i})
	}
	lease, _ := s.TryNext(time.Now())
	lease.Done(scheduler.Outcome{})
	_, wait := s.TryNext(time.Now())
	fmt.Println(wait > scheduler.DefaultHostDelay)
	// Output: true
}

func ExampleLease_Done() {
	s := scheduler.New[string](scheduler.Options{})
	_ = s.Add(scheduler.Task[string]{Host: "a.test", Item: "forbidden"})
	_ = s.Add(scheduler.Task[string]{Host: "a.test", Item: "allowed"})
	now := time.Now()

	lease, _ := s.TryNext(now)
	lease.Done(scheduler.Outcome{Skipped: true}) // no request, no delay

	lease, _ = s.TryNext(now)
	fmt.Println(lease.Item())
	// Output: allowed
}
