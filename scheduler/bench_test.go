package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// crowd returns one task for each of many hosts.
func crowd(hosts int) []scheduler.Task[int] {
	tasks := make([]scheduler.Task[int], hosts)
	for i := range tasks {
		tasks[i] = scheduler.Task[int]{Host: fmt.Sprintf("www.host-%07d.example", i), Item: i}
	}
	return tasks
}

// addCrowd adds tasks, and gives each host its own address.
func addCrowd(s *scheduler.Scheduler[int], tasks []scheduler.Task[int]) {
	for _, t := range tasks {
		s.SetHost(t.Host, scheduler.Host{Addr: ip(t.Item)})
		_ = s.Add(t)
	}
}

// A treadmill leases a task, ends the lease and adds the next task of the host, while time advances
// so that hosts become ready as fast as they are leased.
type treadmill struct {
	s     *scheduler.Scheduler[int]
	tasks []scheduler.Task[int]
	now   time.Time
	step  time.Duration
}

// newTreadmill returns a treadmill whose leases are spread evenly over the delay.
func newTreadmill(tasks []scheduler.Task[int]) *treadmill {
	m := &treadmill{
		s:     scheduler.New[int](scheduler.Options{MaxQueue: -1}),
		tasks: tasks, now: start, step: scheduler.DefaultHostDelay / time.Duration(len(tasks)),
	}
	addCrowd(m.s, tasks)
	for range 2 * len(tasks) {
		m.cycle()
	}
	return m
}

func (m *treadmill) cycle() {
	for {
		lease, wait := m.s.TryNext(m.now)
		if lease != nil {
			lease.Done(scheduler.Outcome{})
			_ = m.s.Add(m.tasks[lease.Item()])
			m.now = m.now.Add(m.step)
			return
		}
		m.now = m.now.Add(wait)
	}
}

// BenchmarkCycle visits the hosts in the order in which they were added, which is good for caches,
// or in random order, as a crawl does.
func BenchmarkCycle(b *testing.B) {
	for _, order := range []string{"added", "random"} {
		for _, hosts := range []int{1e3, 1e5, 1e6, 1e7} {
			b.Run(fmt.Sprintf("order=%s/hosts=%d", order, hosts), func(b *testing.B) {
				if hosts > 1e6 && testing.Short() {
					b.Skip("4 GB; not with -short")
				}
				tasks := crowd(hosts)
				m := newTreadmill(tasks)
				if order == "random" {
					// Each host gets a random delay, so the original order is lost.
					shuffle(m)
				}
				b.ReportAllocs()
				for b.Loop() {
					m.cycle()
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leases/s")
			})
		}
	}
}

// shuffle leases every host once more, with the next visit at a random time.
func shuffle(m *treadmill) {
	var leases []*scheduler.Lease[int]
	m.now = m.now.Add(scheduler.DefaultHostDelay)
	for range m.tasks {
		lease, _ := m.s.TryNext(m.now)
		leases = append(leases, lease)
	}
	rand.Shuffle(len(leases), func(i, j int) { leases[i], leases[j] = leases[j], leases[i] })
	for i, lease := range leases {
		lease.Done(scheduler.Outcome{Start: m.now.Add(time.Duration(i) * m.step)})
		_ = m.s.Add(m.tasks[lease.Item()])
	}
	m.now = m.now.Add(scheduler.DefaultHostDelay)
}

// BenchmarkGoroutines calls Next, Done and Add concurrently without delays, so the callers wait
// only for the lock.
func BenchmarkGoroutines(b *testing.B) {
	for _, goroutines := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			tasks := crowd(1e5)
			s := scheduler.New[int](scheduler.Options{HostDelay: -1})
			addCrowd(s, tasks)
			b.ReportAllocs()
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						lease, err := s.Next(b.Context())
						if err != nil {
							return
						}
						lease.Done(scheduler.Outcome{})
						_ = s.Add(tasks[lease.Item()])
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leases/s")
		})
	}
}

// BenchmarkOneHost adds ten million tasks for one host and takes some.
func BenchmarkOneHost(b *testing.B) {
	if testing.Short() {
		b.Skip("400 MB; not with -short")
	}
	const tasks = 10_000_000
	for b.Loop() {
		s := scheduler.New[int](scheduler.Options{HostDelay: -1, MaxQueue: -1})
		for i := range tasks {
			_ = s.Add(scheduler.Task[int]{Host: "a", Item: i})
		}
		for range tasks / 10 {
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
		}
	}
	b.ReportMetric(1.1*tasks*float64(b.N)/b.Elapsed().Seconds(), "operations/s")
}

// heap returns the bytes in use.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkMemory reports the cost of a host whose delay is running and that has nothing queued,
// without its name and address; of such an address; and of a queued task and of a deferred one,
// without their items.
func BenchmarkMemory(b *testing.B) {
	const hosts, tasksPerHost, item = 1_000_000, 10, 8
	tasks := crowd(hosts)
	run := func(addr bool, notBefore time.Time) (idle, queued float64) {
		s := scheduler.New[int](scheduler.Options{MaxQueue: -1})
		empty := heap()
		for _, t := range tasks {
			if addr {
				s.SetHost(t.Host, scheduler.Host{Addr: ip(t.Item)})
			}
			_ = s.Add(t)
			lease, _ := s.TryNext(start)
			lease.Done(scheduler.Outcome{})
		}
		idle = heap() - empty
		for range tasksPerHost {
			for _, t := range tasks {
				t.NotBefore = notBefore
				_ = s.Add(t)
			}
		}
		queued = heap() - empty - idle
		runtime.KeepAlive(s)
		return idle, queued
	}
	name := float64(len(tasks[0].Host))
	for b.Loop() {
		alone, deferred := run(false, start.Add(time.Hour))
		both, queued := run(true, time.Time{})
		b.ReportMetric(alone/hosts-name, "B/host")
		b.ReportMetric((both-alone)/hosts, "B/addr")
		b.ReportMetric(queued/hosts/tasksPerHost-item, "B/task")
		b.ReportMetric(deferred/hosts/tasksPerHost-item, "B/deferred")
	}
	runtime.KeepAlive(tasks)
}

// BenchmarkCollector reports the marking time that a million hosts with ten million tasks add. An
// empty heap is measured before and after, and subtracted. The runtime counts wall-clock time, in
// which other processes may have had the core, so the minimum counts.
func BenchmarkCollector(b *testing.B) {
	if testing.Short() {
		b.Skip("500 MB; not with -short")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const rounds = 50
	var empty, full []float64
	for range rounds {
		empty = append(empty, markOnce())
	}
	s := scheduler.New[int](scheduler.Options{MaxQueue: -1})
	for i := range int(1e7) {
		n := i % 1e6
		host := fmt.Sprintf("www.host-%07d.example", n)
		if i == n {
			s.SetHost(host, scheduler.Host{Addr: ip(n)})
		}
		_ = s.Add(scheduler.Task[int]{Host: host})
	}
	runtime.GC()
	for b.Loop() {
		full = append(full, markOnce())
	}
	runtime.KeepAlive(s)
	runtime.GC()
	for range rounds {
		empty = append(empty, markOnce())
	}
	b.ReportMetric((slices.Min(full)-slices.Min(empty))*1e3, "ms/mark")
	b.ReportMetric(slices.Min(empty)*1e3, "ms/empty")
}

// markOnce collects, and returns the seconds that marking took.
func markOnce() float64 {
	before := markSeconds()
	runtime.GC()
	return markSeconds() - before
}

// markSeconds returns the processor time spent on marking so far.
func markSeconds() (sum float64) {
	samples := []metrics.Sample{
		{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
	}
	metrics.Read(samples)
	for _, s := range samples {
		sum += s.Value.Float64()
	}
	return sum
}

// BenchmarkAll iterates over a million hosts, one in a hundred of which has an extra.
func BenchmarkAll(b *testing.B) {
	m := newTreadmill(crowd(1e6))
	for i := range m.tasks {
		if i%100 == 0 {
			m.s.SetHost(m.tasks[i].Host, scheduler.Host{Delay: time.Minute})
		}
	}
	b.ReportAllocs()
	entries := 0
	for b.Loop() {
		for range m.s.All(m.now) {
			entries++
		}
	}
	b.ReportMetric(float64(entries)/float64(b.N), "entries")
}

// BenchmarkCrossing has hosts that share their address with some hosts and their group with others,
// so that most have to change waitlists.
func BenchmarkCrossing(b *testing.B) {
	for _, side := range []int{30, 100, 500} {
		b.Run(fmt.Sprintf("hosts=%d", side*side), func(b *testing.B) {
			s := scheduler.New[int](scheduler.Options{HostDelay: -1, AddrDelay: time.Second, GroupDelay: time.Second})
			tasks := crowd(side * side)
			for i, t := range tasks {
				s.SetHost(t.Host, scheduler.Host{Addr: ip(i % side), Group: fmt.Sprint(i / side)})
				_ = s.Add(t)
			}
			now := start
			b.ReportAllocs()
			for b.Loop() {
				lease, wait := s.TryNext(now)
				if lease == nil {
					now = now.Add(wait)
					continue
				}
				lease.Done(scheduler.Outcome{})
				_ = s.Add(tasks[lease.Item()])
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
