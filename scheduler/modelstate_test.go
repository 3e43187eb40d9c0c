package scheduler_test

import (
	"net/netip"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
)

// over reports whether the last visit of a limiter no longer has any effect.
func (m *model) over(p *modelLimiter) bool { return p.out == 0 && !m.delayed(p).After(m.now) }

// forget drops state that no longer has any effect.
func (m *model) forget() {
	tasks, hosts := make(map[any]bool), make(map[any]bool)
	stamp := func(t time.Time) int64 { return int64(t.Sub(m.first)) >> 30 }
	for name, h := range m.hosts {
		if len(h.queue) == 0 && h.out == 0 && !m.delayed(&h.modelLimiter).Add(time.Minute).After(m.now) {
			old := h.modelLimiter
			h.modelLimiter = m.fresh(host)
			h.wanted, h.asked, h.failures = old.wanted, old.asked, old.failures
			if stamp(m.now)-stamp(h.used) > int64(24*time.Hour)>>30 {
				h.wanted, h.asked, h.failures, h.addr, h.group = 0, 0, 0, netip.Addr{}, ""
			}
			if h.wanted == 0 && h.asked == 0 && h.failures == 0 && !h.addr.IsValid() && h.group == "" {
				delete(m.hosts, name)
				continue
			}
		}
		hosts[h.addr], hosts[groupName(h.group)] = true, true
		if len(h.queue) > 0 {
			tasks[h.addr], tasks[groupName(h.group)] = true, true
		}
		if !m.inLine(h) || h.addr.IsValid() && m.paused(m.shared[h.addr]) {
			h.law = law{} // after a pause all phases restart
		}
	}
	for key, p := range m.shared {
		if p.out == 0 && p.failures == 0 && p.slow == [3]time.Duration{} && p.retry.IsZero() {
			p.raised = 0
		}
		if !tasks[key] && m.over(p) {
			old := *p
			*p = m.fresh(p.kind)
			if old.failures > 0 && m.now.Sub(old.start) <= 24*time.Hour {
				p.start, p.failures = old.start, old.failures
			} else if !hosts[key] {
				delete(m.shared, key)
			}
		}
	}
}

// stats returns the expected Stats, except for Waits and Waited.
func (m *model) stats() scheduler.Stats {
	st := scheduler.Stats{Hosts: len(m.hosts), Out: len(m.out), Given: int64(m.serial), Lost: int64(m.lost)}
	for key := range m.shared {
		if _, isGroup := key.(groupName); isGroup {
			st.Groups++
		} else {
			st.Addrs++
		}
	}
	ready := make(map[netip.Addr]bool)
	for _, h := range m.hosts {
		st.Queued += len(h.queue)
		switch {
		case len(m.next(h)) == 0 && h.out == 0:
			st.Idle++
		case !m.busy(h):
			st.Leased++
		case m.ready(h) && !ready[h.addr]:
			// Only one of the hosts that wait for an address can be leased.
			ready[h.addr] = h.addr.IsValid()
			st.Ready++
		default:
			st.Waiting++
		}
	}
	return st
}

// entries returns the expected entries of All, except for the first. It requires that forget was
// called.
func (m *model) entries() map[scheduler.Entry]bool {
	entries := make(map[scheduler.Entry]bool)
	note := func(p *modelLimiter, e scheduler.Entry) {
		e.Delay, e.CrawlDelay, e.Failures, e.Slow = p.wanted, p.asked, p.failures, p.slow[0]
		if p.kind == addr {
			e.Slow = slices.Min(p.slow[:])
		}
		if p.retry.After(m.now) {
			e.RetryAfter = p.retry
		}
		if e.Delay > 0 || e.CrawlDelay > 0 || e.Slow > 0 || e.Failures > 0 || !e.RetryAfter.IsZero() {
			entries[e] = true
		}
	}
	for name, h := range m.hosts {
		note(&h.modelLimiter, scheduler.Entry{Host: name})
	}
	for key, p := range m.shared {
		if ip, ok := key.(netip.Addr); ok {
			note(p, scheduler.Entry{Addr: ip})
		}
	}
	return entries
}

// restore is the counterpart of Restore.
func (m *model) restore(e scheduler.Entry, now time.Time) {
	m.advance(now)
	if e.Host == "" && !e.Addr.IsValid() {
		m.restarted = m.now
		return
	}
	var p *modelLimiter
	if e.Addr.IsValid() {
		p = m.useShared(e.Addr, addr)
		p.slow = [3]time.Duration{e.Slow, e.Slow, e.Slow}
	} else {
		p = &m.use(e.Host).modelLimiter
		p.slow[0], p.wanted, p.asked = e.Slow, e.Delay, e.CrawlDelay
	}
	p.start, p.failures = latest(p.start, m.now), e.Failures
	if e.RetryAfter.After(m.now) {
		p.retry = e.RetryAfter
		if last := m.now.Add(m.opts.MaxRetryAfter); p.retry.After(last) {
			p.retry = last
		}
	}
}
