package scheduler

import (
	"encoding/binary"
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

// named returns the number of a limiter with a name. A new one is idle.
func (d *directory) named(k kind, name string) (i uint32, isNew bool) {
	hash := maphash.String(d.seed, name)
	if i := d.find(hash, k, name); i != 0 {
		return i, false
	}
	return d.enter(hash, k, d.names.put(name)), true
}

// enter adds a new limiter.
func (d *directory) enter(hash uint64, k kind, key uint32) (i uint32) {
	if k == aHost {
		i = d.hosts.alloc()
		d.timers[0].alloc() // same number: the slabs are used in step
	} else {
		i = d.shares.alloc() | sharedBit
		d.timers[1].alloc()
	}
	p := d.at(i)
	p.kind, p.key, p.state = k, key, idle
	d.timers.at(i).due = longAgo
	d.table.insert(hash, i)
	d.known[k]++
	d.entered = true
	return i
}

// address returns the number of a valid address. A new one is idle.
func (d *directory) address(ip netip.Addr) (i uint32, isNew bool) {
	ip = ip.Unmap() // two spellings, one server
	if !ip.Is4() {
		key := ip.As16()
		return d.named(anIPv6, string(key[:])+ip.Zone())
	}
	b := ip.As4()
	key := binary.BigEndian.Uint32(b[:])
	hash := d.hashIPv4(key)
	i = d.table.find(hash, func(i uint32) bool {
		p := d.at(i)
		return p.kind == anIPv4 && p.key == key
	})
	if i != 0 {
		return i, false
	}
	return d.enter(hash, anIPv4, key), true
}

func (d *directory) hashIPv4(key uint32) uint64 {
	b := fourBytes(key)
	return maphash.Bytes(d.seed, b[:])
}

// name returns the name of a host or a group.
func (d *directory) name(i uint32) string {
	if i == 0 {
		return ""
	}
	return d.names.get(d.at(i).key)
}

// ip is the inverse of address; 0 is the number of the invalid address.
func (d *directory) ip(i uint32) netip.Addr {
	if i == 0 {
		return netip.Addr{}
	}
	p := d.at(i)
	if p.kind == anIPv4 {
		return netip.AddrFrom4(fourBytes(p.key))
	}
	key := d.names.get(p.key)
	return netip.AddrFrom16([16]byte([]byte(key[:16]))).WithZone(key[16:])
}

func fourBytes(key uint32) (b [4]byte) {
	binary.BigEndian.PutUint32(b[:], key)
	return b
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
	if p.kind == anIPv4 {
		d.table.remove(d.hashIPv4(p.key), i)
		return
	}
	d.table.remove(maphash.String(d.seed, d.names.get(p.key)), i)
	d.names.drop(p.key)
}

// moved finds the limiter of a name that is about to move.
func (d *directory) moved(name string, from uint32) (set func(to uint32)) {
	i := d.table.find(maphash.String(d.seed, name), func(i uint32) bool {
		p := d.at(i)
		return p.kind != anIPv4 && p.key == from
	})
	if i == 0 {
		return nil
	}
	return func(to uint32) { d.at(i).key = to }
}
