package scheduler_test

// A law is what a host may expect that waits for its turn, from when its own delay has passed until
// it is leased.
//
// A host with an address, or with a group, is overtaken by each other host of it at most once.
//
// A host with both waits for its address, then for its group, then for its address again. In each
// of these phases, each other host of what it waits for overtakes it at most once. Hosts of what it
// does not wait for are free to go: otherwise a host whose group has a thousand others would slow
// its neighbors at the address down to a thousandth. In the third phase its group waits for it.
//
// From outside, one cannot see when a phase ends. But if there are such phases at all, then each
// can be taken for as long as it may last.
type law struct {
	phase  int
	passed map[string]bool // in this phase
}

// checkLaw takes note that a host is leased, and returns what is wrong with it.
func (m *model) checkLaw(leased *modelHost, name string) (fault string) {
	if max(m.most(host), m.most(addr), m.most(group)) > 1 {
		return "" // leases that overlap hide who came first
	}
	for waiting, h := range m.hosts {
		if h == leased || !m.inLine(h) {
			continue
		}
		sameAddr := h.addr.IsValid() && h.addr == leased.addr
		sameGroup := h.group != "" && h.group == leased.group
		if !h.law.pass(name, sameAddr, sameGroup, h.addr.IsValid() && h.group != "") {
			return "it was the turn of " + waiting
		}
	}
	return ""
}

// pass takes note that the host was overtaken, and reports whether the law permits it.
func (l *law) pass(by string, sameAddr, sameGroup, both bool) (permitted bool) {
	counts := sameAddr || sameGroup
	if both {
		counts = [...]bool{sameAddr, sameGroup, sameAddr}[l.phase]
	}
	if both && l.phase == 2 && sameGroup {
		return false // the group is held
	}
	if !counts {
		return true
	}
	if !l.passed[by] {
		if l.passed == nil {
			l.passed = make(map[string]bool)
		}
		l.passed[by] = true
		return true
	}
	if !both || l.phase == 2 {
		return false
	}
	*l = law{phase: l.phase + 1}
	return l.pass(by, sameAddr, sameGroup, both)
}

// paused tells whether a limiter stays closed for longer than its usual delay.
func (m *model) paused(p *modelLimiter) bool {
	return m.delayed(p).After(m.now.Add(m.usual(p.kind)))
}
