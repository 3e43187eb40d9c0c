package scheduler_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// An optionSet has the Options with which every list of operations is replayed. If it is plain,
// hosts have no group and tasks no priority.
type optionSet struct {
	plain bool
	scheduler.Options
}

var optionSets = func() (sets []optionSet) {
	const s = time.Second
	for _, o := range []scheduler.Options{
		{HostDelay: 5 * s, AddrDelay: 5 * s, LatencyFactor: 5, MaxQueue: 1000},
		{HostDelay: 2 * s, AddrDelay: 3 * s, LatencyFactor: 0.5, MaxQueue: 1000},
		{HostDelay: 5 * s, AddrDelay: s, LatencyFactor: -1, MaxQueue: 1000, LeaseTimeout: 20 * s},
		{HostDelay: 4 * s, AddrDelay: -1, LatencyFactor: 1, MaxQueue: 4},
		{HostDelay: -1, AddrDelay: s, LatencyFactor: 2, MaxQueue: 1000, MaxAddrQueue: 5},
		{HostDelay: -1, AddrDelay: -1, LatencyFactor: -1, MaxQueue: 1000},
	} {
		o.GroupDelay, o.Backoff, o.MaxBackoff, o.MaxRetryAfter = o.AddrDelay, 3*s, 20*s, 12*s
		sets = append(sets, optionSet{true, o}, optionSet{false, o})
	}
	groups := scheduler.Options{
		HostDelay: -1, AddrDelay: s, GroupDelay: 2 * s, LatencyFactor: -1, Backoff: -1,
		MaxRetryAfter: s, MaxQueue: 1000, MaxGroupQueue: 6,
	}
	sets = append(sets, optionSet{false, groups})
	several := scheduler.Options{
		HostDelay: s, AddrDelay: s, GroupDelay: 3 * s, LatencyFactor: 2,
		Backoff: s, MaxBackoff: 9 * s, MaxRetryAfter: 8 * s, MaxPerHost: 2, MaxPerAddr: 3, MaxPerGroup: 2,
		MaxQueue: 1000, MaxHostQueue: 3, LeaseTimeout: 15 * s,
	}
	sets = append(sets, optionSet{false, several})
	several.MaxPerHost, several.GroupDelay, several.Backoff = 1, -1, -1
	return append(sets, optionSet{false, several})
}()

var rounds = flag.Int("rounds", 6, "random lists of operations that TestModel replays")

func TestModel(t *testing.T) {
	for seed := range uint64(*rounds) {
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

// replay applies ops, three bytes each, to a Scheduler and to a model.
func replay(t *testing.T, ops []byte, opts optionSet) {
	opts.LeaseTimeout = max(opts.LeaseTimeout, -1)
	if opts.LeaseTimeout == 0 {
		opts.LeaseTimeout = -1
	}
	p := &player{
		t: t, s: scheduler.New[int](opts.Options), m: newModel(opts.Options), plain: opts.plain,
		clock: start,
	}
	p.try(0) // sets the current time of both
	p.save()
	for ; len(ops) >= 3; ops = ops[3:] {
		p.step++
		p.play(ops[0]%16, ops[1], ops[2])
		p.check()
	}
	p.drain()
}

type player struct {
	t     *testing.T
	s     *scheduler.Scheduler[int]
	m     *model
	plain bool
	step  int
	clock time.Time // may go back
	over  []*scheduler.Lease[int]
	added int

	saved []scheduler.Entry
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
	case 7: // any time, even in the past
		p.try(time.Duration(int8(a)) * 100 * time.Millisecond)
	case 8, 9, 10:
		if len(p.m.out) > 0 {
			p.done(p.m.out[int(a)%len(p.m.out)], p.outcome(b), b)
		}
	case 11: // must be harmless
		if len(p.over) > 0 {
			lease := p.over[int(a)%len(p.over)]
			lease.Done(p.outcome(b))
			lease.Requeue(p.outcome(b), p.clock)
			lease.Arrived(p.clock)
			lease.Reach(ip(3))
		}
	case 12, 13:
		p.setHost(a, b)
	case 14:
		p.tell(a, b)
	case 15:
		switch b % 8 {
		case 0, 1, 2:
			p.save()
		case 3: // the clock is set back
			p.restart(-time.Duration(a) * 100 * time.Millisecond)
		case 4:
			p.restart(time.Duration(a) * 20 * time.Millisecond)
		case 5: // the settings by SetHost are forgotten
			p.try(time.Duration(a) * 10 * time.Minute)
		case 6, 7:
			p.withdraw(name(a))
		}
	}
}

const hostNames = 7

func name(a byte) string { return string('a'+rune(a%hostNames)) + ".test" }

func (p *player) add(a, b byte) {
	task := scheduler.Task[int]{Host: name(a), Item: p.added}
	if b>>6 == 0 {
		task.NotBefore = p.clock.Add(time.Duration(a) * 100 * time.Millisecond)
	}
	if !p.plain {
		task.Priority = a >> 3 % 4 * 2
	}
	p.m.forget()
	want := p.m.full(task.Host)
	if err := p.s.Add(task); err != want {
		p.failf("Add(%+v) = %v, want %v", task, err, want)
	}
	switch want {
	case nil:
		p.m.add(task)
		p.added++
	case scheduler.ErrFull: // for all hosts
	default:
		p.m.use(task.Host)
	}
}

func (p *player) withdraw(host string) {
	p.m.forget()
	for _, got := range p.s.Withdraw(host) {
		if fault := p.m.withdraw(got); fault != "" {
			p.failf("Withdraw(%q) returns %+v: %s", host, got, fault)
		}
	}
	if h := p.m.hosts[host]; h != nil && len(p.m.next(h)) > 0 {
		p.failf("Withdraw(%q) leaves %+v", host, p.m.next(h))
	}
}

func (p *player) setHost(a, b byte) {
	h := scheduler.Host{
		Addr: []netip.Addr{{}, netip.MustParseAddr("::ffff:10.0.0.1"), ip(1), ip(2),
			netip.MustParseAddr("fe80::1%eth0")}[int(b)%5],
		Delay:      []time.Duration{0, 0, -1, time.Second, 8 * time.Second, 30 * time.Second}[int(b/5)%6],
		CrawlDelay: []time.Duration{0, 12 * time.Second, 0, -1}[int(b/30)%4],
	}
	if !p.plain {
		h.Group = []string{"", "g", "h", "a.test"}[int(a/hostNames)%4]
	}
	p.m.forget()
	p.m.setHost(name(a), h)
	p.s.SetHost(name(a), h)
}

// tell calls Arrived or Reach of an outstanding lease.
func (p *player) tell(a, b byte) {
	if len(p.m.out) == 0 {
		return
	}
	l := p.m.out[int(a)%len(p.m.out)]
	p.m.forget()
	if b%3 == 0 {
		to := ip(int(b/3) % 3)
		p.m.useShared(to, addr)
		ok := l.lease.Reach(to)
		moved := p.s.Explain(l.task.Host).Addr == to
		if fault := p.m.reach(l, to, ok, moved); fault != "" {
			p.failf("Reach(%v) of %+v = %v: %s", to, l.task, ok, fault)
		}
		return
	}
	at := p.clock.Add(time.Duration(b) * 10 * time.Millisecond)
	p.m.arrived(l, at)
	l.lease.Arrived(at)
}

// try calls TryNext, d after the last time.
func (p *player) try(d time.Duration) (wait time.Duration) {
	p.clock = p.clock.Add(d)
	out := slices.Clone(p.m.out)
	p.m.advance(p.clock)
	for _, l := range out {
		if !slices.Contains(p.m.out, l) {
			p.over = append(p.over, l.lease)
		}
	}
	p.m.forget()
	soonest, any := p.m.soonest()
	lease, wait := p.s.TryNext(p.clock)
	if lease == nil {
		if any && wait > soonest.Sub(p.m.now) {
			p.failf("TryNext waits %v, but something is due in %v", wait, soonest.Sub(p.m.now))
		}
		if wait <= 0 {
			p.failf("TryNext returns no lease and waits %v", wait)
		}
		return wait
	}
	if fault := p.m.lease(lease); fault != "" || wait != 0 {
		p.failf("TryNext leases %+v: %s; wait %v", lease.Task(), fault, wait)
	}
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

// done ends a lease, and sometimes requeues its task.
func (p *player) done(l *modelLease, o scheduler.Outcome, b byte) {
	p.over = append(p.over, l.lease)
	p.m.forget()
	if b < 200 {
		p.m.done(l, o)
		l.lease.Done(o)
		return
	}
	task := l.task
	task.NotBefore = p.clock.Add(time.Duration(int(b)-220) * 100 * time.Millisecond)
	p.m.done(l, o)
	p.m.add(task)
	l.lease.Requeue(o, task.NotBefore)
}

func (p *player) save() {
	p.m.forget()
	p.saved = slices.Collect(p.s.All(p.m.now))
	got := make(map[scheduler.Entry]bool)
	for _, e := range p.saved[1:] {
		got[e] = true
	}
	if want := p.m.entries(); !maps.Equal(got, want) || len(got) != len(p.saved)-1 {
		p.failf("All yields %+v, want %+v", got, want)
	}
}

// restart kills the scheduler and starts another one from the last saved state, after some time. A
// negative time sets the clock back.
func (p *player) restart(after time.Duration) {
	old, now := p.m, p.m.now.Add(after)
	p.s, p.m = scheduler.New[int](old.opts), newModel(old.opts)
	p.m.now, p.m.first = now, now
	for range 2 { // restoring twice changes nothing
		for _, e := range p.saved {
			if err := p.s.Restore(e, now); err != nil {
				p.failf("Restore(%+v): %v", e, err)
			}
			p.m.restore(e, now)
		}
	}
	for name, h := range old.hosts {
		// State learned after the save is lost, but all visits count.
		visited := max(min(h.start.Sub(old.now), 0), -time.Hour) + old.usual(host)
		known := p.m.fresh(host)
		if h := p.m.hosts[name]; h != nil {
			known = h.modelLimiter
		}
		if latest(now, p.m.delayed(&known)).Sub(now) < visited-max(after, 0) {
			p.failf("%s is visited too early after the restart", name)
		}
	}
	p.clock, p.added = now, 0
	p.over = nil
	for _, name := range slices.Sorted(maps.Keys(old.hosts)) {
		h := old.hosts[name]
		said := scheduler.Host{Addr: h.addr, Group: h.group}
		p.m.setHost(name, said)
		p.s.SetHost(name, said)
		for _, t := range h.queue {
			t.Item = p.added
			if p.s.Add(t.Task) == nil {
				p.m.add(t.Task)
				p.added++
			}
		}
	}
	p.save()
}

// check compares the visible state.
func (p *player) check() {
	p.m.forget()
	want, got := p.m.stats(), p.s.Stats()
	if got.Hosts != got.Idle+got.Waiting+got.Ready+got.Leased ||
		min(got.Idle, got.Waiting, got.Ready, got.Leased) < 0 {
		p.failf("Stats do not add up: %+v", got)
	}
	// State that no longer has any effect may be forgotten late.
	if late := got.Idle - want.Idle; late > 0 {
		want.Idle, want.Hosts = want.Idle+late, want.Hosts+late
	}
	want.Addrs, want.Groups = max(want.Addrs, got.Addrs), max(want.Groups, got.Groups)
	if !p.plain { // with groups, the number of ready hosts depends on each other
		want.Ready, want.Waiting = got.Ready, got.Waiting
	}
	if got != want {
		p.failf("Stats say %+v, want %+v", got, want)
	}
	if err := p.s.Verify(); err != nil {
		p.failf("inconsistent: %v", err)
	}
	for name, h := range p.m.hosts {
		p.checkReason(name, h)
	}
}

// checkReason checks the result of Explain.
func (p *player) checkReason(name string, h *modelHost) {
	r := p.s.Explain(name)
	var want time.Time
	if p.m.busy(h) && p.m.delayed(&h.modelLimiter).After(p.m.now) {
		want = p.m.delayed(&h.modelLimiter)
	}
	switch {
	case !r.Known || r.Queued != len(h.queue) || r.Leased != h.out || r.Failures != h.failures:
		p.failf("Explain(%s) = %+v, want %+v", name, r, h)
	case r.Addr != h.addr || r.Group != h.group:
		p.failf("Explain(%s) = %+v, want %+v", name, r, h)
	case !want.IsZero() && !r.Until.Equal(want):
		p.failf("Explain(%s) = %+v, want until %v", name, r, want)
	case r.Rule == "" && len(h.queue) > 0 && !p.m.ready(h):
		p.failf("Explain(%s) = %+v, but it is not ready: %+v %+v now %v", name, r, h, p.m.shared[h.addr], p.m.now)
	}
}

// drain leases all remaining tasks as early as possible.
func (p *player) drain() {
	for p.s.Stats().Queued > 0 {
		p.step++
		for len(p.m.out) > 0 {
			p.done(p.m.out[0], scheduler.Outcome{Took: time.Second}, 0)
		}
		p.clock = p.m.now
		wait := p.try(0)
		if wait == scheduler.Forever {
			p.failf("%d tasks are left, but TryNext waits forever", p.s.Stats().Queued)
		}
		p.clock = p.clock.Add(wait)
		p.try(0)
		p.check()
	}
	for len(p.m.out) > 0 {
		p.done(p.m.out[0], scheduler.Outcome{}, 0)
	}
	if wait := p.try(1e6 * time.Hour); wait != scheduler.Forever {
		p.failf("nothing is left, but TryNext waits %v", wait)
	}
	for range 100 { // until sweep has visited all limiters
		p.s.SetHost("z", scheduler.Host{Delay: -1})
	}
	if st := p.s.Stats(); st.Hosts-st.Idle+st.Addrs+st.Groups > 0 || st.Idle > 1 {
		p.failf("nothing is left, but Stats say %+v", st)
	}
}
