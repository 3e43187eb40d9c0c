package idset

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/table"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

var torture = flag.Duration("torture", 0, "how long to torture sets, with random seeds")

// TestTorture plays random histories of a Set and of a model, a map, with faults from some of their
// steps on. The owner saves the state as a store does: what was put before the last Freeze is in it
// after Flush. After a crash, the set must have exactly that.
func TestTorture(t *testing.T) {
	before := options
	defer func() { options = before }()
	options.Block, options.Segment, options.Steps = 60, 3, 4
	if *torture > 0 {
		for end := time.Now().Add(*torture); time.Now().Before(end) && !t.Failed(); {
			tortureAll(t, rand.Uint64(), 1)
		}
		return
	}
	seeds := uint64(10)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		tortureAll(t, seed, 9)
	}
}

var errPlanned = fmt.Errorf("planned: %w", syscall.EIO)

func tortureAll(t *testing.T, seed uint64, every int) {
	steps := tortureOne(t, seed, 0)
	for at := 1 + int(seed)%every; at <= steps && !t.Failed(); at += every {
		for _, faults := range [][]error{
			{vfs.ErrPower}, {errPlanned}, {errPlanned, errPlanned}, {errPlanned, nil, vfs.ErrPower},
			{errPlanned, nil, nil, nil, errPlanned},
		} {
			tortureOne(t, seed, at, faults...)
		}
	}
}

const (
	stateName  = "STATE"
	stateMagic = "SPNTORT1"
)

type model map[Key]uint64

// An owner has a Set and a model of it.
type owner struct {
	t      *testing.T
	random *rand.Rand
	fs     *vfs.Mem
	set    *Set
	now    model   // all changes
	frozen model   // those before the last Freeze
	saved  []model // by the generation of the state; nil if it must not be found
	acked  int
	down   bool
}

func tortureOne(t *testing.T, seed uint64, at int, faults ...error) (steps int) {
	o := &owner{
		t: t, random: rand.New(rand.NewPCG(seed, 3)), fs: vfs.NewMem(), saved: []model{{}},
	}
	ok := false
	defer func() {
		if !ok || t.Failed() {
			t.Errorf("seed %d, %v at step %d", seed, faults, at)
		}
	}()
	o.open()
	o.fs.FailAt(at, faults...)
	for range 60 {
		o.turn()
	}
	steps = o.fs.Steps()
	o.fs.FailAt(0)
	o.crash()
	for range 10 {
		o.turn()
	}
	o.check()
	o.set.Close()
	ok = true
	return steps
}

func (o *owner) turn() {
	switch n := o.random.IntN(20); {
	case n < 8:
		o.change(o.random.IntN(12))
	case n < 12:
		o.step()
	case n < 17:
		o.save()
	case n == 17:
		o.check()
	default:
		o.crash()
	}
	if o.down {
		o.crash()
	}
}

func (o *owner) change(n int) {
	for range n {
		key := Key{byte(o.random.IntN(4)), 15: byte(o.random.IntN(20))}
		if o.random.IntN(3) == 0 {
			delete(o.now, key)
			o.set.Delete(key)
			continue
		}
		value := o.random.Uint64N(MaxValue)
		o.now[key] = value
		o.set.Put(key, value)
	}
}

func (o *owner) failed(err error) bool {
	if err == nil {
		return false
	}
	if !errors.Is(err, errPlanned) {
		require.ErrorIs(o.t, err, vfs.ErrPower)
	}
	o.down = o.down || errors.Is(err, vfs.ErrPower)
	return true
}

func (o *owner) step() {
	for range 1 + o.random.IntN(6) {
		if more, err := o.set.Step(); o.failed(err) || !more {
			return
		}
	}
}

// save is a checkpoint. Changes and a merge go on meanwhile.
func (o *owner) save() {
	o.set.Freeze()
	o.frozen = maps.Clone(o.now)
	o.change(o.random.IntN(4))
	if o.failed(o.set.Flush()) {
		return
	}
	st := o.set.State()
	if o.random.IntN(2) == 0 {
		o.step()
	}
	body := binary.LittleEndian.AppendUint32(nil, uint32(len(o.saved)))
	o.saved = append(o.saved, o.frozen)
	err := durable.Replace(o.fs, stateName, durable.Seal(stateMagic, st.Append(body)))
	switch {
	case !o.failed(err):
		o.acked = len(o.saved) - 1
		o.set.Saved(st)
	case errors.Is(err, durable.ErrUnknown):
		o.down = true
	default:
		o.saved[len(o.saved)-1] = nil
	}
}

// crash cuts the power, or only ends the process.
func (o *owner) crash() {
	o.set.Close()
	if o.down || o.random.IntN(2) == 0 {
		o.fs = o.fs.Crash(o.random)
	}
	o.down = false
	o.open()
	o.check()
}

func (o *owner) open() {
	var err error
	for try := 0; try == 0 || err != nil && try < 5; try++ {
		if err = o.tryOpen(); o.failed(err) && o.down {
			o.fs, o.down = o.fs.Crash(o.random), false
		}
	}
	require.NoError(o.t, err)
}

func (o *owner) tryOpen() error {
	if err := o.fs.Sync(); err != nil {
		return err
	}
	generation, st := 0, State{}
	b, err := durable.ReadFile(o.fs, stateName)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(o.t, err)
		body, err := durable.Unseal(stateName, 0, stateMagic, b)
		require.NoError(o.t, err)
		generation = int(binary.LittleEndian.Uint32(body))
		st, _, err = table.TakeState(body[4:], stateName)
		require.NoError(o.t, err)
	}
	require.GreaterOrEqual(o.t, generation, o.acked)
	require.NotNil(o.t, o.saved[generation])
	set, err := Open(o.fs, st)
	if err != nil {
		return err
	}
	o.set, o.acked, o.now = set, generation, maps.Clone(o.saved[generation])
	return nil
}

// check compares the set with the model.
func (o *owner) check() {
	got := model{}
	last := Key{}
	require.NoError(o.t, o.set.All(func(key Key, value uint64) {
		require.True(o.t, len(got) == 0 || string(last[:]) < string(key[:]))
		last, got[key] = key, value
	}))
	require.Equal(o.t, o.now, got)
	keys := []Key{{9}}
	for range 20 {
		keys = append(keys, Key{byte(o.random.IntN(4)), 15: byte(o.random.IntN(20))})
	}
	values, err := o.set.Find(keys)
	require.NoError(o.t, err)
	for i, key := range keys {
		want, found := o.now[key]
		if !found {
			want = None
		}
		require.Equal(o.t, want, values[i])
	}
}
