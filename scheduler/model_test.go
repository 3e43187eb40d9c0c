package scheduler_test

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// A model is the same scheduler again, written to be obviously right: it keeps nothing but what
// happened, and works out by looking at every host what may happen now. It does not choose.
type model struct {
	opts   scheduler.Options // without defaults
	now    time.Time         // the latest seen
	hosts  map[string]*modelHost
	gates  map[any]*modelPlace // by netip.Addr and groupName
	serial int                 // of the last lease

	restarted [3]time.Time // by kind: until when what is new may have been visited

	// inexact says that a host was put off that was ready: Stats may count it as ready until its
	// turn comes.
	inexact bool
}

type groupName string

// The kinds of places.
const (
	host = iota
	addr
	group
)

// A modelPlace is a host, an address or a group.
type modelPlace struct {
	kind     int
	out      int
	start    time.Time // of the last visit; zero if none
	slow     time.Duration
	asked    time.Duration
	retry    time.Time
	failures int
	raised   int // the last serial when failures were counted last
}

type modelHost struct {
	modelPlace
	queue  []scheduler.Task[int]
	passed map[string]bool // hosts that were leased while this one was in line with them
}

// A modelLease is what a model knows of a lease that is out.
type modelLease struct {
	task   scheduler.Task[int]
	given  time.Time
	serial int
}

func newModel(opts scheduler.Options) *model {
	return &model{
		opts: opts, now: start,
		hosts: make(map[string]*modelHost), gates: make(map[any]*modelPlace),
	}
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func (m *model) usual(kind int) time.Duration {
	return max(0, [...]time.Duration{m.opts.HostDelay, m.opts.AddrDelay, m.opts.GroupDelay}[kind])
}

func (m *model) most(kind int) int {
	return max(1, [...]int{m.opts.MaxPerHost, m.opts.MaxPerAddr, m.opts.MaxPerGroup}[kind])
}

// pause returns the delay after so many failures.
func (m *model) pause(kind, failures int) time.Duration {
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

func (m *model) pace(p *modelPlace) time.Duration {
	d := max(p.slow, p.asked, m.pause(p.kind, p.failures))
	if m.opts.MaxDelay > 0 {
		d = min(d, m.opts.MaxDelay)
	}
	return max(d, m.usual(p.kind))
}

// delayed returns when the delays of a place have passed.
func (m *model) delayed(p *modelPlace) time.Time {
	if p.start.IsZero() {
		return p.retry
	}
	return latest(p.start.Add(m.pace(p)), p.retry)
}

// ownDue returns when the first task of a host may be leased if its gates do not matter.
func (m *model) ownDue(h *modelHost) time.Time {
	return latest(m.delayed(&h.modelPlace), h.queue[0].NotBefore)
}

// queued tells whether a host waits for something that is not its own lease.
func (m *model) queued(h *modelHost) bool { return len(h.queue) > 0 && h.out < m.most(host) }

func (m *model) inLine(h *modelHost) bool { return m.queued(h) && !m.ownDue(h).After(m.now) }

// at returns the gates of a task.
func (m *model) at(t scheduler.Task[int]) (gates []*modelPlace) {
	if t.Addr.IsValid() && !t.Shared {
		gates = append(gates, m.gates[t.Addr])
	}
	if t.Group != "" {
		gates = append(gates, m.gates[groupName(t.Group)])
	}
	return gates
}

// due returns when the first task of a host may be leased if no other call comes before.
func (m *model) due(h *modelHost) (at time.Time, ok bool) {
	if !m.queued(h) {
		return time.Time{}, false
	}
	at = m.ownDue(h)
	for _, g := range m.at(h.queue[0]) {
		if g.out >= m.most(g.kind) {
			return time.Time{}, false
		}
		at = latest(at, m.delayed(g))
	}
	return at, true
}

func (m *model) ready(h *modelHost) bool {
	at, ok := m.due(h)
	return ok && !at.After(m.now)
}

// soonest returns the earliest due time of all.
func (m *model) soonest() (soonest time.Time, any bool) {
	for _, h := range m.hosts {
		if at, ok := m.due(h); ok && (!any || at.Before(soonest)) {
			soonest, any = at, true
		}
	}
	return soonest, any
}

// fresh returns a place of which nothing is known.
func (m *model) fresh(kind int) modelPlace {
	p := modelPlace{kind: kind}
	if m.restarted[kind].After(m.now) {
		p.start = m.restarted[kind].Add(-m.usual(kind))
	}
	return p
}

func (m *model) host(name string) *modelHost {
	if m.hosts[name] == nil {
		m.hosts[name] = &modelHost{modelPlace: m.fresh(host), passed: make(map[string]bool)}
	}
	return m.hosts[name]
}

func (m *model) gate(key any, kind int) *modelPlace {
	if m.gates[key] == nil {
		p := m.fresh(kind)
		m.gates[key] = &p
	}
	return m.gates[key]
}

func (m *model) add(t scheduler.Task[int]) {
	t.Addr = t.Addr.Unmap()
	if t.Addr.IsValid() {
		m.gate(t.Addr, addr)
	}
	if t.Group != "" {
		m.gate(groupName(t.Group), group)
	}
	h := m.host(t.Host)
	i := len(h.queue)
	for i > 0 && h.queue[i-1].Priority < t.Priority {
		i--
	}
	wasInLine := m.inLine(h)
	h.queue = slices.Insert(h.queue, i, t)
	m.putOff(h, wasInLine)
	if i == 0 {
		clear(h.passed)
	}
}

// putOff notes that a host that was in line is no longer, if so.
func (m *model) putOff(h *modelHost, wasInLine bool) {
	m.inexact = m.inexact || wasInLine && !m.inLine(h)
}

// lease takes note of a lease, and returns what is wrong with it.
func (m *model) lease(got scheduler.Task[int], plain bool) (l modelLease, fault string) {
	h := m.hosts[got.Host]
	switch {
	case h == nil || len(h.queue) == 0:
		return l, "nothing was queued there"
	case h.queue[0].Item != got.Item:
		return l, "another task comes before"
	case !h.queue[0].NotBefore.Equal(got.NotBefore):
		return l, "the time is not as it was added"
	case !m.ready(h):
		return l, "the host is not ready"
	}
	got.NotBefore = h.queue[0].NotBefore
	if h.queue[0] != got {
		return l, "the task is not as it was added"
	}
	for name, other := range m.hosts {
		if !plain || !got.Addr.IsValid() || name == got.Host ||
			!m.inLine(other) || other.queue[0].Addr != got.Addr {
			continue
		}
		if other.passed[got.Host] {
			return l, "it was " + name + "'s turn"
		}
		other.passed[got.Host] = true
	}
	h.queue = h.queue[1:]
	clear(h.passed)
	m.serial++
	for _, p := range m.places(got) {
		p.out++
		if m.most(p.kind) > 1 {
			p.start = latest(p.start, m.now)
		}
	}
	return modelLease{got, m.now, m.serial}, ""
}

// places returns the host of a task and its gates.
func (m *model) places(t scheduler.Task[int]) []*modelPlace {
	return append(m.at(t), &m.hosts[t.Host].modelPlace)
}

func (m *model) done(l modelLease, o scheduler.Outcome) {
	h := m.hosts[l.task.Host]
	wasInLine := m.inLine(h)
	for _, p := range m.places(l.task) {
		p.out--
		if o.Skipped {
			continue
		}
		p.start = latest(p.start, l.given, o.Start)
		if p.kind == host {
			p.slow = time.Duration(max(0, m.opts.LatencyFactor) * float64(max(0, o.Took)))
		}
		if p.kind != group {
			m.judge(p, l, o)
		}
	}
	m.putOff(h, wasInLine)
}

// judge takes note of what a visit says of the health of a place.
func (m *model) judge(p *modelPlace, l modelLease, o scheduler.Outcome) {
	if !p.retry.After(l.given) {
		p.retry = time.Time{}
	}
	p.retry = latest(p.retry, o.RetryAfter)
	failed := o.Failed || o.Status == 429 || o.Status == 503
	switch {
	case !failed:
		p.failures /= 2
	case l.serial > p.raised && m.pause(p.kind, p.failures) < m.pause(p.kind, p.failures+1):
		p.failures++
		p.raised = m.serial
	}
}

func (m *model) setDelay(name string, d time.Duration) {
	if d <= m.usual(host) {
		d = 0
	}
	if m.hosts[name] == nil && d <= 0 {
		return
	}
	h := m.host(name)
	wasInLine := m.inLine(h)
	h.asked = max(d, 0)
	m.putOff(h, wasInLine)
}

func (m *model) drain(name string) (tasks []scheduler.Task[int]) {
	h := m.hosts[name]
	if h == nil {
		return nil
	}
	wasInLine := m.inLine(h)
	tasks, h.queue = h.queue, nil
	m.putOff(h, wasInLine)
	return tasks
}

// over tells whether the last visit of a place has no bearing on anything any longer.
func (m *model) over(p *modelPlace) bool { return p.out == 0 && !m.delayed(p).After(m.now) }

// forget drops what has no bearing on anything that may still happen, and what is in line no
// longer has been passed by nobody.
func (m *model) forget() {
	wanted := make(map[any]bool)
	for name, h := range m.hosts {
		for _, t := range h.queue {
			wanted[t.Addr], wanted[groupName(t.Group)] = true, true
		}
		if len(h.queue) == 0 && m.over(&h.modelPlace) {
			h.modelPlace = modelPlace{asked: h.asked}
			if h.asked == 0 {
				delete(m.hosts, name)
			}
		}
		if !m.inLine2(h) {
			clear(h.passed)
		}
	}
	for key, g := range m.gates {
		if !wanted[key] && m.over(g) {
			delete(m.gates, key)
		}
	}
}

func (m *model) inLine2(h *modelHost) bool { return len(h.queue) > 0 && m.inLine(h) }

// stats returns what Stats should say, but for the figures of the past.
func (m *model) stats() scheduler.Stats {
	st := scheduler.Stats{Hosts: len(m.hosts)}
	for key := range m.gates {
		if _, isGroup := key.(groupName); isGroup {
			st.Groups++
		} else {
			st.Addrs++
		}
	}
	ready := make(map[netip.Addr]bool)
	for _, h := range m.hosts {
		st.Queued += len(h.queue)
		st.Out += h.out
		switch {
		case len(h.queue) == 0 && h.out == 0:
			st.Idle++
		case !m.queued(h):
			st.Leased++
		case m.ready(h) && !ready[h.queue[0].Addr]:
			// Of several hosts that wait for one address only one can be leased.
			ready[h.queue[0].Addr] = h.queue[0].Addr.IsValid()
			st.Ready++
		default:
			st.Waiting++
		}
	}
	return st
}

// A memory is what a state should hold: the politeness of what is unusual.
type memory struct {
	at    time.Time
	hosts map[string]modelPlace
	addrs map[netip.Addr]modelPlace
}

// memory requires that what has no bearing was forgotten.
func (m *model) memory() memory {
	mem := memory{m.now, make(map[string]modelPlace), make(map[netip.Addr]modelPlace)}
	unusual := func(p *modelPlace) bool {
		return p.asked > 0 || p.slow > m.usual(host) || p.failures > 0 || p.retry.After(m.now)
	}
	for name, h := range m.hosts {
		if unusual(&h.modelPlace) {
			mem.hosts[name] = h.modelPlace
		}
	}
	for key, g := range m.gates {
		if ip, ok := key.(netip.Addr); ok && unusual(g) {
			mem.addrs[ip] = *g
		}
	}
	return mem
}

// restart returns the model of a scheduler that has nothing but a memory, at a time on its clock.
func (m *model) restart(mem memory, now time.Time) *model {
	after := newModel(m.opts)
	after.now = now
	for kind := range after.restarted {
		after.restarted[kind] = now.Add(m.usual(kind))
	}
	elapsed := max(now.Sub(mem.at), 0)
	shift := now.Add(-elapsed).Sub(mem.at)
	wake := func(p modelPlace) modelPlace {
		if !p.retry.IsZero() {
			p.retry = p.retry.Add(shift)
		}
		p.start, p.out, p.raised = now, 0, 0
		return p
	}
	for name, p := range mem.hosts {
		after.host(name).modelPlace = wake(p)
	}
	for ip, p := range mem.addrs {
		p = wake(p)
		after.gates[ip] = &p
	}
	return after
}
