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

// The answer of a server slows its host and its address down.
func ExampleOutcome() {
	s := scheduler.New[int](scheduler.Options{})
	for i := range 2 {
		_ = s.Add(scheduler.Task[int]{Host: "busy.test", Item: i})
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease, _ := s.TryNext(now)
	lease.Done(scheduler.Outcome{Status: 429, RetryAfter: now.Add(2 * time.Minute)})
	_, wait := s.TryNext(now)
	fmt.Println(wait)
	// Output: 2m0s
}

func ExampleScheduler_Explain() {
	s := scheduler.New[int](scheduler.Options{})
	s.SetDelay("slow.test", time.Minute)
	for i := range 2 {
		_ = s.Add(scheduler.Task[int]{Host: "slow.test", Item: i})
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease, _ := s.TryNext(now)
	lease.Done(scheduler.Outcome{})
	s.TryNext(now)
	reason := s.Explain("slow.test")
	reason.Until = reason.Until.UTC() // rather than the time zone of the machine
	fmt.Println("slow.test", reason)
	// Output: slow.test waits for its Crawl-delay until 2026-01-01 00:01:00.000, 1 tasks queued
}

// A crawler that is killed and started again is as polite as if it had gone on.
func ExampleScheduler_LoadState() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := scheduler.New[int](scheduler.Options{})
	s.SetDelay("slow.test", time.Minute)
	state := s.AppendState(nil, now) // to be written to a file, each second

	s = scheduler.New[int](scheduler.Options{})
	if err := s.LoadState(state, now.Add(time.Hour)); err != nil {
		fmt.Println(err)
	}
	_ = s.Add(scheduler.Task[int]{Host: "slow.test"})
	_, wait := s.TryNext(now.Add(time.Hour))
	fmt.Println(wait)
	// Output: 1m0s
}

// The algorithm of the paper releases whole lists.
func ExampleStepped() {
	s := scheduler.NewStepped[string](scheduler.SteppedOptions{})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	start := now
	shared := netip.MustParseAddr("192.0.2.1")
	s.Add(shared, 0, "http://a.test/1")
	s.Add(shared, 0, "http://b.test/1")
	s.Add(netip.MustParseAddr("192.0.2.2"), 0, "http://c.test/1")
	for s.Stats().Queued > 0 {
		urls, wait := s.Next(now)
		if urls == nil {
			now = now.Add(wait)
			continue
		}
		fmt.Println(now.Sub(start), urls)
		for range urls {
			s.Done(now) // each visit ends
		}
	}
	// Output:
	// 5s [http://a.test/1 http://c.test/1]
	// 10s [http://b.test/1]
}
