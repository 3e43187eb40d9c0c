package scheduler_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// ip returns the n-th of many addresses.
func ip(n int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 10<<24+uint32(n))
	return netip.AddrFrom4(b)
}

// crowd returns a task for each of so many hosts, each with an address of its own.
func crowd(hosts int) []scheduler.Task[int] {
	tasks := make([]scheduler.Task[int], hosts)
	for i := range tasks {
		tasks[i] = scheduler.Task[int]{
			Host: fmt.Sprintf("www.host-%07d.example", i), Addr: ip(i), Item: i,
		}
	}
	return tasks
}

// BenchmarkCycle gives a lease, gives it back and adds the next task of the host, while time runs
// so that hosts get ready as fast as they are leased.
func BenchmarkCycle(b *testing.B) {
	for _, hosts := range []int{1e3, 1e5, 1e6} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			tasks := crowd(hosts)
			s := scheduler.New[int](scheduler.Options{})
			for _, t := range tasks {
				_ = s.Add(t)
			}
			now, step := start, scheduler.DefaultHostDelay/time.Duration(hosts)
			cycle := func() {
				lease, wait := s.TryNext(now)
				for lease == nil {
					now = now.Add(wait)
					lease, wait = s.TryNext(now)
				}
				lease.Done(scheduler.Outcome{})
				_ = s.Add(tasks[lease.Item()])
				now = now.Add(step)
			}
			for range 2 * hosts { // until leases are spread over the delay
				cycle()
			}
			b.ReportAllocs()
			for b.Loop() {
				cycle()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leases/s")
		})
	}
}

// heap returns the bytes that are in use.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkMemory reports what a host costs of which the delay runs and nothing is queued, with its
// name and its address, and what a queued task costs, with its item of 8 bytes.
func BenchmarkMemory(b *testing.B) {
	const hosts, tasksPerHost = 100_000, 10
	tasks := crowd(hosts)
	var idle, queued float64
	for b.Loop() {
		s := scheduler.New[int](scheduler.Options{})
		empty := heap()
		for _, t := range tasks {
			_ = s.Add(t)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
		}
		idle = heap() - empty
		for range tasksPerHost {
			for _, t := range tasks {
				_ = s.Add(t)
			}
		}
		queued = heap() - empty - idle
		runtime.KeepAlive(s)
	}
	runtime.KeepAlive(tasks)
	b.ReportMetric(idle/hosts, "B/host")
	b.ReportMetric(queued/hosts/tasksPerHost, "B/task")
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
