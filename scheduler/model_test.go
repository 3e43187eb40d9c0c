package scheduler_test

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// A model is a scheduler written to be obviously correct: it stores only what happened, and
// determines what may happen next by looking at every host. It does not choose.
type model struct {
	opts   scheduler.Options // without defaults
	now    time.Time         // the latest time seen
	first  time.Time         // the first time seen
	hosts  map[string]*modelHost
	shared map[any]*modelLimiter // by netip.Addr and groupName
	serial int                   // of the last lease
	step   int                   // counts advances of time and added tasks
	out    []*modelLease         // in order
	lost   int

	restarted time.Time // all limiters count as visited then
}

type groupName string

// The kinds of limiters.
const (
	host = iota
	addr
	group
)

// A modelLimiter is a host, an address or a group.
type modelLimiter struct {
	kind     int
	out      int
	start    time.Time // of the last visit; zero if none
	slow     [3]time.Duration
	wanted   time.Duration
	asked    time.Duration
	retry    time.Time
	failures int
	raised   int // the last serial when a failure was last counted
}

type modelHost struct {
	modelLimiter
	addr  netip.Addr
	group string
	used  time.Time
	queue []modelTask
	law   law
}

type modelTask struct {
	scheduler.Task[int]
	came int // step in which it was added or its NotBefore passed
}

// A modelLease is an outstanding lease.
type modelLease struct {
	lease    *scheduler.Lease[int]
	task     scheduler.Task[int]
	given    time.Time
	start    time.Time
	serial   int
	limiters []*modelLimiter // host, address, group
	pending  [3]bool
	addr     netip.Addr
}

func newModel(opts scheduler.Options) *model {
	return &model{
		opts: opts, now: start, first: start,
		hosts: make(map[string]*modelHost), shared: make(map[any]*modelLimiter),
	}
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func (m *model) usual(kind int) time.Duration {
	return max(0, [...]time.Duration{m.opts.HostDelay, m.opts.AddrDelay, m.opts.GroupDelay}[kind])
}

func (m *model) most(kind int) int {
	return max(1, [...]int{m.opts.MaxPerHost, m.opts.MaxPerAddr, m.opts.MaxPerGroup}[kind])
}

// backoff returns the delay after a number of failures.
func (m *model) backoff(kind, failures int) time.Duration {
	base, doubled := m.opts.Backoff, failures-1
	if kind == addr {
		base, doubled = m.usual(addr), min(failures, 6)
	}
	if failures == 0 || kind == group || m.opts.Backoff < 0 {
		return 0
	}
	d := float64(base) * math.Pow(2, float64(doubled))
	return time.Duration(min(d, float64(m.opts.MaxBackoff)))
}

func (m *model) pace(p *modelLimiter) time.Duration {
	slow := p.slow[0]
	if p.kind == addr {
		slow = slices.Min(p.slow[:])
	}
	d := max(slow, p.wanted, p.asked, m.backoff(p.kind, p.failures))
	return max(d, m.usual(p.kind))
}

// delayed returns when the delays of a limiter have passed.
func (m *model) delayed(p *modelLimiter) time.Time {
	if p.start.IsZero() {
		return p.retry
	}
	return latest(p.start.Add(m.pace(p)), p.retry)
}

// closed reports whether a limiter has as many leases as allowed.
func (m *model) closed(p *modelLimiter) bool {
	for _, l := range m.out {
		if i := slices.Index(l.limiters, p); i >= 0 && l.pending[i] {
			return true
		}
	}
	return p.out >= m.most(p.kind)
}

// next returns the candidates for the next lease of a host: the tasks of the highest priority that
// came first.
func (m *model) next(h *modelHost) (first []modelTask) {
	for _, t := range h.queue {
		switch {
		case t.NotBefore.After(m.now):
		case len(first) == 0 || t.Priority > first[0].Priority ||
			t.Priority == first[0].Priority && t.came < first[0].came:
			first = []modelTask{t}
		case t.Priority == first[0].Priority && t.came == first[0].came:
			first = append(first, t)
		}
	}
	return first
}

// busy reports whether a host has a task, and is not waiting for its own lease.
func (m *model) busy(h *modelHost) bool { return len(m.next(h)) > 0 && !m.closed(&h.modelLimiter) }

// inLine reports whether a host waits only for its address or its group.
func (m *model) inLine(h *modelHost) bool {
	return m.busy(h) && !m.delayed(&h.modelLimiter).After(m.now)
}

// sharedBy returns the address and the group of a host.
func (m *model) sharedBy(h *modelHost) (shared []*modelLimiter) {
	if h.addr.IsValid() {
		shared = append(shared, m.shared[h.addr])
	}
	if h.group != "" {
		shared = append(shared, m.shared[groupName(h.group)])
	}
	return shared
}

// due returns when a host may be leased unless there is another call.
func (m *model) due(h *modelHost) (at time.Time, ok bool) {
	if !m.busy(h) {
		return time.Time{}, false
	}
	at = latest(m.now, m.delayed(&h.modelLimiter))
	for _, p := range m.sharedBy(h) {
		if m.closed(p) {
			return time.Time{}, false
		}
		at = latest(at, m.delayed(p))
	}
	return at, true
}

func (m *model) ready(h *modelHost) bool {
	at, ok := m.due(h)
	return ok && !at.After(m.now)
}

// mayBeHeld reports whether the group of a host may be held for another host with an address.
func (m *model) mayBeHeld(h *modelHost) bool {
	for _, other := range m.hosts {
		if h.group != "" && other != h && other.group == h.group && other.addr.IsValid() && m.inLine(other) {
			return true
		}
	}
	return false
}

// soonest returns the earliest time at which something is due, except for hosts whose group may be
// held.
func (m *model) soonest() (soonest time.Time, any bool) {
	earlier := func(at time.Time) {
		if !any || at.Before(soonest) {
			soonest, any = at, true
		}
	}
	for _, h := range m.hosts {
		if at, ok := m.due(h); ok && !m.mayBeHeld(h) {
			earlier(at)
		}
		for _, t := range h.queue {
			if t.NotBefore.After(m.now) {
				earlier(t.NotBefore)
			}
		}
	}
	if len(m.out) > 0 && m.opts.LeaseTimeout > 0 {
		earlier(m.out[0].given.Add(m.opts.LeaseTimeout))
	}
	return soonest, any
}

// advance advances the time.
func (m *model) advance(now time.Time) {
	before := m.now
	m.now = latest(m.now, now)
	m.step++
	for _, h := range m.hosts {
		for i, t := range h.queue {
			if t.NotBefore.After(before) && !t.NotBefore.After(m.now) {
				h.queue[i].came = m.step
			}
		}
	}
	for m.opts.LeaseTimeout > 0 && len(m.out) > 0 && !m.out[0].given.Add(m.opts.LeaseTimeout).After(m.now) {
		m.lost++
		m.done(m.out[0], scheduler.Outcome{Start: m.now, Failed: true})
	}
}

// fresh returns the limiter of an unknown host, address or group.
func (m *model) fresh(kind int) modelLimiter {
	return modelLimiter{kind: kind, start: m.restarted}
}

// use returns a host that is used now.
func (m *model) use(name string) *modelHost {
	if m.hosts[name] == nil {
		m.hosts[name] = &modelHost{modelLimiter: m.fresh(host)}
	}
	m.hosts[name].used = m.now
	return m.hosts[name]
}

func (m *model) useShared(key any, kind int) *modelLimiter {
	if m.shared[key] == nil {
		p := m.fresh(kind)
		m.shared[key] = &p
	}
	return m.shared[key]
}

func (m *model) add(t scheduler.Task[int]) {
	m.step++
	h := m.use(t.Host)
	h.queue = append(h.queue, modelTask{t, m.step})
}

// withdraw removes the next task of a host.
func (m *model) withdraw(got scheduler.Task[int]) (fault string) {
	h := m.hosts[got.Host]
	if h == nil {
		return "its host is not known"
	}
	first := m.next(h)
	isIt := func(t modelTask) bool { return t.Item == got.Item }
	at := slices.IndexFunc(first, isIt)
	switch {
	case at < 0:
		return "another task should come first"
	case first[at].Priority != got.Priority:
		return "it has another priority"
	}
	h.queue, h.used = slices.DeleteFunc(h.queue, isIt), m.now
	return ""
}

// full returns the error that Add should return, if any.
func (m *model) full(name string) error {
	all, tasks := 0, map[any]int{}
	for name, h := range m.hosts {
		all += len(h.queue)
		tasks[name] += len(h.queue)
		tasks[h.addr] += len(h.queue)
		tasks[groupName(h.group)] += len(h.queue)
	}
	over := func(limit, n int) bool { return limit > 0 && n >= limit }
	h := m.hosts[name]
	switch {
	case all >= m.opts.MaxQueue:
		return scheduler.ErrFull
	case h == nil:
		return nil
	case over(m.opts.MaxHostQueue, tasks[name]),
		h.addr.IsValid() && over(m.opts.MaxAddrQueue, tasks[h.addr]),
		h.group != "" && over(m.opts.MaxGroupQueue, tasks[groupName(h.group)]):
		return scheduler.ErrHostFull
	}
	return nil
}

func (m *model) setHost(name string, said scheduler.Host) {
	h := m.use(name)
	if said.Addr.IsValid() {
		m.move(h, said.Addr.Unmap())
	}
	if said.Group != "" && said.Group != h.group {
		h.group, h.law = said.Group, law{}
		m.useShared(groupName(said.Group), group)
	}
	if said.Delay != 0 {
		h.wanted = 0
		if said.Delay > m.usual(host) {
			h.wanted = said.Delay
		}
	}
	if said.CrawlDelay != 0 {
		h.asked = 0
		if said.CrawlDelay > m.usual(host) {
			h.asked = said.CrawlDelay
		}
	}
}

// move gives a host another address.
func (m *model) move(h *modelHost, to netip.Addr) {
	m.useShared(to, addr)
	if h.addr != to {
		h.addr, h.law = to, law{}
	}
}

// lease records a lease, and returns what is wrong with it.
func (m *model) lease(lease *scheduler.Lease[int]) (fault string) {
	got := lease.Task()
	h := m.hosts[got.Host]
	if h == nil || len(h.queue) == 0 {
		return "nothing is queued for the host"
	}
	first := m.next(h)
	at := slices.IndexFunc(first, func(t modelTask) bool { return t.Item == got.Item })
	switch {
	case at < 0:
		return "another task should come first"
	case first[at].Priority != got.Priority:
		return "the task differs from the one added"
	case !m.ready(h):
		return "the host is not ready"
	}
	if fault := m.checkLaw(h, got.Host); fault != "" {
		return fault
	}
	h.queue = slices.DeleteFunc(h.queue, func(t modelTask) bool { return t.Item == got.Item })
	h.law, h.used = law{}, m.now
	m.serial++
	l := &modelLease{
		lease: lease, task: got, given: m.now, start: m.now, serial: m.serial,
		limiters: []*modelLimiter{&h.modelLimiter, nil, nil}, addr: h.addr,
	}
	for _, p := range m.sharedBy(h) {
		l.limiters[p.kind] = p
	}
	for kind := range l.limiters {
		m.take(l, kind)
	}
	m.out = append(m.out, l)
	return ""
}

func (m *model) take(l *modelLease, kind int) {
	p := l.limiters[kind]
	if p == nil {
		return
	}
	p.out++
	if m.most(kind) > 1 {
		if l.pending[kind] = m.pace(p) > 0; !l.pending[kind] {
			p.start = m.now // for a delay that is learned before the request arrives
		}
	}
}

func (m *model) arrived(l *modelLease, at time.Time) {
	l.start = latest(l.start, at)
	for kind, p := range l.limiters {
		if p != nil && m.most(kind) > 1 {
			l.pending[kind] = false
			p.start = latest(p.start, l.start)
		}
	}
}

// reach records the address of a lease and whether it may be visited. It returns what is wrong with
// that. moved reports whether the host belongs to the address then. If it may not be visited, and the lease
// has another one, a host may stay there once.
func (m *model) reach(l *modelLease, to netip.Addr, ok, moved bool) (fault string) {
	h := m.hosts[l.task.Host]
	if !moved && !ok && l.addr.IsValid() {
		return ""
	}
	m.move(h, to)
	if to == l.addr {
		if !ok {
			return "the lease already has the address"
		}
		return ""
	}
	if p := l.limiters[addr]; p != nil {
		p.out--
		l.pending[addr] = false
	}
	l.limiters[addr], l.addr = nil, netip.Addr{}
	p := m.shared[to]
	open := !m.closed(p) && !m.delayed(p).After(m.now)
	waits := false
	for _, other := range m.hosts {
		waits = waits || other != h && other.addr == to && m.inLine(other)
	}
	switch {
	case ok && !open:
		return "the address is not open"
	case !ok && open && !waits:
		return "the address is open, and no host waits for it"
	case ok:
		l.limiters[addr], l.addr = p, to
		m.take(l, addr)
	}
	return ""
}

// done ends a lease.
func (m *model) done(l *modelLease, o scheduler.Outcome) {
	m.hosts[l.task.Host].used = m.now
	m.out = slices.DeleteFunc(m.out, func(other *modelLease) bool { return other == l })
	for _, p := range l.limiters {
		if p == nil {
			continue
		}
		p.out--
		if o.Skipped {
			continue
		}
		p.start = latest(p.start, l.start, o.Start)
		if p.kind != group {
			m.judge(p, l, o)
		}
	}
}

// judge updates a host or an address with the outcome of a visit.
func (m *model) judge(p *modelLimiter, l *modelLease, o scheduler.Outcome) {
	slow := time.Duration(max(0, m.opts.LatencyFactor) * float64(max(0, o.Took)))
	slow = min(slow, time.Hour)
	if slow <= m.usual(p.kind) {
		slow = 0
	}
	p.slow = [3]time.Duration{slow, p.slow[0], p.slow[1]}
	if !p.retry.After(l.given) {
		p.retry = time.Time{}
	}
	failed := o.Failed || o.Status == 429 || o.Status == 503
	switch {
	case !failed:
		p.failures /= 2
	case l.serial > p.raised && m.backoff(p.kind, p.failures) < m.backoff(p.kind, p.failures+1):
		p.failures++
		p.raised = m.serial
	}
	longest := m.opts.MaxRetryAfter
	if p.kind == addr {
		longest = min(longest, time.Minute<<max(0, p.failures-1))
	}
	retry := o.RetryAfter
	if last := m.now.Add(longest); retry.After(last) {
		retry = last
	}
	if retry.After(m.now) {
		p.retry = latest(p.retry, retry)
	}
}
