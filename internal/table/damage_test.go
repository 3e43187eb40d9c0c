package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestDamage damages files of random tables. A table must then answer as before, or say that it is
// damaged, and never give another answer.
func TestDamage(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 2))
		p := &player{
			t: t, random: random, options: randomOptions(random), disk: watch(vfs.NewMem()),
			now: model{}, saved: []model{{}},
		}
		p.recover()
		for range 30 {
			p.turn()
		}
		p.save()
		st := p.table.State()
		p.close()
		for range 50 {
			m := p.disk.Clone()
			done := damage(m, random, st.Names("t-"))
			if !t.Run(fmt.Sprintf("seed %d: %s", seed, done), func(t *testing.T) {
				requireTruth(t, m, p.options, st, p.now)
			}) {
				return
			}
		}
	}
}

// damage damages a file, and says how.
func damage(m *vfs.Mem, random *rand.Rand, names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	name := names[random.IntN(len(names))]
	data := m.Data(name)
	at := random.IntN(len(data))
	switch random.IntN(6) {
	case 0:
		other := names[random.IntN(len(names))]
		m.Put(name, m.Data(other))
		return name + " is " + other
	case 1:
		m.Put(name, data[:at])
		return fmt.Sprint(name, " has ", at, " bytes")
	case 2:
		_ = m.Remove(name)
		return name + " is missing"
	case 3:
		m.Put(name, append(data, data[at:]...))
		return name + " is longer"
	default:
		m.Flip(name, int64(at), random.IntN(8))
		return fmt.Sprint(name, " has a flipped bit in byte ", at)
	}
}

// requireTruth reads a table in all ways.
func requireTruth(t *testing.T, m *vfs.Mem, o Options, st State, want model) {
	table, err := Open(m, o, st)
	if err != nil {
		require.ErrorIs(t, err, durable.ErrCorrupt)
		return
	}
	defer table.Close()
	alive := func(value []byte) bool { return o.Dead == nil || !o.Dead(value) }
	for key := range maps.Keys(want) {
		got := ""
		err := table.Find([][]byte{[]byte(key)}, func(_ int, value []byte) { got = string(value) })
		if err != nil {
			require.ErrorIs(t, err, durable.ErrCorrupt)
		} else if o.Prefix == nil {
			require.Equal(t, want[key], got)
		}
	}
	rest := want.pairs()
	err = scan(table, nil, func(key, value []byte) {
		if alive(value) {
			require.NotEmpty(t, rest)
			require.Equal(t, rest[0], Pair{key, value})
			rest = rest[1:]
		}
	})
	if err != nil {
		require.ErrorIs(t, err, durable.ErrCorrupt)
		return
	}
	require.Empty(t, rest)
}

func scan(table *Table, low []byte, visit func(key, value []byte)) error {
	sources, release, err := table.Scan(low)
	if err != nil {
		return err
	}
	defer release()
	m, err := NewMerger(sources...)
	for ; err == nil; err = m.Next() {
		key, value := m.Entry()
		if key == nil {
			return nil
		}
		visit(key, value)
	}
	return err
}

// FuzzForged reads a file whose parts were forged with the right checksums. The law: it is rejected
// as corrupt, or read in time and memory that are linear in its size.
func FuzzForged(f *testing.F) {
	f.Add(true, []byte("aabbcc"), place1("aa", 0, 6), place1("aa", 10, 5), make([]byte, 64),
		int64(3), int64(0), int64(0), int64(0))
	w := blockWriter{}
	w.add([]byte("a1"), []byte("x"))
	w.add([]byte("a2"), []byte("y"))
	block := slices.Clone(w.finish())
	leaf := place1("a1", 0, len(block))
	f.Add(false, block, leaf, place1("a1", len(block)+4, len(leaf)), make([]byte, 128),
		int64(2), int64(0), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, fixed bool, block, leaf, top, filter []byte, count, a, b, c int64) {
		o := Options{}
		if fixed {
			o.Key, o.Value = 1, 1
		}
		m := vfs.NewMem()
		s := &segment{number: 1}
		var data []byte
		part := func(b []byte) (at int64) {
			at = int64(len(data))
			data = append(data, b...)
			data = binary.LittleEndian.AppendUint32(data, s.sum(at, b))
			return at
		}
		part(block)
		ends := footer{count: count, data: part(leaf) + a, top: part(top) + b, filter: part(filter) + c}
		part(ends.append(nil, o.Key, o.Value))
		m.Put("00000001", data)
		table, err := Open(m, o, State{Last: 1, Runs: []RunState{{Files: []uint64{1}}}})
		if err != nil {
			require.ErrorIs(t, err, durable.ErrCorrupt)
			return
		}
		defer table.Close()
		kept := 0
		for _, top := range table.view.runs[0].segments[0].tops {
			kept += len(top.first)
		}
		require.LessOrEqual(t, kept, restartEvery*len(data))
		for _, low := range [][]byte{nil, []byte("a"), []byte("a2"), {255}} {
			seen := 0
			err := scan(table, low, func(_, _ []byte) { seen++ })
			require.LessOrEqual(t, seen, len(data))
			require.True(t, err == nil || isCorrupt(err), err)
			if len(low) == 0 {
				continue
			}
			err = table.Find([][]byte{low}, func(int, []byte) {})
			require.True(t, err == nil || isCorrupt(err), err)
			var n Neighbors
			n.Reset(low, 1)
			err = table.Around(&n)
			require.True(t, err == nil || isCorrupt(err), err)
		}
	})
}

func isCorrupt(err error) bool {
	var c *durable.CorruptError
	return errors.As(err, &c)
}

// place1 is a leaf, or a top, with one place.
func place1(first string, at, size int) []byte {
	w := blockWriter{}
	value := binary.AppendUvarint(nil, uint64(at))
	w.add([]byte(first), binary.AppendUvarint(value, uint64(size)))
	return slices.Clone(w.finish())
}

// FuzzState decodes states. The law: an accepted state is encoded to something that is decoded to the
// same state, no longer than what was read, and can be opened as far as its files exist.
func FuzzState(f *testing.F) {
	st := State{9, []RunState{
		{Files: []uint64{1, 2}}, {}, {Files: []uint64{7}, Inputs: 2, Low: []byte("k")},
		{Files: []uint64{9}},
	}}
	f.Add(st.Append(nil))
	f.Add(State{}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		st, rest, err := TakeState(b, "M")
		if err != nil {
			require.NotEqual(t, isCorrupt(err), errors.Is(err, durable.ErrVersion))
			return
		}
		again := st.Append(nil)
		require.LessOrEqual(t, len(again), len(b)-len(rest))
		same, none, err := TakeState(again, "M")
		require.NoError(t, err)
		require.Empty(t, none)
		require.Equal(t, st, same)
		_, err = Open(vfs.NewMem(), Options{}, st)
		require.Equal(t, len(st.Names("")) > 0, isCorrupt(err))
	})
}

// TestFormat fixes the bytes of version 3, which FORMAT.md describes.
func TestFormat(t *testing.T) {
	require.Equal(t, 3, Version)
	entries := pairs{}
	for i := range 300 {
		entries = append(entries, Pair{fmt.Appendf(nil, "%06d", 7*i), fmt.Appendf(nil, "%02d", i%100)})
	}
	for _, c := range []struct {
		o    Options
		want uint32
	}{
		{Options{Name: "x-", Block: 256, FilterBits: 10, FullBits: 10}, 0x802d7876},
		{Options{Name: "x-", Key: 6, Value: 2, Block: 256, FilterBits: 10, FullBits: 10}, 0x180d79cf},
	} {
		m := vfs.NewMem()
		table, err := Open(m, c.o, State{})
		require.NoError(t, err)
		source := slices.Clone(entries)
		require.NoError(t, table.Write(&source))
		table.Close()
		data := m.Data("x-00000001")
		require.Equal(t, c.want, crc32.ChecksumIEEE(data))
		require.Contains(t, string(data), magic)
	}
	st := State{300, []RunState{{Files: []uint64{1}}, {[]uint64{300}, 1, []byte("k")}}}
	require.Equal(t, []byte("\x03\xac\x02\x02\x00\x01\x01\x01\x01k\x01\xac\x02"), st.Append(nil))
	_, _, err := TakeState(bytes.Replace(st.Append(nil), []byte{3}, []byte{4}, 1), "M")
	require.ErrorIs(t, err, durable.ErrVersion)
	require.ErrorContains(t, err, "tables of version 4")
}
