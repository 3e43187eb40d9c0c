package scheduler_test

// A law bounds how often a host is overtaken, from when its own delay has passed until it is
// leased.
//
// A host with only an address, or only a group, is overtaken by each other host of it at most once.
//
// A host with both waits for its address, then for its group, then for its address again. In each
// phase, each other host of what it waits for overtakes it at most once. Hosts of what it does not
// wait for are unrestricted: otherwise a host whose group has a thousand others would delay its
// neighbors at the address a thousandfold. In the third phase its group is held for it.
//
// The end of a phase is not visible from outside. So the test assumes that each phase lasts as long
// as possible.
type law struct {
	phase  int
	passed map[string]bool // in this phase
}

// checkLaw records that a host is leased, and returns what is wrong with that.
func (m *model) checkLaw(leased *modelHost, name string) (fault string) {
	if max(m.most(host), m.most(addr), m.most(group)) > 1 {
		return "" // overlapping leases hide the order
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

// pass records that the host was overtaken, and reports whether the law permits it.
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

// paused reports whether a limiter stays closed for longer than its default delay.
func (m *model) paused(p *modelLimiter) bool {
	return m.delayed(p).After(m.now.Add(m.usual(p.kind)))
}
