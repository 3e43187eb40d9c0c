package scheduler

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
)

// A directory finds limiters by their keys.
type directory struct {
	limiters slab[limiter]
	timers   slab[timer] // by the numbers of limiters; separate, so that they are densely packed
	table    table
	names    names
	seed     maphash.Seed
	known    [kinds]int
	hand     uint32 // the last limiter that was swept
}

func (d *directory) init() {
	d.seed = maphash.MakeSeed()
	d.names.moved = d.moved
}

// full reports whether there is no number or no room for the name of another limiter.
func (d *directory) full() bool { return d.names.full() || d.limiters.used >= 1<<31 }

// lookup returns the number of a limiter with a name, or 0.
func (d *directory) lookup(k kind, name string) uint32 {
	return d.find(maphash.String(d.seed, name), k, name)
}

func (d *directory) find(hash uint64, k kind, name string) uint32 {
	return d.table.find(hash, func(i uint32) bool {
		p := d.limiters.at(i)
		return p.kind == k && d.names.get(p.key) == name
	})
}

// named returns the number of a limiter with a name. A new one is idle.
func (d *directory) named(k kind, name string) (i uint32, isNew bool) {
	hash := maphash.String(d.seed, name)
	if i := d.find(hash, k, name); i != 0 {
		return i, false
	}
	return d.enter(hash, limiter{kind: k, key: d.names.put(name), state: idle}), true
}

// enter adds a new limiter.
func (d *directory) enter(hash uint64, p limiter) uint32 {
	i := d.limiters.alloc()
	*d.limiters.at(i) = p
	for d.timers.used < d.limiters.used {
		d.timers.alloc()
	}
	*d.timers.at(i) = timer{due: longAgo}
	d.table.insert(hash, i)
	d.known[p.kind]++
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
		p := d.limiters.at(i)
		return p.kind == anIPv4 && p.key == key
	})
	if i != 0 {
		return i, false
	}
	return d.enter(hash, limiter{kind: anIPv4, key: key, state: idle}), true
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
	return d.names.get(d.limiters.at(i).key)
}

// ip is the inverse of address; 0 is the number of the invalid address.
func (d *directory) ip(i uint32) netip.Addr {
	if i == 0 {
		return netip.Addr{}
	}
	p := d.limiters.at(i)
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
	p := *d.limiters.at(i)
	d.known[p.kind]--
	d.limiters.release(i)
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
		p := d.limiters.at(i)
		return p.kind != anIPv4 && p.key == from
	})
	if i == 0 {
		return nil
	}
	return func(to uint32) { d.limiters.at(i).key = to }
}
