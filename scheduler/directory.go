package scheduler

import (
	"hash/maphash"
	"net/netip"
)

// A directory finds limiters by their keys.
type directory struct {
	hosts  slab[hostLimiter]   // by number
	shares slab[sharedLimiter] // by number without sharedBit
	timers timers              // of both; apart, so that they are densely packed
	table  table
	names  names
	seed   maphash.Seed
	known  [kinds]int

	entered bool // limiters, since the last sweep
}

func (d *directory) init() {
	d.seed = maphash.MakeSeed()
	d.names.moved = d.moved
}

func (d *directory) at(i uint32) *limiter {
	if i < sharedBit {
		return &d.hosts.at(i).limiter
	}
	return &d.shares.at(i % sharedBit).limiter
}

func (d *directory) host(i uint32) *hostLimiter { return d.hosts.at(i) }

func (d *directory) shared(i uint32) *sharedLimiter { return d.shares.at(i % sharedBit) }

// full reports whether there is no number or no room for the name of another limiter.
func (d *directory) full() bool {
	return d.names.full() || d.hosts.used >= sharedBit || d.shares.used >= sharedBit
}

// lookup returns the number of a limiter with a name, or 0.
func (d *directory) lookup(k kind, name string) uint32 {
	return d.find(maphash.String(d.seed, name), k, name)
}

func (d *directory) find(hash uint64, k kind, name string) uint32 {
	return d.table.find(hash, func(i uint32) bool {
		p := d.at(i)
		return p.kind == k && d.names.get(p.key) == name
	})
}

// named returns the number of a limiter with a name. A new one is vacant.
func (d *directory) named(k kind, name string) (i uint32) {
	hash := maphash.String(d.seed, name)
	if i := d.find(hash, k, name); i != 0 {
		return i
	}
	if k == aHost {
		i = d.hosts.alloc()
		d.timers[0].alloc() // same number: the slabs are used in step
	} else {
		i = d.shares.alloc() | sharedBit
		d.timers[1].alloc()
	}
	p := d.at(i)
	p.kind, p.key = k, d.names.put(name)
	d.timers.at(i).due = longAgo
	d.table.insert(hash, i)
	d.known[k]++
	d.entered = true
	return i
}

// address returns the number of a valid address, whose name is its binary form. A new one is
// vacant.
func (d *directory) address(ip netip.Addr) uint32 {
	var buf [32]byte
	name, _ := ip.Unmap().AppendBinary(buf[:0]) // two spellings, one server; there is no error
	return d.named(anAddr, string(name))
}

// name returns the name of a limiter, or "" for number 0.
func (d *directory) name(i uint32) string {
	if i == 0 {
		return ""
	}
	return d.names.get(d.at(i).key)
}

// ip is the inverse of address; 0 is the number of the invalid address.
func (d *directory) ip(i uint32) (ip netip.Addr) {
	_ = ip.UnmarshalBinary([]byte(d.name(i)))
	return ip
}

// forget removes a limiter.
func (d *directory) forget(i uint32) {
	p := *d.at(i)
	d.known[p.kind]--
	if p.kind == aHost {
		d.hosts.release(i)
	} else {
		d.shares.release(i % sharedBit)
	}
	d.timers[i/sharedBit].release(i % sharedBit)
	d.table.remove(maphash.String(d.seed, d.names.get(p.key)), i)
	d.names.drop(p.key)
}

// moved finds the limiter of a name that is about to move.
func (d *directory) moved(name string, from uint32) (set func(to uint32)) {
	i := d.table.find(maphash.String(d.seed, name), func(i uint32) bool {
		return d.at(i).key == from
	})
	if i == 0 {
		return nil
	}
	return func(to uint32) { d.at(i).key = to }
}
