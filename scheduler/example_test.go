package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

func Example() {
	web, err := webtest.Start(webtest.Options{Hosts: 2, Pages: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer web.Close()
	client := web.Client()

	s := scheduler.New[string](scheduler.Options{HostDelay: 10 * time.Millisecond})
	for _, host := range []string{"h00000.vweb.test", "h00001.vweb.test"} {
		for _, path := range []string{"/", "/nothing"} {
			_ = s.Add(scheduler.Task[string]{Host: host, Item: "http://" + host + path})
		}
	}
	for lease, err := range s.Leases(context.Background()) {
		if err != nil {
			fmt.Println(err)
			break
		}
		start := time.Now()
		resp, err := client.Get(lease.Item())
		if err == nil {
			fmt.Println(resp.StatusCode, lease.Item())
			resp.Body.Close()
		}
		lease.Done(schedulerhttp.Outcome(start, resp, err)) // status, failure, latency, Retry-After
	}
	// Unordered output:
	// 200 http://h00000.vweb.test/
	// 200 http://h00001.vweb.test/
	// 404 http://h00000.vweb.test/nothing
	// 404 http://h00001.vweb.test/nothing
}

// A simulation passes its own times, so the example does not wait.
func ExampleScheduler_TryNext() {
	s := scheduler.New[int](scheduler.Options{HostDelay: 5 * time.Second, AddrDelay: time.Second})
	shared := netip.MustParseAddr("192.0.2.1")
	for _, host := range []string{"a.test", "b.test"} {
		s.SetHost(host, scheduler.Host{Addr: shared})
		for i := range 2 {
			_ = s.Add(scheduler.Task[int]{Host: host, Item: i})
		}
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

// A Crawl-delay affects only its host.
func ExampleScheduler_SetHost() {
	s := scheduler.New[int](scheduler.Options{})
	s.SetHost("slow.test", scheduler.Host{CrawlDelay: time.Minute})
	for i := range 2 {
		_ = s.Add(scheduler.Task[int]{Host: "slow.test", Item: i})
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease, _ := s.TryNext(now)
	lease.Done(scheduler.Outcome{})
	_, wait := s.TryNext(now)
	fmt.Println(wait)
	// Output: 1m0s
}

// Two callers need each other's host, and their own: neither waits for what it holds itself.
func ExampleLease_Context() {
	s := scheduler.New[string](scheduler.Options{HostDelay: time.Millisecond})
	for _, host := range []string{"a.test", "b.test"} {
		_ = s.Add(scheduler.Task[string]{Host: host, Item: "http://" + host + "/"})
	}
	request := func(lease *scheduler.Lease[string], host string) {
		turn, err := s.Wait(lease.Context(context.Background()), host)
		if err != nil {
			fmt.Println(err)
			return
		}
		turn.Done(scheduler.Outcome{})
	}
	ctx := context.Background()
	a, _ := s.Next(ctx)
	b, _ := s.Next(ctx)
	request(a, "a.test")
	request(b, "a.test")
	request(a, "b.test")
	fmt.Println(a.Held(), b.Held(), s.Stats().Out)
	a.Done(scheduler.Outcome{Skipped: true})    // not to be fetched
	b.Requeue(scheduler.Outcome{}, time.Time{}) // the page needs a turn of its own
	fmt.Println(s.Stats().Out, s.Stats().Queued)
	// Output:
	// false false 2
	// 0 1
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

// A failed page is retried after an hour, without delaying the others.
func ExampleLease_Requeue() {
	s := scheduler.New[string](scheduler.Options{Backoff: -1})
	_ = s.Add(scheduler.Task[string]{Host: "a.test", Item: "broken"})
	_ = s.Add(scheduler.Task[string]{Host: "a.test", Item: "fine"})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 3 {
		lease, wait := s.TryNext(now)
		for lease == nil {
			now = now.Add(wait)
			lease, wait = s.TryNext(now)
		}
		fmt.Println(now.Format(time.TimeOnly), lease.Item())
		if lease.Item() == "broken" {
			lease.Requeue(scheduler.Outcome{Start: now, Failed: true}, now.Add(time.Hour))
		} else {
			lease.Done(scheduler.Outcome{Start: now})
		}
	}
	// Output:
	// 00:00:00 broken
	// 00:00:05 fine
	// 01:00:00 broken
}

// The response of a server can lengthen the delay of its host and its address.
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
	s.SetHost("slow.test", scheduler.Host{CrawlDelay: time.Minute})
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
	// Output: slow.test waits for its Crawl-delay until 2026-01-01 00:01:00.000, 1 task queued
}

// A crawler that was killed and restarted keeps the delays.
func ExampleScheduler_Restore() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := scheduler.New[int](scheduler.Options{})
	s.SetHost("slow.test", scheduler.Host{Delay: time.Minute})
	var file strings.Builder // to be written each second
	out := json.NewEncoder(&file)
	for entry := range s.All(now) {
		if err := out.Encode(entry); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Print(file.String())

	s = scheduler.New[int](scheduler.Options{})
	now = now.Add(time.Hour)
	for in := json.NewDecoder(strings.NewReader(file.String())); in.More(); {
		var entry scheduler.Entry
		if err := in.Decode(&entry); err != nil {
			fmt.Println(err)
			break
		}
		if err := s.Restore(entry, now); err != nil {
			fmt.Println(err)
		}
	}
	_ = s.Add(scheduler.Task[int]{Host: "slow.test"})
	_, wait := s.TryNext(now)
	fmt.Println(wait)
	// Output:
	// {}
	// {"Host":"slow.test","Delay":60000000000}
	// 1m0s
}

// A redirect may lead to another host. The task moves there and keeps its priority.
func ExampleLease_Task() {
	s := scheduler.New[string](scheduler.Options{})
	_ = s.Add(scheduler.Task[string]{Host: "old.test", Item: "http://old.test/a", Priority: 3})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease, _ := s.TryNext(now)
	moved := lease.Task()
	lease.Done(scheduler.Outcome{Status: 301})

	moved.Host, moved.Item = "new.test", "http://new.test/a"
	_ = s.Add(moved)
	lease, _ = s.TryNext(now)
	fmt.Println(lease.Item(), lease.Task().Priority)
	lease.Done(scheduler.Outcome{})
	// Output: http://new.test/a 3
}

// A visit that takes too long shows in a status page.
