package stepped_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/scheduler/stepped"
)

// The algorithm of the paper releases whole lists.
func Example() {
	s := stepped.New[string](stepped.Options{})
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
