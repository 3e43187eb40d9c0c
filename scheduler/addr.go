package scheduler

import "net/netip"

// An addr is what the book knows about an address.
type addr struct {
	ip    netip.Addr
	due   int64 // when its delay has passed
	timer timer

	// The hosts whose next task goes here and whose own time has come stand in line, in the order
	// in which they got ready. A host that was leased joins at the end: so they take turns.
	head uint32 // 0 if nobody is in line
	tail uint32 // if there is a head

	refs  uint32 // queued tasks that go here, and the lease
	state state
}

// addrID returns the number of an address for one more task, and 0 for an unknown address. A new
// one is parked.
func (b *book) addrID(ip netip.Addr) uint32 {
	if !ip.IsValid() {
		return 0
	}
	ip = ip.Unmap() // two spellings, one server
	i, known := b.addrIDs[ip]
	if !known {
		i = b.addrs.alloc()
		*b.addrs.at(i) = addr{ip: ip, due: longAgo}
		b.addrIDs[ip] = i
	}
	b.addrs.at(i).refs++
	return i
}

// lineUp puts a host that is ready into the line of the address that its first task goes to, or
// into the ring if that address is unknown.
func (b *book) lineUp(hostID, addrID uint32) {
	if addrID == 0 {
		b.ready.push(turn{id: hostID, host: true})
		return
	}
	a := b.addrs.at(addrID)
	b.hosts.at(hostID).next = 0
	if a.head != 0 {
		b.hosts.at(a.tail).next = hostID
		a.tail = hostID
		return
	}
	a.head, a.tail = hostID, hostID
	// The address was not wanted before, so that it is neither waiting nor ready.
	switch a.state {
	case leased:
		return // it is settled when it is released
	case cooling:
		b.coolingAddrs.remove(addrID)
	}
	b.settleAddr(addrID)
}

// nextInLine leases an address to the first host in its line that is still ready. It returns 0,
// and leases nothing, if none is. It requires that the address has just left the ring.
func (b *book) nextInLine(addrID uint32) uint32 {
	a := b.addrs.at(addrID)
	for a.head != 0 {
		i := a.head
		a.head = b.hosts.at(i).next
		if !b.tooEarly(i) {
			a.state = leased
			return i
		}
	}
	b.settleAddr(addrID)
	return 0
}

// settleAddr puts an address where it belongs now. It requires that the address is nowhere: that
// it has just left a wheel, the ring or a lease, or is parked.
func (b *book) settleAddr(i uint32) {
	switch a := b.addrs.at(i); {
	case a.head != 0 && a.due > b.now:
		a.state = waiting
		b.waitingAddrs.insert(i, a.due)
	case a.head != 0:
		a.state = ready
		b.ready.push(turn{id: i})
	case a.due > b.now:
		a.state = cooling
		b.coolingAddrs.insert(i, a.due)
	case a.refs > 0:
		a.state = parked
	default:
		delete(b.addrIDs, a.ip)
		b.addrs.release(i)
	}
}
