package scheduler

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
)

// A directory knows the places by their keys.
type directory struct {
	places slab[place]
	table  table
	names  names
	seed   maphash.Seed
	known  [kinds]int
	hand   uint32 // the place that was swept last
}

func (d *directory) init() {
	d.seed = maphash.MakeSeed()
	d.names.moved = d.moved
}

// full tells whether no further place can be given a number or a name.
func (d *directory) full() bool { return d.names.full() || d.places.used >= 1<<31 }

// lookup returns the number of a place with a name, or 0.
func (d *directory) lookup(k kind, name string) uint32 {
	return d.find(maphash.String(d.seed, name), k, name)
}

func (d *directory) find(hash uint64, k kind, name string) uint32 {
	return d.table.find(hash, func(i uint32) bool {
		p := d.places.at(i)
		return p.kind == k && d.names.get(p.key) == name
	})
}

// named returns the number of a place with a name. A new one is idle.
func (d *directory) named(k kind, name string) (i uint32, isNew bool) {
	hash := maphash.String(d.seed, name)
	if i := d.find(hash, k, name); i != 0 {
		return i, false
	}
	return d.enter(hash, place{kind: k, key: d.names.put(name), state: idle, due: longAgo}), true
}

// enter makes a new place known.
func (d *directory) enter(hash uint64, p place) uint32 {
	i := d.places.alloc()
	*d.places.at(i) = p
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
		p := d.places.at(i)
		return p.kind == anIPv4 && p.key == key
	})
	if i != 0 {
		return i, false
	}
	return d.enter(hash, place{kind: anIPv4, key: key, state: idle, due: longAgo}), true
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
	return d.names.get(d.places.at(i).key)
}

// ip is the inverse of address; 0 is the number of the invalid address.
func (d *directory) ip(i uint32) netip.Addr {
	if i == 0 {
		return netip.Addr{}
	}
	p := d.places.at(i)
	if p.kind == anIPv4 {
		return netip.AddrFrom4(fourBytes(p.key))
	}
	ip, _ := addressOf(d.names.get(p.key))
	return ip
}

func fourBytes(key uint32) (b [4]byte) {
	binary.BigEndian.PutUint32(b[:], key)
	return b
}

// appendKey appends the name of a place, or the bytes of its address, after the length.
func (d *directory) appendKey(dst []byte, i uint32) []byte {
	p := d.places.at(i)
	if p.kind == anIPv4 {
		b := fourBytes(p.key)
		return append(append(dst, 4), b[:]...)
	}
	name := d.names.get(p.key)
	return append(binary.AppendUvarint(dst, uint64(len(name))), name...)
}

// addressOf makes an address of its key, if it is the key of one: of 4 bytes, or of 16 that are no
// IPv4 address, with a zone behind them if there is one.
func addressOf(key string) (ip netip.Addr, ok bool) {
	if len(key) < 16 {
		ip, ok = netip.AddrFromSlice([]byte(key))
		return ip, ok
	}
	ip = netip.AddrFrom16([16]byte([]byte(key[:16])))
	return ip.WithZone(key[16:]), !ip.Is4In6()
}

// leave forgets a place.
func (d *directory) leave(i uint32) {
	p := *d.places.at(i)
	d.known[p.kind]--
	d.places.release(i)
	if p.kind == anIPv4 {
		d.table.remove(d.hashIPv4(p.key), i)
		return
	}
	d.table.remove(maphash.String(d.seed, d.names.get(p.key)), i)
	d.names.drop(p.key)
}

// moved finds the place of a name that moves.
func (d *directory) moved(name string, from uint32) (set func(to uint32)) {
	i := d.table.find(maphash.String(d.seed, name), func(i uint32) bool {
		p := d.places.at(i)
		return p.kind != anIPv4 && p.key == from
	})
	if i == 0 {
		return nil
	}
	return func(to uint32) { d.places.at(i).key = to }
}
