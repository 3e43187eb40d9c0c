package scheduler_test

import (
	"net/netip"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// A model is the same scheduler again, written to be obviously right: it keeps nothing but what
// happened, and works out by looking at every host what may happen now. It does not choose.
type model struct {
	opts  scheduler.Options // without defaults
	now   time.Time         // the latest seen
	hosts map[string]*modelHost
	addrs map[netip.Addr]*modelAddr
	// inexact says that SetDelay has put off a host that was ready: Stats may count it as ready
	// until its turn comes.
	inexact bool
}

type modelHost struct {
	queue  []scheduler.Task[int]
	leased bool
	start  time.Time // of the last visit; zero if none
	slow   time.Duration
	asked  time.Duration
	passed map[string]bool // hosts that were leased while this one was in line with them
}

type modelAddr struct {
	leased bool
	start  time.Time
}

func newModel(opts scheduler.Options) *model {
	return &model{
		opts: opts, now: start,
		hosts: make(map[string]*modelHost), addrs: make(map[netip.Addr]*modelAddr),
	}
}

// plus returns t plus d; the zero time stays zero.
func plus(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func (m *model) hostDue(h *modelHost) time.Time {
	return plus(h.start, max(m.opts.HostDelay, h.slow, h.asked))
}

// ownDue returns when the first task of a host may be leased if its address does not matter.
func (m *model) ownDue(h *modelHost) time.Time {
	return latest(m.hostDue(h), h.queue[0].NotBefore)
}

func (m *model) addrDue(a *modelAddr) time.Time {
	return plus(a.start, max(m.opts.AddrDelay, 0))
}

func (m *model) inLine(h *modelHost) bool {
	return len(h.queue) > 0 && !h.leased && !m.ownDue(h).After(m.now)
}

// due returns when the first task of a host may be leased if no other call comes before.
func (m *model) due(h *modelHost) (at time.Time, ok bool) {
	if len(h.queue) == 0 || h.leased {
		return time.Time{}, false
	}
	if a := m.addrs[h.queue[0].Addr]; a != nil {
		return latest(m.ownDue(h), m.addrDue(a)), !a.leased
	}
	return m.ownDue(h), true
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

func (m *model) host(name string) *modelHost {
	if m.hosts[name] == nil {
		m.hosts[name] = &modelHost{passed: make(map[string]bool)}
	}
	return m.hosts[name]
}

func (m *model) add(t scheduler.Task[int]) {
	t.Addr = t.Addr.Unmap()
	if t.Addr.IsValid() && m.addrs[t.Addr] == nil {
		m.addrs[t.Addr] = &modelAddr{}
	}
	h := m.host(t.Host)
	h.queue = append(h.queue, t)
}

// lease takes note of a lease, and returns what is wrong with it.
func (m *model) lease(got scheduler.Task[int]) (fault string) {
	h := m.hosts[got.Host]
	switch {
	case h == nil || len(h.queue) == 0:
		return "nothing was queued there"
	case h.queue[0].Item != got.Item:
		return "another task was added before"
	case h.queue[0].Addr != got.Addr || !h.queue[0].NotBefore.Equal(got.NotBefore):
		return "the task is not as it was added"
	case !m.ready(h):
		return "the host is not ready"
	}
	for name, other := range m.hosts {
		if !got.Addr.IsValid() || name == got.Host ||
			!m.inLine(other) || other.queue[0].Addr != got.Addr {
			continue
		}
		if other.passed[got.Host] {
			return "it was " + name + "'s turn"
		}
		other.passed[got.Host] = true
	}
	h.queue = h.queue[1:]
	h.leased = true
	clear(h.passed)
	if got.Addr.IsValid() {
		m.addrs[got.Addr].leased = true
	}
	return ""
}

func (m *model) done(t scheduler.Task[int], given time.Time, o scheduler.Outcome) {
	h, a := m.hosts[t.Host], m.addrs[t.Addr]
	h.leased = false
	if a != nil {
		a.leased = false
	}
	if o.Skipped {
		return
	}
	h.start = latest(given, o.Start)
	h.slow = time.Duration(max(0, m.opts.LatencyFactor) * float64(max(0, o.Took)))
	if a != nil {
		a.start = h.start
	}
}

func (m *model) setDelay(name string, d time.Duration) {
	if d <= m.opts.HostDelay {
		d = 0
	}
	h := m.host(name)
	wasInLine := m.inLine(h)
	h.asked = max(d, 0)
	if wasInLine && !m.inLine(h) {
		m.inexact = true
	}
}

// forget drops what has no bearing on anything that may still happen, and what is only in line no
// longer has been passed by nobody.
func (m *model) forget() {
	wanted := make(map[netip.Addr]bool)
	for name, h := range m.hosts {
		for _, t := range h.queue {
			wanted[t.Addr] = true
		}
		if len(h.queue) == 0 && !h.leased && h.asked == 0 && !m.hostDue(h).After(m.now) {
			delete(m.hosts, name)
		} else if !m.inLine(h) {
			clear(h.passed)
		}
	}
	for ip, a := range m.addrs {
		if !wanted[ip] && !a.leased && !m.addrDue(a).After(m.now) {
			delete(m.addrs, ip)
		}
	}
}

// stats returns what Stats should say, but for the figures of the past.
func (m *model) stats() scheduler.Stats {
	st := scheduler.Stats{Hosts: len(m.hosts), Addrs: len(m.addrs)}
	ready := make(map[netip.Addr]bool)
	for _, h := range m.hosts {
		st.Queued += len(h.queue)
		switch {
		case h.leased:
			st.Leased++
		case len(h.queue) == 0:
			st.Idle++
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
