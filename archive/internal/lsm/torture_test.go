package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

var torture = flag.Duration("torture", 0, "how long to torture trees, with random seeds")

// TestTorture plays random histories of a Tree and of a model, a map, with faults from some of their
// steps on. After a crash, the tree must have what it had at the Freeze of the meta that it finds,
// and that must not be older than the last Commit that succeeded. From time to time the tree is
// built anew beside the one on disk, as an archive does with a damaged index.
func TestTorture(t *testing.T) {
	if *torture > 0 {
		for end := time.Now().Add(*torture); time.Now().Before(end) && !t.Failed(); {
			tortureAll(t, rand.Uint64(), 1)
		}
		return
	}
	for seed := range uint64(10) {
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

type model map[string]string

// A keeper has a Tree and a model of it.
type keeper struct {
	t      *testing.T
	random *rand.Rand
	fs     *vfs.Mem
	tree   *Tree
	now    model
	frozen []model // by the meta of the Freeze
	latest int     // meta of the last Freeze
	acked  int
	down   bool
}

func tortureOne(t *testing.T, seed uint64, at int, faults ...error) (steps int) {
	k := &keeper{
		t: t, random: rand.New(rand.NewPCG(seed, 4)), fs: vfs.NewMem(), frozen: []model{{}},
	}
	ok := false
	defer func() {
		if !ok || t.Failed() {
			t.Errorf("seed %d, %v at step %d", seed, faults, at)
		}
	}()
	k.open(false)
	k.fs.FailAt(at, faults...)
	for range 60 {
		k.turn()
	}
	steps = k.fs.Steps()
	k.fs.FailAt(0)
	k.crash(false)
	for range 10 {
		k.turn()
	}
	k.check()
	k.tree.Close()
	ok = true
	return steps
}

func (k *keeper) turn() {
	switch n := k.random.IntN(20); {
	case n < 8:
		k.put(k.random.IntN(15))
	case n < 10:
		k.freeze()
	case n < 14:
		k.commit()
	case n < 16:
		k.failed(k.tree.Merge(k.pause))
	case n == 16:
		k.check()
	case n == 17:
		k.crash(true)
	default:
		k.crash(false)
	}
	if k.down {
		k.crash(false)
	}
}

var errPaused = errors.New("enough for now")

// pause is called between two steps of a merge.
func (k *keeper) pause() error {
	k.put(k.random.IntN(3))
	switch k.random.IntN(6) {
	case 0:
		return errPaused
	case 1:
		k.commit()
	}
	return nil
}

func (k *keeper) failed(err error) bool {
	if err == nil || errors.Is(err, errPaused) {
		return false
	}
	if !errors.Is(err, errPlanned) {
		require.ErrorIs(k.t, err, vfs.ErrPower)
	}
	k.down = k.down || errors.Is(err, vfs.ErrPower)
	return true
}

// key returns a key whose prefix is its first byte.
func (k *keeper) key() []byte {
	key := []byte{'a' + byte(k.random.IntN(3)), 'a' + byte(k.random.IntN(6)), 'a' + byte(k.random.IntN(3))}
	return append(key, strings.Repeat("z", k.random.IntN(2)*k.random.IntN(9))...)
}

func (k *keeper) put(n int) {
	for range n {
		key, value := k.key(), fmt.Sprint(k.random.IntN(1000))
		k.now[string(key)] = value
		k.tree.Put(key, []byte(value))
	}
}

func (k *keeper) freeze() {
	meta := binary.LittleEndian.AppendUint32(nil, uint32(len(k.frozen)))
	if k.tree.Freeze(meta) {
		k.latest = len(k.frozen)
		k.frozen = append(k.frozen, maps.Clone(k.now))
	}
}

func (k *keeper) commit() {
	if k.random.IntN(2) == 0 {
		k.freeze()
	}
	if !k.failed(k.tree.Commit()) {
		k.acked = k.latest
		require.False(k.t, k.tree.Frozen())
	}
}

// crash cuts the power, or only ends the process.
func (k *keeper) crash(anew bool) {
	k.tree.Close()
	if k.down || k.random.IntN(2) == 0 {
		k.fs = k.fs.Crash(k.random)
	}
	k.down = false
	k.open(anew)
	k.check()
}

func (k *keeper) open(anew bool) {
	var err error
	for try := 0; try == 0 || err != nil && try < 5; try++ {
		if err = k.tryOpen(anew); k.failed(err) && k.down {
			k.fs, k.down = k.fs.Crash(k.random), false
		}
	}
	require.NoError(k.t, err)
}

func (k *keeper) tryOpen(anew bool) error {
	if err := k.fs.Sync(); err != nil {
		return err
	}
	tree, meta, err := Open(k.fs, Options{
		New: anew, Segment: 1 + k.random.Int64N(4), Prefix: func([]byte) int { return 1 },
	})
	if err != nil {
		return err
	}
	k.tree = tree
	if anew {
		k.latest, k.now = k.acked, model{}
		return nil
	}
	generation := 0
	if meta != nil {
		generation = int(binary.LittleEndian.Uint32(meta))
	}
	require.GreaterOrEqual(k.t, generation, k.acked)
	k.acked, k.latest, k.now = generation, generation, maps.Clone(k.frozen[generation])
	return nil
}

// check compares the tree with the model.
func (k *keeper) check() {
	keys := slices.Sorted(maps.Keys(k.now))
	low, high := k.key(), []byte("d")
	want := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key < string(low) })
	for p, err := range k.tree.Scan(low, high) {
		require.NoError(k.t, err)
		require.NotEmpty(k.t, want)
		require.Equal(k.t, want[0], string(p.Key))
		require.Equal(k.t, k.now[want[0]], string(p.Value))
		want = want[1:]
	}
	require.Empty(k.t, want)
	var n Neighbors
	for range 15 {
		key := k.key()
		require.NoError(k.t, k.tree.Around(&n, key, 1))
		at, _ := slices.BinarySearch(keys, string(key))
		if at > 0 && keys[at-1][0] == key[0] {
			require.Equal(k.t, keys[at-1], string(n.Below.Key))
			require.Equal(k.t, k.now[keys[at-1]], string(n.Below.Value))
		} else {
			require.Empty(k.t, n.Below.Key)
		}
		if at < len(keys) && keys[at][0] == key[0] {
			require.True(k.t, bytes.Equal([]byte(keys[at]), n.Next))
		} else {
			require.Empty(k.t, n.Next)
		}
	}
}

// TestMergeAfterAFailedCommit fails a commit between its run and its manifest. A merge that goes on
// must not publish the run under the meta of the commit before.
func TestMergeAfterAFailedCommit(t *testing.T) {
	m := vfs.NewMem()
	tree, _, err := Open(m, Options{})
	require.NoError(t, err)
	commit := func(key, meta string) error {
		tree.Put([]byte(key), []byte("value"))
		require.True(t, tree.Freeze([]byte(meta)))
		return tree.Commit()
	}
	for _, key := range []string{"a", "b"} {
		require.NoError(t, commit(key, key))
	}
	m.FailAt(m.Steps()+5, errPlanned) // after creating, writing and syncing the run
	require.ErrorIs(t, commit("c", "c"), errPlanned)
	require.NoError(t, tree.Merge(nil))
	tree.Close()
	tree, meta, err := Open(m, Options{})
	require.NoError(t, err)
	found := ""
	for p, err := range tree.Scan(nil, []byte("z")) {
		require.NoError(t, err)
		found = string(p.Key)
	}
	require.Equal(t, string(meta), found, "the last key is that of the last commit")
}
