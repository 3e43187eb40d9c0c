package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// optionSets are the politeness under which every list of operations is replayed.
var optionSets = []scheduler.Options{
	{HostDelay: 5 * time.Second, AddrDelay: 5 * time.Second, LatencyFactor: 5, MaxQueue: 1000},
	{HostDelay: 2 * time.Second, AddrDelay: 3 * time.Second, LatencyFactor: 0.5, MaxQueue: 1000},
	{HostDelay: 5 * time.Second, AddrDelay: time.Second, LatencyFactor: -1, MaxQueue: 1000},
	{HostDelay: 4 * time.Second, AddrDelay: -1, LatencyFactor: 1, MaxQueue: 4},
	{HostDelay: -1, AddrDelay: time.Second, LatencyFactor: 2, MaxQueue: 1000},
	{HostDelay: -1, AddrDelay: -1, LatencyFactor: -1, MaxQueue: 1000},
}

func TestModel(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			ops := make([]byte, 3*500)
			for i := range ops {
				ops[i] = byte(rng.Uint32())
			}
			for _, opts := range optionSets {
				replay(t, ops, opts)
			}
		})
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte("addressesshared"), uint8(0))
	f.Add([]byte{0, 1, 1, 0, 1, 1, 3, 1, 0, 6, 0, 0, 3, 255, 0, 9, 1, 3}, uint8(1))
	f.Fuzz(func(t *testing.T, ops []byte, set uint8) {
		replay(t, ops[:min(len(ops), 1500)], optionSets[int(set)%len(optionSets)])
	})
}

// replay does what ops say, three bytes an operation, to a Scheduler and to a model.
func replay(t *testing.T, ops []byte, opts scheduler.Options) {
	p := &player{t: t, s: scheduler.New[int](opts), m: newModel(opts), clock: start}
	p.try(0) // so that both know what time it is
	for ; len(ops) >= 3; ops = ops[3:] {
		p.step++
		p.play(ops[0]%10, ops[1], ops[2])
		p.check()
	}
	p.drain()
}

type held struct {
	lease *scheduler.Lease[int]
	at    time.Time
}

type player struct {
	t     *testing.T
	s     *scheduler.Scheduler[int]
	m     *model
	step  int
	clock time.Time // which may go back
	out   []held
	over  []*scheduler.Lease[int]
	added int
	given int
}

func (p *player) failf(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("options %+v, step %d, %v after the start: %s",
		p.m.opts, p.step, p.m.now.Sub(start), fmt.Sprintf(format, args...))
}

func (p *player) play(op, a, b byte) {
	switch op {
	case 0, 1, 2:
		p.add(a, b)
	case 3, 4:
		p.try(time.Duration(a) * 10 * time.Millisecond)
	case 5: // any time, also back
		p.try(time.Duration(int8(a)) * 100 * time.Millisecond)
	case 6, 7:
		if len(p.out) > 0 {
			p.done(int(a)%len(p.out), p.outcome(b))
		}
	case 8: // is to be harmless
		if len(p.over) > 0 {
			p.over[int(a)%len(p.over)].Done(p.outcome(b))
		}
	case 9:
		d := []time.Duration{-1, 0, time.Second, 8 * time.Second, 30 * time.Second}
		p.m.setDelay(name(a), d[int(b)%len(d)])
		p.s.SetDelay(name(a), d[int(b)%len(d)])
	}
}

const hostNames = 7

func name(a byte) string { return string('a'+rune(a%hostNames)) + ".test" }

func (p *player) add(a, b byte) {
	unknown, mapped := netip.Addr{}, netip.MustParseAddr("::ffff:10.0.0.1")
	addrs := []netip.Addr{unknown, mapped, ip(1), ip(2), netip.MustParseAddr("fe80::1%eth0")}
	task := scheduler.Task[int]{Host: name(a), Addr: addrs[int(b)%len(addrs)], Item: p.added}
	switch b >> 6 {
	case 0:
		task.NotBefore = p.clock.Add(time.Duration(a) * 100 * time.Millisecond)
	case 1:
		task.NotBefore = p.clock.Add(-time.Second)
	}
	full := p.m.stats().Queued >= p.m.opts.MaxQueue
	if err := p.s.Add(task); (err == scheduler.ErrFull) != full || err != nil && !full {
		p.failf("Add(%+v) = %v, want full: %v", task, err, full)
	}
	if !full {
		p.m.add(task)
		p.added++
	}
}

// try asks for a lease d later than last time.
func (p *player) try(d time.Duration) (wait time.Duration) {
	p.clock = p.clock.Add(d)
	if p.clock.After(p.m.now) {
		p.m.now = p.clock
	}
	p.m.forget()
	soonest, any := p.m.soonest()
	lease, wait := p.s.TryNext(p.clock)
	if lease == nil {
		if any && wait > soonest.Sub(p.m.now) {
			p.failf("TryNext waits %v, but a host is ready in %v", wait, soonest.Sub(p.m.now))
		}
		if wait <= 0 {
			p.failf("TryNext gives nothing and waits %v", wait)
		}
		return wait
	}
	if fault := p.m.lease(lease.Task()); fault != "" || wait != 0 {
		p.failf("TryNext leases %+v: %s; wait %v", lease.Task(), fault, wait)
	}
	p.out = append(p.out, held{lease, p.m.now})
	p.given++
	return 0
}

func (p *player) outcome(b byte) scheduler.Outcome {
	ago := time.Duration(b) * 20 * time.Millisecond
	return []scheduler.Outcome{
		{},
		{Start: p.clock.Add(-ago)},
		{Start: p.clock.Add(ago), Took: ago},
		{Took: ago * 20},
		{Skipped: true, Start: p.clock, Took: ago},
		{Took: -ago},
	}[b%6]
}

func (p *player) done(i int, o scheduler.Outcome) {
	l := p.out[i]
	p.out = append(p.out[:i], p.out[i+1:]...)
	p.over = append(p.over, l.lease)
	p.m.done(l.lease.Task(), l.at, o)
	l.lease.Done(o)
}

// check compares what can be seen from outside.
func (p *player) check() {
	p.m.forget()
	want, got := p.m.stats(), p.s.Stats()
	if p.m.inexact {
		if got.Ready < want.Ready {
			p.failf("Stats say %+v, want %+v", got, want)
		}
		want.Ready, want.Waiting = got.Ready, want.Waiting+want.Ready-got.Ready
	}
	want.Given = int64(p.given)
	if got != want {
		p.failf("Stats say %+v, want %+v", got, want)
	}
}

// drain leases all that is left, as fast as it may be.
func (p *player) drain() {
	for p.given < p.added {
		p.step++
		for len(p.out) > 0 {
			p.done(0, scheduler.Outcome{Took: time.Second})
		}
		p.clock = p.m.now
		wait := p.try(0)
		if wait == scheduler.Forever {
			p.failf("%d tasks are left and no time is known", p.added-p.given)
		}
		p.clock = p.clock.Add(wait)
		p.try(0)
		p.check()
	}
	for range len(p.out) {
		p.done(0, scheduler.Outcome{})
	}
	for a := range byte(hostNames) {
		p.m.setDelay(name(a), 0)
		p.s.SetDelay(name(a), 0)
	}
	if wait := p.try(1e6 * time.Hour); wait != scheduler.Forever {
		p.failf("nothing is left, but TryNext waits %v", wait)
	}
	if st := p.s.Stats(); st != (scheduler.Stats{Given: int64(p.added)}) {
		p.failf("nothing is left, but Stats say %+v", st)
	}
}
