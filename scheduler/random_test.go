package scheduler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// An optionSet is the politeness under which every list of operations is replayed. Where it is
// plain, tasks have no group and no priority: then the model can tell whose turn it is.
type optionSet struct {
	plain bool
	scheduler.Options
}

var optionSets = func() (sets []optionSet) {
	const s = time.Second
	for _, o := range []scheduler.Options{
		{HostDelay: 5 * s, AddrDelay: 5 * s, LatencyFactor: 5, MaxQueue: 1000},
		{HostDelay: 2 * s, AddrDelay: 3 * s, LatencyFactor: 0.5, MaxQueue: 1000},
		{HostDelay: 5 * s, AddrDelay: s, LatencyFactor: -1, MaxQueue: 1000},
		{HostDelay: 4 * s, AddrDelay: -1, LatencyFactor: 1, MaxQueue: 4},
		{HostDelay: -1, AddrDelay: s, LatencyFactor: 2, MaxQueue: 1000},
		{HostDelay: -1, AddrDelay: -1, LatencyFactor: -1, MaxQueue: 1000},
	} {
		o.GroupDelay, o.Backoff, o.MaxBackoff = o.AddrDelay, 3*s, 20*s
		sets = append(sets, optionSet{true, o}, optionSet{false, o})
	}
	several := scheduler.Options{
		HostDelay: s, AddrDelay: s, GroupDelay: 3 * s, LatencyFactor: 2, MaxDelay: 4 * s,
		Backoff: s, MaxBackoff: 9 * s, MaxPerHost: 2, MaxPerAddr: 3, MaxPerGroup: 2,
		MaxQueue: 1000, MaxHostQueue: 3,
	}
	sets = append(sets, optionSet{false, several})
	several.MaxPerHost, several.GroupDelay, several.Backoff = 1, -1, -1
	return append(sets, optionSet{false, several})
}()

func TestModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			ops := make([]byte, 3*400)
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
	f.Add([]byte("0<|1<<6789abcdef groups, priorities"), uint8(3))
	f.Fuzz(func(t *testing.T, ops []byte, set uint8) {
		replay(t, ops[:min(len(ops), 1500)], optionSets[int(set)%len(optionSets)])
	})
}

// replay does what ops say, three bytes an operation, to a Scheduler and to a model.
func replay(t *testing.T, ops []byte, opts optionSet) {
	p := &player{
		t: t, s: scheduler.New[int](opts.Options), m: newModel(opts.Options), plain: opts.plain,
		clock: start,
	}
	p.try(0) // so that both know what time it is
	p.save()
	for ; len(ops) >= 3; ops = ops[3:] {
		p.step++
		p.play(ops[0]%15, ops[1], ops[2])
		p.check()
	}
	p.drain()
}

type held struct {
	lease *scheduler.Lease[int]
	model modelLease
}

type player struct {
	t     *testing.T
	s     *scheduler.Scheduler[int]
	m     *model
	plain bool
	step  int
	clock time.Time // which may go back
	out   []held
	over  []*scheduler.Lease[int]
	added int
	given int // by this scheduler
	left  int // tasks that are queued

	state  []byte // the last one that was saved
	memory memory
}

func (p *player) failf(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("options %+v, step %d, %v after the start: %s",
		p.m.opts, p.step, p.m.now.Sub(start), fmt.Sprintf(format, args...))
}

func (p *player) play(op, a, b byte) {
	switch op {
	case 0, 1, 2, 3:
		p.add(a, b)
	case 4, 5, 6:
		p.try(time.Duration(a) * 10 * time.Millisecond)
	case 7: // any time, also back
		p.try(time.Duration(int8(a)) * 100 * time.Millisecond)
	case 8, 9, 10:
		if len(p.out) > 0 {
			p.done(int(a)%len(p.out), p.outcome(b))
		}
	case 11: // is to be harmless
		if len(p.over) > 0 {
			p.over[int(a)%len(p.over)].Done(p.outcome(b))
		}
	case 12:
		d := []time.Duration{-1, 0, time.Second, 8 * time.Second, 30 * time.Second}
		p.m.setDelay(name(a), d[int(b)%len(d)])
		p.s.SetDelay(name(a), d[int(b)%len(d)])
	case 13:
		p.take(name(a))
	case 14:
		switch b % 8 {
		case 0, 1, 2:
			p.save()
		case 3: // the clock is set back
			p.restart(-time.Duration(a) * 100 * time.Millisecond)
		case 4:
			p.restart(time.Duration(a) * 20 * time.Millisecond)
		}
	}
}

const hostNames = 7

func name(a byte) string { return string('a'+rune(a%hostNames)) + ".test" }

func (p *player) task(a, b byte) scheduler.Task[int] {
	unknown, mapped := netip.Addr{}, netip.MustParseAddr("::ffff:10.0.0.1")
	addrs := []netip.Addr{unknown, mapped, ip(1), ip(2), netip.MustParseAddr("fe80::1%eth0")}
	task := scheduler.Task[int]{Host: name(a), Addr: addrs[int(b)%len(addrs)], Item: p.added}
	switch b >> 6 {
	case 0:
		task.NotBefore = p.clock.Add(time.Duration(a) * 100 * time.Millisecond)
	case 1:
		task.NotBefore = p.clock.Add(-time.Second)
	}
	if !p.plain {
		task.Group = []string{"", "g", "h", "a.test"}[b>>3%4]
		task.Priority = a >> 3 % 4 * 2
		task.Shared = a>>6 == 3
	}
	return task
}

func (p *player) add(a, b byte) {
	task := p.task(a, b)
	p.m.forget()
	var want error
	h := p.m.hosts[task.Host]
	switch {
	case p.left >= p.m.opts.MaxQueue:
		want = scheduler.ErrFull
	case p.m.opts.MaxHostQueue > 0 && h != nil && len(h.queue) >= p.m.opts.MaxHostQueue:
		want = scheduler.ErrHostFull
	}
	if err := p.s.Add(task); err != want {
		p.failf("Add(%+v) = %v, want %v", task, err, want)
	}
	if want == nil {
		p.m.add(task)
		p.added++
		p.left++
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
	l, fault := p.m.lease(lease.Task(), p.plain)
	if fault != "" || wait != 0 {
		p.failf("TryNext leases %+v: %s; wait %v", lease.Task(), fault, wait)
	}
	p.out = append(p.out, held{lease, l})
	p.given++
	p.left--
	return 0
}

func (p *player) outcome(b byte) scheduler.Outcome {
	ago := time.Duration(b) * 20 * time.Millisecond
	return []scheduler.Outcome{
		{},
		{Start: p.clock.Add(-ago)},
		{Start: p.clock.Add(ago), Took: ago},
		{Took: ago * 20},
		{Skipped: true, Start: p.clock, Took: ago, Failed: true, RetryAfter: p.clock.Add(ago)},
		{Took: -ago},
		{Failed: true},
		{Status: 503, Took: ago},
		{Status: 429, RetryAfter: p.clock.Add(3 * ago)},
		{Status: 404, RetryAfter: p.clock.Add(-ago)},
	}[b%10]
}

func (p *player) done(i int, o scheduler.Outcome) {
	l := p.out[i]
	p.out = append(p.out[:i], p.out[i+1:]...)
	p.over = append(p.over, l.lease)
	p.m.forget()
	p.m.done(l.model, o)
	l.lease.Done(o)
}

// take drains a host.
func (p *player) take(name string) {
	p.m.forget()
	want, got := p.m.drain(name), p.s.Drain(name)
	if len(got) != len(want) {
		p.failf("Drain(%s) returns %d tasks, want %d", name, len(got), len(want))
	}
	for i := range want {
		if got[i].Item != want[i].Item || got[i].Priority != want[i].Priority {
			p.failf("Drain(%s) returns %+v as number %d, want %+v", name, got[i], i, want[i])
		}
	}
	p.left -= len(got)
}

func (p *player) save() {
	p.m.forget()
	p.memory = p.m.memory()
	p.state = p.s.AppendState(nil, p.m.now)
}

// restart kills the scheduler and starts another one from the last state, after some time. A
// negative time is one by which the clock is set back.
func (p *player) restart(after time.Duration) {
	old, now := p.m, p.m.now.Add(after)
	opts := old.opts
	p.s, p.m = scheduler.New[int](opts), old.restart(p.memory, now)
	if err := p.s.LoadState(p.state, now); err != nil {
		p.failf("LoadState: %v", err)
	}
	for name, h := range old.hosts {
		// What was learned after the state was saved is lost, but no visit is forgotten.
		visited := max(min(h.start.Sub(old.now), 0), -time.Hour) + old.usual(host)
		known := p.m.fresh(host)
		if h := p.m.hosts[name]; h != nil {
			known = h.modelPlace
		}
		if latest(now, p.m.delayed(&known)).Sub(now) < visited-max(after, 0) {
			p.failf("after the restart %s is visited too early", name)
		}
	}
	p.m.forget()
	p.clock, p.given, p.left, p.added = now, 0, 0, 0
	p.out, p.over = nil, nil
	for _, name := range slices.Sorted(maps.Keys(old.hosts)) {
		for _, t := range old.hosts[name].queue {
			t.Item = p.added
			_ = p.s.Add(t)
			p.m.add(t)
			p.added++
			p.left++
		}
	}
	p.save()
}

// check compares what can be seen from outside.
func (p *player) check() {
	p.m.forget()
	want, got := p.m.stats(), p.s.Stats()
	if got.Hosts != got.Idle+got.Waiting+got.Ready+got.Leased ||
		min(got.Idle, got.Waiting, got.Ready, got.Leased) < 0 {
		p.failf("Stats do not add up: %+v", got)
	}
	// What need not be known any longer is forgotten some time.
	if late := got.Idle - want.Idle; late > 0 {
		want.Idle, want.Hosts = want.Idle+late, want.Hosts+late
	}
	want.Addrs, want.Groups = max(want.Addrs, got.Addrs), max(want.Groups, got.Groups)
	if p.m.inexact || !p.plain {
		if got.Hosts < want.Hosts || p.plain && got.Ready < want.Ready || got.Leased > want.Leased {
			p.failf("Stats say %+v, want %+v", got, want)
		}
		want.Hosts, want.Idle, want.Leased = got.Hosts, got.Idle, got.Leased
		want.Ready, want.Waiting = got.Ready, got.Waiting
	}
	want.Given = int64(p.given)
	got.WaitedFor, got.Lateness = want.WaitedFor, want.Lateness
	if got != want {
		p.failf("Stats say %+v, want %+v", got, want)
	}
	for name, h := range p.m.hosts {
		p.checkReason(name, h)
	}
}

// checkReason compares what Explain says.
func (p *player) checkReason(name string, h *modelHost) {
	r := p.s.Explain(name)
	var want time.Time
	if p.m.queued(h) && p.m.ownDue(h).After(p.m.now) {
		want = p.m.ownDue(h)
	}
	switch {
	case !r.Known || r.Queued != len(h.queue) || r.Leased != h.out || r.Failures != h.failures:
		p.failf("Explain(%s) = %+v, want %+v", name, r, h)
	case !want.IsZero() && !r.Until.Equal(want):
		p.failf("Explain(%s) = %+v, want until %v", name, r, want)
	case r.Rule == scheduler.NoRule && len(h.queue) > 0 && !p.m.ready(h):
		p.failf("Explain(%s) = %+v, but it is not ready", name, r)
	}
}

// drain leases all that is left, as fast as it may be.
func (p *player) drain() {
	for p.left > 0 {
		p.step++
		for len(p.out) > 0 {
			p.done(0, scheduler.Outcome{Took: time.Second})
		}
		p.clock = p.m.now
		wait := p.try(0)
		if wait == scheduler.Forever {
			p.failf("%d tasks are left and no time is known", p.left)
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
	for range 100 { // until the hand has come round
		_ = p.s.Add(scheduler.Task[int]{Host: "z"})
		p.s.Drain("z")
		p.clock = p.clock.Add(time.Hour)
		p.s.TryNext(p.clock)
	}
	if st := p.s.Stats(); st.Hosts-st.Idle+st.Addrs+st.Groups > 0 || st.Idle > 1 {
		p.failf("nothing is left, but Stats say %+v", st)
	}
}
