package scheduler

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTableAgainstMap has hashes that collide in the shard, in the tag and in the home.
func TestTableAgainstMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var table table
		var ids []uint32
		hashes := make(map[uint32]uint64) // by id
		for id := range uint32(3000) {
			hash := rng.Uint64N(4)<<62 | rng.Uint64N(40)<<25 // few homes, at both ends of the tags
			if rng.IntN(3) > 0 {
				hash = rng.Uint64()
			}
			table.insert(hash, id+1)
			hashes[id+1], ids = hash, append(ids, id+1)
			if rng.IntN(2) == 0 {
				i := rng.IntN(len(ids))
				gone, hash := ids[i], hashes[ids[i]]
				ids = slices.Delete(ids, i, i+1)
				table.remove(hash, gone)
				delete(hashes, gone)
				require.Zero(t, table.find(hash, func(id uint32) bool { return id == gone }))
			}
		}
		used := 0
		for _, s := range table.shards {
			used += s.used
			require.LessOrEqual(t, 5*s.used, 4*len(s.cells))
		}
		require.Equal(t, len(hashes), used)
		for want, hash := range hashes {
			require.Equal(t, want, table.find(hash, func(id uint32) bool { return id == want }))
		}
	}
}

// TestDirectoryAgainstMap adds and removes hosts, groups and addresses, so that names move.
func TestDirectoryAgainstMap(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var d directory
		d.init()
		ids, given := make(map[any]uint32), make(map[string]string)
		for range 20000 {
			key := randomKey(rng)
			if id, known := ids[key]; known {
				checkKey(t, &d, key, id)
				d.forget(id)
				delete(ids, key)
				continue
			}
			before := len(ids)
			id := find(&d, key)
			ids[key] = id
			require.Equal(t, before+1, d.known[aHost]+d.known[anAddr]+d.known[aGroup])
			if host, ok := key.(string); ok {
				given[host] = d.name(id)
			}
		}
		for key, id := range ids {
			checkKey(t, &d, key, id)
		}
		for want, name := range given {
			require.Equal(t, want, name, "a returned name does not change")
		}
		held, live := 0, 0
		for key := range ids {
			switch key := key.(type) {
			case groupKey:
				live += prefixed(string(key))
			case string:
				live += prefixed(key)
			case netip.Addr:
				name, _ := key.MarshalBinary()
				live += prefixed(string(name))
			}
		}
		for _, text := range d.names.texts {
			held += len(text.s)
		}
		require.Less(t, held, 2*live+3*textLen, "the memory of forgotten names is reused")
	}
}

type groupKey string

func randomKey(rng *rand.Rand) any {
	n := rng.IntN(1000)
	switch rng.IntN(5) {
	case 0:
		return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
	case 1:
		ip := netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 14: byte(n >> 8), 15: byte(n)})
		return ip.WithZone([]string{"", "eth0"}[n%2])
	case 2:
		return groupKey(fmt.Sprint("g", n))
	case 3: // lengths that take two and three bytes
		return fmt.Sprint(n) + strings.Repeat("x", []int{126, 127, 20000, textLen}[n%4])
	default:
		return fmt.Sprint("g", n)
	}
}

func find(d *directory, key any) (id uint32) {
	switch key := key.(type) {
	case netip.Addr:
		return d.address(key)
	case groupKey:
		return d.named(aGroup, string(key))
	default:
		return d.named(aHost, key.(string))
	}
}

func checkKey(t *testing.T, d *directory, key any, want uint32) {
	id := find(d, key)
	require.Equal(t, want, id)
	switch key := key.(type) {
	case netip.Addr:
		require.Equal(t, key, d.ip(id))
	case groupKey:
		require.Equal(t, string(key), d.name(id))
	default:
		require.Equal(t, key, d.name(id))
	}
}

func TestNamesAreFull(t *testing.T) {
	var n names
	n.texts = make([]text, maxTexts-spareTexts+1)
	require.True(t, n.full())
	n.free = append(n.free, 7)
	require.False(t, n.full())

	// A task has three names, each of which may need a text of its own.
	met := make(map[uint32]bool)
	for !n.full() {
		for range 3 {
			met[n.put(strings.Repeat("x", textLen))>>textBits] = true
		}
	}
	require.Len(t, met, 3)
	require.Less(t, len(n.texts), maxTexts, "one is left for names that move")
}
