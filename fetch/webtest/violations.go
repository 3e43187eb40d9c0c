package webtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Violation is a pair of requests that arrived too close to each other.
type Violation struct {
	Earlier, Later Request
	Gap, Want      time.Duration
	ByAddr         bool // the address's delay was broken; false means the host's
}

// String says what happened in one sentence.
func (v Violation) String() string {
	what := "host " + v.Later.Host
	if v.ByAddr {
		what = fmt.Sprintf("address %s (after %s)", v.Later.Addr, v.Earlier.URL())
	}
	return fmt.Sprintf("%s came %s after the request before it to %s; the delay is %s",
		v.Later.URL(), v.Gap, what, v.Want)
}

// Early returns the requests that arrived less than delay after the previous one on the same host
// or the same address. A request that is too early for both is reported once, for its host. With
// [Options].NoLog it finds nothing.
func (w *Web) Early(delay time.Duration) []Violation {
	same := func(string) time.Duration { return delay }
	found := Violations(w.Log(), same, func(netip.Addr) time.Duration { return delay })
	return slices.CompactFunc(found, func(a, b Violation) bool {
		return a.Later == b.Later && a.ByAddr != b.ByAddr
	})
}

// Violations returns every request in log that arrived too soon after the previous one on the same
// host or the same address. The functions return the delays; a nil function checks nothing. The log
// need not be sorted. Scheduling of two processes affects the times between departure and arrival,
// so allow some slack if a client is judged by its own delays.
func Violations(log []Request, hostDelay func(host string) time.Duration,
	addrDelay func(netip.Addr) time.Duration) []Violation {
	log = slices.Clone(log)
	slices.SortStableFunc(log, func(a, b Request) int { return a.Time.Compare(b.Time) })
	var found []Violation
	hosts := make(map[string]Request)
	addrs := make(map[netip.Addr]Request)
	for _, r := range log {
		if v, bad := tooSoon(hosts, r.Host, r, hostDelay); bad {
			found = append(found, v)
		}
		if !r.Addr.IsValid() {
			continue // a proxy request for a host that does not exist
		}
		if v, bad := tooSoon(addrs, r.Addr, r, addrDelay); bad {
			v.ByAddr = true
			found = append(found, v)
		}
	}
	return found
}

// tooSoon compares a request with the previous one under the same key, and replaces it.
func tooSoon[K comparable](before map[K]Request, key K, r Request,
	delay func(K) time.Duration) (v Violation, bad bool) {
	if delay == nil {
		return v, false
	}
	earlier, ok := before[key]
	before[key] = r
	v = Violation{Earlier: earlier, Later: r, Gap: r.Time.Sub(earlier.Time), Want: delay(key)}
	return v, ok && v.Gap < v.Want
}

// Disallowed returns the requests that a host's robots.txt forbids, as the constants of
// [RobotsMode] say. With [Options].NoLog it finds nothing.
func (w *Web) Disallowed() (found []Request) {
	for _, r := range w.Log() {
		path, _, _ := strings.Cut(r.Path, "?")
		if path != robotsPath && path != robotsCopy && !w.Allows(r.URL()) {
			found = append(found, r)
		}
	}
	return found
}
