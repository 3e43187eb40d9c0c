package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/table"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// prefixOf returns the length up to and with the slash.
func prefixOf(key []byte) int { return bytes.IndexByte(key, '/') + 1 }

func open(t testing.TB, files vfs.FS) (*Tree, string) {
	t.Helper()
	tree, meta, err := Open(files, Options{Prefix: prefixOf, Segment: 700})
	require.NoError(t, err)
	return tree, string(meta)
}

// commit commits all pairs put so far, and merges.
func commit(t *Tree, meta string) error {
	if !t.Freeze([]byte(meta)) {
		return errors.New("already frozen")
	}
	if err := t.Commit(); err != nil {
		return err
	}
	return t.Merge(nil)
}

// contents returns all pairs, and requires that they are in order.
func contents(t testing.TB, tree *Tree, low, high string) map[string]string {
	t.Helper()
	all := map[string]string{}
	last := ""
	for p, err := range tree.Scan([]byte(low), []byte(high)) {
		require.NoError(t, err)
		require.Less(t, last, string(p.Key))
		last = string(p.Key)
		all[last] = string(p.Value)
	}
	return all
}

// requireAround compares the neighbors of a key with those in the model.
func requireAround(t testing.TB, tree *Tree, model map[string]string, key string) {
	t.Helper()
	prefix := key[:prefixOf([]byte(key))]
	var below, next string
	for k := range model {
		switch {
		case !strings.HasPrefix(k, prefix):
		case k < key:
			below = max(below, k)
		case next == "" || k < next:
			next = k
		}
	}
	var n Neighbors
	require.NoError(t, tree.Around(&n, []byte(key), len(prefix)))
	require.Equal(t, below, string(n.Below.Key), key)
	require.Equal(t, model[below], string(n.Below.Value))
	require.Equal(t, next, string(n.Next), key)
}

func randomKey(r *rand.Rand) string {
	return fmt.Sprintf("%d/%0*d", r.IntN(40), 1+r.IntN(4), r.IntN(3000))
}

// Random puts, commits and new processes, compared with a map.
func TestTreeMatchesModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			files := vfs.NewMem()
			tree, _ := open(t, files)
			model, committed, meta := map[string]string{}, map[string]string{}, ""
			for i := range 60 {
				for range r.IntN(400) {
					key, value := randomKey(r), strings.Repeat(fmt.Sprint(i), 1+r.IntN(30))
					tree.Put([]byte(key), []byte(value))
					model[key] = value
				}
				switch r.IntN(4) {
				case 0, 1:
					meta = fmt.Sprint("meta ", i)
					require.NoError(t, commit(tree, meta))
					committed = maps.Clone(model)
				case 2: // a new process
					tree.Close()
					var found string
					tree, found = open(t, files)
					require.Equal(t, meta, found)
					model = maps.Clone(committed)
				}
				for range 20 {
					requireAround(t, tree, model, randomKey(r))
				}
				low, high := randomKey(r), randomKey(r)
				want := map[string]string{}
				for k, v := range model {
					if k >= low && k < high {
						want[k] = v
					}
				}
				require.Equal(t, want, contents(t, tree, low, high))
			}
			require.Equal(t, model, contents(t, tree, "", "~"))
			require.NoError(t, tree.Merge(nil))
			st := tree.table.State()
			require.Less(t, len(st.Runs), 12)
			tree.Close()
			names, err := files.List()
			require.NoError(t, err)
			require.Len(t, names, len(st.Names("index-"))+2, "merged runs are removed")
			require.ErrorIs(t, tree.Around(new(Neighbors), []byte("a/"), 2), ErrClosed)
		})
	}
}

// After a power failure at any step, the tree has the entries and the meta of one commit. No
// acknowledged commit is lost.
func TestPowerFailure(t *testing.T) {
	script := func(files *vfs.Mem) (states []map[string]string, acknowledged int, err error) {
		tree, _, err := Open(files, Options{Prefix: prefixOf, Segment: 700})
		states = []map[string]string{{}}
		if err != nil {
			return states, 0, err
		}
		defer tree.Close()
		r := rand.New(rand.NewPCG(5, 5))
		for i := 1; i <= 6; i++ {
			state := maps.Clone(states[i-1])
			for range 30 {
				key := randomKey(r)
				tree.Put([]byte(key), fmt.Appendf(nil, "v%d", i))
				state[key] = fmt.Sprint("v", i)
			}
			states = append(states, state)
			if err := commit(tree, fmt.Sprint(i)); err != nil {
				return states, acknowledged, err
			}
			acknowledged = i
		}
		return states, acknowledged, nil
	}
	whole := vfs.NewMem()
	_, n, err := script(whole)
	require.NoError(t, err)
	require.Equal(t, 6, n)
	for step := 1; step <= whole.Steps(); step++ {
		files := vfs.NewMem()
		files.FailAt(step, vfs.ErrPower)
		states, acknowledged, err := script(files)
		if err != nil { // a run that cannot be removed is no error
			require.ErrorIs(t, err, vfs.ErrPower)
		}
		for seed := range uint64(8) {
			found := files.Crash(rand.New(rand.NewPCG(seed, uint64(step))))
			tree, meta := open(t, found)
			i := 0
			_, _ = fmt.Sscan(meta, &i)
			require.GreaterOrEqual(t, i, acknowledged, "step %d seed %d", step, seed)
			require.Equal(t, states[i], contents(t, tree, "", "~"))
			require.NoError(t, commit(tree, meta), "the tree can be written to")
			tree.Close()
		}
	}
}

// One disk error loses nothing: the next attempt commits the frozen pairs.
func TestDiskFailsOnce(t *testing.T) {
	for step := 1; ; step++ {
		files := vfs.NewMem()
		tree, _ := open(t, files)
		files.FailAt(files.Steps()+step, errors.New("fire"))
		model := map[string]string{}
		failed := 0
		for i := range 4 {
			key := fmt.Sprintf("a/%d", i)
			model[key] = "x"
			tree.Put([]byte(key), []byte("x"))
			tree.Freeze([]byte("m"))
			for range 2 {
				if err := errors.Join(tree.Commit(), tree.Merge(nil)); err != nil {
					failed++
				}
			}
			require.Equal(t, model, contents(t, tree, "", "~"))
		}
		tree.Close()
		tree, _ = open(t, files)
		require.Equal(t, model, contents(t, tree, "", "~"))
		if failed == 0 {
			require.Greater(t, step, 20)
			return
		}
	}
}

// Readers see all earlier puts during commits and merges, and the files that they use stay
// readable.
func TestReadersDuringCommits(t *testing.T) {
	files := vfs.NewMem()
	tree, _ := open(t, files)
	var all sync.WaitGroup
	done := make(chan struct{})
	var mu sync.Mutex
	put := map[string]string{}
	for range 3 {
		all.Go(func() {
			for seed := uint64(0); ; seed++ {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				want := maps.Clone(put)
				mu.Unlock()
				got := map[string]string{}
				for p, err := range tree.Scan(nil, []byte("~")) {
					if err != nil {
						t.Error(err)
					}
					got[string(p.Key)] = string(p.Value)
				}
				for key := range want {
					var n Neighbors
					err := tree.Around(&n, []byte(key+"\x00"), prefixOf([]byte(key)))
					if got[key] == "" || err != nil || string(n.Below.Key) != key {
						t.Errorf("%s is lost: %v", key, err)
					}
				}
			}
		})
	}
	for i := range 60 {
		for j := range 20 {
			key := fmt.Sprintf("%d/%d", j, i)
			tree.Put([]byte(key), []byte("v"))
			mu.Lock()
			put[key] = "v"
			mu.Unlock()
		}
		require.NoError(t, commit(tree, "m"))
	}
	close(done)
	all.Wait()
	tree.Close()
}

// someRun returns a tree with one run.
func someRun(t testing.TB, n int) (files *vfs.Mem, name string, model map[string]string) {
	files = vfs.NewMem()
	tree, _ := open(t, files)
	model = map[string]string{}
	for i := range n {
		key := fmt.Sprintf("host%d/%d", i/5, i)
		model[key] = strings.Repeat("v", i%70+1)
		tree.Put([]byte(key), []byte(model[key]))
	}
	require.NoError(t, commit(tree, "m"))
	tree.Close()
	return files, table.FileName("index-", 1), model
}

// A flipped bit anywhere is found by Open or a scan.
func TestEveryBitIsChecked(t *testing.T) {
	files, name, _ := someRun(t, 400)
	data := files.Data(name)
	for at := 0; at < len(data); at += 1 + len(data)/600 {
		broken := files.Clone()
		broken.Flip(name, int64(at), at%8)
		tree, _, err := Open(broken, Options{Prefix: prefixOf, Segment: 700})
		if err == nil {
			for _, failed := range tree.Scan(nil, []byte("~")) {
				err = failed
			}
			tree.Close()
		}
		require.ErrorIs(t, err, ErrCorrupt, "byte %d of %d", at, len(data))
		var corrupt *durable.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Equal(t, name, corrupt.File)
	}
	for _, lost := range []string{name, "index.manifest"} {
		broken := files.Clone()
		if lost == name {
			require.NoError(t, broken.Remove(name))
		} else {
			broken.Flip(lost, 12, 1)
		}
		_, _, err := Open(broken, Options{Prefix: prefixOf, Segment: 700})
		require.ErrorIs(t, err, ErrCorrupt)
		_, _, err = Open(broken, Options{Prefix: prefixOf, Segment: 700, New: true})
		require.NoError(t, err, "a new tree does not read the old one")
	}
}

// A new tree replaces the old one with its first commit, and not before.
func TestNewTree(t *testing.T) {
	files, name, model := someRun(t, 50)
	tree, _, err := Open(files, Options{Prefix: prefixOf, Segment: 700, New: true})
	require.NoError(t, err)
	tree.Put([]byte("new/1"), []byte("x"))
	old, _ := open(t, files.Clone())
	require.Equal(t, model, contents(t, old, "", "~"))
	old.Close()
	require.NoError(t, commit(tree, "m"))
	tree.Close()
	tree, _ = open(t, files)
	require.Equal(t, map[string]string{"new/1": "x"}, contents(t, tree, "", "~"))
	tree.Close()
	_, err = files.Open(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Reading ends for any file, with pairs or with ErrCorrupt.
func FuzzRun(f *testing.F) {
	files, name, _ := someRun(f, 30)
	f.Add(files.Data(name), []byte("host2/11"))
	manifest := files.Data("index.manifest")
	f.Fuzz(func(t *testing.T, data, key []byte) {
		files := vfs.NewMem()
		files.Put(name, data)
		files.Put("index.manifest", manifest)
		tree, _, err := Open(files, Options{Prefix: prefixOf, Segment: 700})
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		defer tree.Close()
		var keys []string
		for p, err := range tree.Scan(nil, []byte{0xff, 0xff}) {
			if err != nil {
				require.ErrorIs(t, err, ErrCorrupt)
				return
			}
			keys = append(keys, string(p.Key))
		}
		var n Neighbors
		if err := tree.Around(&n, key, prefixOf(key)); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		} else if len(n.Below.Key) > 0 && slices.IsSorted(keys) {
			require.Less(t, string(n.Below.Key), string(key))
		}
	})
}

// A tree of another version is refused, and not touched.
func TestOtherVersion(t *testing.T) {
	for _, manifest := range [][]byte{
		durable.Seal("SPNINDX4", []byte("what nobody here can read")), []byte("SPININX2\x00\x00\x00\x00sums"),
	} {
		files := vfs.NewMem()
		files.Put("index.manifest", manifest)
		files.Put("index-00000007", []byte("run"))
		_, _, err := Open(files, Options{})
		require.ErrorIs(t, err, ErrVersion)
		require.NotErrorIs(t, err, ErrCorrupt)
		require.Equal(t, manifest, files.Data("index.manifest"))
		require.NotNil(t, files.Data("index-00000007"))
	}
}
