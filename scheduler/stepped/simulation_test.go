package stepped_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/stepped"
)

// The simulated web: the servers limit a crawl, and pages never run out.
const (
	simHosts     = 500
	simAddrs     = 50
	simAddrDelay = time.Second
	simHostDelay = 5 * time.Second
	simBacklog   = 4 // pages known of each host at any time
	simTime      = 10 * time.Minute
)

// A simVisit is a visit in flight.
type simVisit struct {
	host  int
	start time.Time
	took  time.Duration
}

func (v simVisit) end() time.Time { return v.start.Add(v.took) }

// simHeap holds visits by their ends.
type simHeap []simVisit

func (h simHeap) Len() int           { return len(h) }
func (h simHeap) Less(i, j int) bool { return h[i].end().Before(h[j].end()) }
func (h simHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *simHeap) Push(v any)        { *h = append(*h, v.(simVisit)) }
func (h *simHeap) Pop() any {
	old := *h
	v := old[len(old)-1]
	*h = old[:len(old)-1]
	return v
}

// A simScheduler is the scheduler under test.
type simScheduler interface {
	add(host int)
	next(now time.Time) (hosts []int, wait time.Duration)
	done(v simVisit)
}

// A simResult is the result of a simulated crawl.
type simResult struct {
	pages                int
	hostEarly, addrEarly int // visits too soon after the previous one
}

// share returns the pages fetched as a share of the best possible crawl.
func (r simResult) share() float64 {
	ideal := float64(simAddrs) * simTime.Seconds() / simAddrDelay.Seconds()
	return float64(r.pages) / ideal
}

func simAddr(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(host % simAddrs)})
}

// simulate crawls in virtual time. Latencies are log-normal around 200 ms, one in twenty is 3 s.
func simulate(s simScheduler) (result simResult) {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := now.Add(simTime)
	for range simBacklog {
		for host := range simHosts {
			s.add(host)
		}
	}
	lastOfHost, lastOfAddr := map[int]time.Time{}, map[netip.Addr]time.Time{}
	under := &simHeap{}
	for now.Before(end) {
		hosts, wait := s.next(now)
		for _, host := range hosts {
			took := time.Duration(200e6 * math.Exp(0.5*r.NormFloat64()))
			if r.IntN(20) == 0 {
				took = 3 * time.Second
			}
			if last, ok := lastOfHost[host]; ok && now.Sub(last) < simHostDelay {
				result.hostEarly++
			}
			if last, ok := lastOfAddr[simAddr(host)]; ok && now.Sub(last) < simAddrDelay {
				result.addrEarly++
			}
			lastOfHost[host], lastOfAddr[simAddr(host)] = now, now
			heap.Push(under, simVisit{host, now, took})
			result.pages++
		}
		if len(hosts) > 0 {
			continue
		}
		then := end
		if wait != stepped.Forever {
			then = now.Add(wait)
		}
		if under.Len() > 0 && !(*under)[0].end().After(then) {
			v := heap.Pop(under).(simVisit)
			now = v.end()
			s.add(v.host)
			s.done(v)
			continue
		}
		now = then
	}
	return result
}

// simDefault drives a Scheduler.
type simDefault struct {
	*scheduler.Scheduler[int]
	leases map[int]*scheduler.Lease[int]
}

func (s simDefault) add(host int) {
	s.SetHost(fmt.Sprint(host), scheduler.Host{Addr: simAddr(host)})
	_ = s.Add(scheduler.Task[int]{Host: fmt.Sprint(host), Item: host})
}

func (s simDefault) next(now time.Time) ([]int, time.Duration) {
	lease, wait := s.TryNext(now)
	if lease == nil {
		return nil, wait
	}
	lease.Arrived(now)
	s.leases[lease.Item()] = lease
	return []int{lease.Item()}, 0
}

func (s simDefault) done(v simVisit) {
	s.leases[v.host].Done(scheduler.Outcome{Start: v.start, Took: v.took})
}

// simStepped drives the paper's algorithm with a step of the address's delay.
type simStepped struct{ *stepped.Scheduler[int] }

func (s simStepped) add(host int)                              { s.Add(simAddr(host), 0, host) }
func (s simStepped) next(now time.Time) ([]int, time.Duration) { return s.Next(now) }
func (s simStepped) done(v simVisit)                           { s.Done(v.end()) }

func newSimDefault(o scheduler.Options) simDefault {
	o.HostDelay, o.AddrDelay = simHostDelay, simAddrDelay
	return simDefault{scheduler.New[int](o), map[int]*scheduler.Lease[int]{}}
}

// TestSimulatedCrawl compares the schedulers on one web. Time is virtual, so the figures are the
// same on every machine.
func TestSimulatedCrawl(t *testing.T) {
	for _, tt := range []struct {
		name      string
		scheduler simScheduler
		least     float64
	}{
		{"one visit at a time per address", newSimDefault(scheduler.Options{}), 0.88},
		{"up to four visits at a time per address", newSimDefault(scheduler.Options{MaxPerAddr: 4}), 0.96},
		{"that of the paper", simStepped{stepped.New[int](stepped.Options{Step: simAddrDelay})}, 0},
	} {
		r := simulate(tt.scheduler)
		t.Logf("%-45s %6d pages, %.3f of the ideal, early: %d by host, %d by address",
			tt.name, r.pages, r.share(), r.hostEarly, r.addrEarly)
		require.GreaterOrEqual(t, r.share(), tt.least, tt.name)
		require.Zero(t, r.addrEarly, tt.name)
		if _, both := tt.scheduler.(simDefault); both {
			require.Zero(t, r.hostEarly, tt.name)
		}
	}
}
