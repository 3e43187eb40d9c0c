package scheduler

import (
	"errors"
	"fmt"
)

// Verify returns what is inconsistent in a Scheduler: its states, lists and counts follow from the
// work, the leases and the due times, which it looks at one by one.
func (s *Scheduler[T]) Verify() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := verifier{e: &s.engine, out: map[uint32]int{}, hosts: map[uint32]uint32{}, tasks: map[uint32]uint32{}}
	v.flights(s.leased)
	for i := uint32(1); i < v.e.hosts.used; i++ {
		if v.e.host(i).state != vacant {
			v.host(i)
		}
	}
	for i := uint32(1); i < v.e.shares.used; i++ {
		if v.e.shares.at(i).state != vacant {
			v.shared(i | sharedBit)
		}
	}
	v.check(v.holders == v.held, "%d groups are held, and %d by hosts at the front", v.holders, v.held)
	v.check(v.known == v.e.known, "%v limiters, counted %v", v.known, v.e.known)
	used := int(max(v.e.extras.used, 1)) - 1 - len(v.e.extras.free)
	v.check(used == v.extras, "%d extras, %d of them of limiters", used, v.extras)
	for st := idle; st <= ready; st++ {
		v.check(v.inState[st] == v.e.inState[st], "%d hosts in state %d, counted %d", v.inState[st], st, v.e.inState[st])
	}
	return errors.Join(v.faults...)
}

type verifier struct {
	e             *engine
	out           map[uint32]int    // leases by limiter
	hosts, tasks  map[uint32]uint32 // by shared limiter
	known         [kinds]int
	inState       [ready + 1]int
	extras        int
	holders, held int
	faults        []error
}

func (v *verifier) check(ok bool, format string, args ...any) {
	if !ok {
		v.faults = append(v.faults, fmt.Errorf(format, args...))
	}
}

func (v *verifier) flights(leased int) {
	e, n, timed := v.e, 0, 0
	for i := e.flying.head; i != 0; i = e.flightTimers.at(i).next {
		timed++
		v.check(e.flights.at(i).waits == 0, "the holder of a lease with a timeout waits")
		v.check(e.flightTimers.at(i).due > e.now, "a lost lease is outstanding")
	}
	for i := uint32(1); i < e.flights.used; i++ {
		f := e.flights.at(i)
		if f.serial == 0 {
			continue
		}
		n++
		if f.waits == 0 {
			timed--
		}
		for _, limiter := range f.limiters {
			if !f.spent {
				v.out[limiter]++
			}
		}
	}
	v.check(timed == 0, "%d leases too many have a timeout", timed)
	v.check(n == leased, "%d flights, %d leases", n, leased)
}

// limiter checks what hosts and shared limiters have in common.
func (v *verifier) limiter(i uint32, belongs state) {
	e, p := v.e, v.e.at(i)
	v.known[p.kind]++
	v.check(p.state == belongs, "limiter %x is in state %d and belongs in %d", i, p.state, belongs)
	v.check(int(p.out&^pendingBit) == v.out[i], "limiter %x has %d leases, counted %d", i, v.out[i], p.out)
	if p.extra == 0 {
		return
	}
	v.extras++
	x, due := e.extras.at(p.extra), int64(longAgo)
	if x.start != longAgo {
		due = later(x.start, e.pace(p))
	}
	v.check(x.owner == i, "limiter %x has the extra of %x", i, x.owner)
	v.check(*e.due(i) == max(due, x.retry), "limiter %x is due at %d instead of %d", i, *e.due(i), max(due, x.retry))
}

func (v *verifier) host(i uint32) {
	h := v.e.host(i)
	v.limiter(i, v.e.hostBelongs(i, h))
	v.inState[min(h.state, ready)]++
	for _, shared := range [...]uint32{h.addr, h.group} {
		v.hosts[shared]++
		v.tasks[shared] += h.tasks
	}
}

func (v *verifier) shared(i uint32) {
	e, p := v.e, v.e.shared(i)
	v.limiter(i, e.sharedBelongs(i, p))
	v.check(p.hosts == v.hosts[i] && p.tasks == v.tasks[i], "shared limiter %x: hosts or tasks miscounted", i)
	before, waits, called := uint32(0), map[uint32]bool{0: true}, map[uint32]bool{}
	for host := p.head; host != 0; host = e.timers.at(host).next {
		h := e.host(host)
		v.check(e.timers.at(host).prev == before, "the links of host %d", host)
		v.check((h.state == atAddr || h.state == atGroup) && e.waitlistOf(h) == i, "host %d is in another list", host)
		before, waits[host] = host, true
		if e.hasWaiters(h) {
			called[host] = true
		}
	}
	v.check(p.tail == before && waits[p.lastFront], "the ends of waitlist %x", i)
	before = 0
	for n := p.called.head; n != 0; n = e.calls.at(n).next {
		x := e.extras.at(n)
		v.check(e.calls.at(n).prev == before, "the links of extra %d", n)
		v.check(waits[x.owner] && x.waiters > 0 && x.calls == i, "host %d is not called", x.owner)
		before = n
		delete(called, x.owner)
	}
	v.check(p.called.tail == before && len(called) == 0, "the called ones of waitlist %x", i)
	if p.holder != 0 {
		v.holders++
	}
	for host := p.lastFront; host != 0 && p.kind == anAddr; host = e.timers.at(host).prev {
		if e.holds(host) {
			v.held++
		}
	}
}
