package table

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

var tortures = flag.Int("tortures", 150, "seeds of TestTorture")

// manifestFile is that of an owner.
const manifestFile = "manifest"

// A victim is a table with an owner who keeps its state, and what both should have.
type victim struct {
	t     *testing.T
	rnd   *rand.Rand
	disk  *vfs.Mem
	opts  Options
	table *Table
	now   map[string]string   // what the table has
	kept  map[string]string   // what the saved state has
	doubt []map[string]string // what it may have instead, after saves whose fate is unknown
	armed bool                // a fault may have kept a file from being removed
}

// tiny returns options with which every rare path is common.
func tiny(rnd *rand.Rand) Options {
	o := Options{
		Name: "t-", Block: []int{0, 20, 100}[rnd.IntN(3)], FilterBits: rnd.IntN(3) * 4, FullBits: rnd.IntN(3) * 4,
		Segment: 1 + rnd.Int64N(20), Steps: 1 + rnd.Int64N(30), Memory: []int64{0, 1, 500}[rnd.IntN(3)],
	}
	if rnd.IntN(2) == 0 {
		o.Key, o.Value = 4, 4
	}
	if rnd.IntN(2) == 0 {
		o.Dead = func(value []byte) bool { return bytes.HasPrefix(value, []byte("dead")) }
	}
	return o
}

// key returns one of some keys of fixed or varying length.
func (v *victim) key() string {
	k := fmt.Sprintf("%04d", v.rnd.IntN(120))
	if v.opts.Key == 0 {
		return k[v.rnd.IntN(4):]
	}
	return k
}

func (v *victim) value() string {
	if v.opts.Dead != nil && v.rnd.IntN(4) == 0 {
		return "dead"
	}
	text := fmt.Sprintf("%04d", v.rnd.IntN(10000))
	if v.opts.Key == 0 {
		return text[v.rnd.IntN(5):]
	}
	return text
}

// listed is a source of the entries of a map.
type listed struct {
	keys []string
	of   map[string]string
}

func (l *listed) Next() (key, value []byte, err error) {
	if len(l.keys) == 0 {
		return nil, nil, nil
	}
	k := l.keys[0]
	l.keys = l.keys[1:]
	return []byte(k), []byte(l.of[k]), nil
}

func (v *victim) write() error {
	batch := map[string]string{}
	for range v.rnd.IntN(40) {
		batch[v.key()] = v.value()
	}
	err := v.table.Write(&listed{slices.Sorted(maps.Keys(batch)), batch})
	if err == nil {
		maps.Copy(v.now, batch)
	}
	return err
}

func (v *victim) step() error {
	for range 1 + v.rnd.IntN(10) {
		more, err := v.table.Step()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// save makes the state durable, and removes what it no longer needs.
func (v *victim) save() error {
	st, saved := v.table.State(), maps.Clone(v.now)
	err := durable.Replace(v.disk, manifestFile, st.Append(nil))
	switch {
	case err == nil:
		v.kept, v.doubt = saved, nil
		v.table.Saved(st)
	case errors.Is(err, durable.ErrUnknown):
		v.doubt = append(v.doubt, saved)
	}
	return err
}

// open opens the saved state.
func (v *victim) open() error {
	var st State
	b := v.disk.Data(manifestFile)
	if b != nil {
		var err error
		st, b, err = TakeState(b, manifestFile)
		require.NoError(v.t, err)
		require.Empty(v.t, b)
	}
	var err error
	if v.table, err = Open(v.disk, v.opts, st); err != nil {
		return err
	}
	return v.table.Sweep()
}

// crash loses what was not synced, and opens what is left.
func (v *victim) crash() {
	v.table.Close()
	v.disk, v.armed = v.disk.Crash(v.rnd), false
	require.NoError(v.t, v.open())
	v.settle()
}

// settle finds out which state is the saved one.
func (v *victim) settle() {
	found := v.content()
	v.now = maps.Clone(v.kept)
	for _, saved := range v.doubt {
		if !maps.Equal(found, v.alive(v.now)) {
			v.now = maps.Clone(saved)
		}
	}
	v.kept, v.doubt = maps.Clone(v.now), nil
	v.check()
}

// alive returns a map without what only hides other entries: a merge may have dropped that.
func (v *victim) alive(all map[string]string) map[string]string {
	alive := maps.Clone(all)
	if alive == nil {
		alive = map[string]string{}
	}
	maps.DeleteFunc(alive, func(_, value string) bool { return v.opts.Dead != nil && value == "dead" })
	return alive
}

// content scans the table.
func (v *victim) content() map[string]string {
	sources, release, err := v.table.Scan(nil)
	require.NoError(v.t, err)
	defer release()
	m, err := NewMerger(sources...)
	require.NoError(v.t, err)
	all, last := map[string]string{}, ""
	for {
		key, value := m.Entry()
		if key == nil {
			return v.alive(all)
		}
		require.True(v.t, len(all) == 0 || string(key) > last)
		last = string(key)
		all[last] = string(value)
		require.NoError(v.t, m.Next())
	}
}

// check compares the table with what it should have, by scanning and by looking up.
func (v *victim) check() {
	want := v.alive(v.now)
	require.Equal(v.t, want, v.content())
	asked := map[string]bool{}
	for range 30 {
		asked[v.key()] = true
	}
	keys := slices.Sorted(maps.Keys(asked))
	var raw [][]byte
	for _, k := range keys {
		raw = append(raw, []byte(k))
	}
	var mu sync.Mutex
	got := map[string]string{}
	require.NoError(v.t, v.table.Find(raw, func(i int, value []byte) {
		mu.Lock()
		defer mu.Unlock()
		got[keys[i]] = string(value)
	}))
	got = v.alive(got)
	maps.DeleteFunc(want, func(key, _ string) bool { return !asked[key] })
	require.Equal(v.t, want, got)
}

// files checks that the only files are those that some state needs.
func (v *victim) files() {
	if v.doubt != nil || v.armed {
		return
	}
	names, err := v.disk.List()
	require.NoError(v.t, err)
	named := append(v.table.State().Names(v.opts.Name), manifestFile, manifestFile+durable.NewName)
	ours := 0
	for _, name := range names {
		if slices.Contains(named, name) {
			ours++
		}
	}
	merges := 0 // each may have an unfinished file
	for _, r := range v.table.State().Runs {
		if r.Inputs > 0 {
			merges++
		}
	}
	require.LessOrEqual(v.t, len(names)-ours, v.table.Garbage()+merges, "%v, %v", names, named)
}

// TestTorture writes, merges, saves and opens at random, while the disk fails at random steps, fails
// again while the owner goes on, and loses its power.
func TestTorture(t *testing.T) {
	for seed := range uint64(*tortures) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 43))
			v := &victim{t: t, rnd: rnd, disk: vfs.NewMem(), opts: tiny(rnd)}
			require.NoError(t, v.open())
			v.now, v.kept = map[string]string{}, map[string]string{}
			for range 150 {
				if rnd.IntN(8) == 0 {
					v.armed = true
					v.disk.FailAt(v.disk.Steps()+1+rnd.IntN(12), []error{syscall.EIO, syscall.ENOSPC, vfs.ErrPower}[rnd.IntN(3)])
				}
				var err error
				switch rnd.IntN(10) {
				case 0, 1, 2:
					err = v.write()
				case 3, 4, 5, 6:
					err = v.step()
				case 7, 8:
					err = v.save()
				case 9:
					v.crash()
				}
				if errors.Is(err, vfs.ErrPower) {
					v.crash()
				}
				v.check()
				v.files()
			}
			v.crash()
			for more := true; more; {
				var err error
				more, err = v.table.Step()
				require.NoError(t, err)
			}
			require.NoError(t, v.save())
			require.NoError(t, v.table.Sweep())
			_, runs, entries := v.table.Size()
			require.LessOrEqual(t, runs, 9)
			require.LessOrEqual(t, int(entries), 2*121*10)
			v.files()
			v.check()
			v.table.Close()
		})
	}
}

// TestDamage flips each bit of each file: a table tells, or has what it had, and never something
// else.
func TestDamage(t *testing.T) {
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 44))
		v := &victim{t: t, rnd: rnd, disk: vfs.NewMem(), opts: tiny(rnd)}
		require.NoError(t, v.open())
		v.now, v.kept = map[string]string{}, map[string]string{}
		for range 4 {
			require.NoError(t, v.write())
			require.NoError(t, v.step())
		}
		require.NoError(t, v.save())
		want := v.content()
		v.table.Close()
		for _, name := range v.table.State().Names(v.opts.Name) {
			for bit := range 8 * len(v.disk.Data(name)) {
				disk := v.disk.Clone()
				disk.Flip(name, int64(bit/8), bit%8)
				got, err := readAll(disk, v.opts)
				if err == nil {
					require.Equal(t, want, v.alive(got), "%s: bit %d", name, bit)
					continue
				}
				var corrupt *durable.CorruptError
				require.ErrorAs(t, err, &corrupt, "%s: bit %d", name, bit)
				require.Equal(t, name, corrupt.File)
			}
		}
	}
}

// readAll scans a table.
func readAll(disk *vfs.Mem, o Options) (all map[string]string, err error) {
	st, _, err := TakeState(disk.Data(manifestFile), manifestFile)
	if err != nil {
		return nil, err
	}
	table, err := Open(disk, o, st)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	sources, release, err := table.Scan(nil)
	if err != nil {
		return nil, err
	}
	defer release()
	m, err := NewMerger(sources...)
	all = map[string]string{}
	for err == nil {
		key, value := m.Entry()
		if key == nil {
			return all, nil
		}
		all[string(key)] = string(value)
		err = m.Next()
	}
	return nil, err
}

// FuzzTakeState: what is accepted is what Append would write.
func FuzzTakeState(f *testing.F) {
	f.Add(State{Last: 9, Runs: []RunState{{Files: []uint64{1, 2}}, {Files: []uint64{9}, Inputs: 1, Low: []byte("k")}}}.Append(nil))
	f.Add(append(State{}.Append(nil), "rest"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		st, rest, err := TakeState(b, "f")
		if err != nil {
			require.True(t, errors.Is(err, durable.ErrCorrupt) != errors.Is(err, durable.ErrVersion))
			return
		}
		again, left, err := TakeState(append(st.Append(nil), rest...), "f")
		require.NoError(t, err)
		require.Equal(t, st, again)
		require.Equal(t, rest, left)
	})
}

// FuzzSegment opens and reads any file as a segment. Time and memory are bounded by its size, and
// damage is reported as such.
func FuzzSegment(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 45))
	v := &victim{t: &testing.T{}, rnd: rnd, disk: vfs.NewMem(), opts: Options{Name: "t-", Block: 60, FilterBits: 8, FullBits: 8, Segment: 50, Steps: 50}}
	_ = v.open()
	v.now = map[string]string{}
	_ = v.write()
	f.Add(v.disk.Data("t-00000001"))
	f.Fuzz(func(t *testing.T, b []byte) {
		disk := vfs.NewMem()
		disk.Put("t-00000001", b)
		disk.Put(manifestFile, State{Last: 1, Runs: []RunState{{Files: []uint64{1}}}}.Append(nil))
		all, err := readAll(disk, v.opts)
		if err != nil {
			require.True(t, errors.Is(err, durable.ErrCorrupt) != errors.Is(err, durable.ErrVersion), err)
		}
		require.LessOrEqual(t, len(all), len(b))
	})
}
