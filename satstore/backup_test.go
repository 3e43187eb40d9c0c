package satstore

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// TestBackup copies stores in the midst of random histories, which go on, and opens the copies.
func TestBackup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"full", "naive", "basicNoLog", "zstd"} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, optionSets[name], 5)
			for range 5 {
				for range 60 {
					require.NoError(t, p.play())
				}
				want := contents(t, p.s)
				to := vfs.NewMem()
				require.NoError(t, p.s.backup(to))
				require.ErrorIs(t, p.s.backup(to), fs.ErrExist)
				for range 20 {
					require.NoError(t, p.play())
				}
				s := mustOpen(t, to, p.o)
				require.Equal(t, want, contents(t, s))
				require.NoError(t, s.Check())
				require.NoError(t, s.Close())
			}
			p.check()
			require.NoError(t, p.s.Close())
		})
	}
}

// TestBackupSurvivesReuse: what a view or a backup still reads is not written over.
func TestBackupSurvivesReuse(t *testing.T) {
	p := newPlayer(t, Options{}, 8)
	for range 100 {
		require.NoError(t, p.play())
	}
	want := contents(t, p.s)
	got := map[string]string{}
	for item, err := range p.s.Scan() {
		require.NoError(t, err)
		got[item.ID] = fmt.Sprint(item.Slot, " ", string(item.Data))
		require.NoError(t, p.play())
	}
	require.Equal(t, want, got)
	require.Zero(t, p.s.space.pins)
}

func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "a"), Options{Start: 1})
	require.NoError(t, err)
	_, err = Open(filepath.Join(dir, "a"), Options{Start: 1})
	require.ErrorIs(t, err, ErrLocked)
	_, err = s.Add("https://a.test/", 1, []byte("x"))
	require.NoError(t, err)
	require.NoError(t, s.Backup(filepath.Join(dir, "b")))
	require.NoError(t, s.Close())
	_, err = Open(filepath.Join(dir, "a"), Options{Start: 1, Mode: Basic})
	require.ErrorIs(t, err, ErrOptions)
	for _, name := range []string{"a", "b"} {
		s, err = Open(filepath.Join(dir, name), Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"https://a.test/": "1 x"}, contents(t, s))
		require.NoError(t, s.Close())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "b", checkpointName)))
	_, err = Open(filepath.Join(dir, "b"), Options{})
	require.ErrorIs(t, err, ErrCorrupt, "the checkpoint is missing")
	done, err := Repair(filepath.Join(dir, "a"), filepath.Join(dir, "c"), Options{})
	require.NoError(t, err)
	require.Equal(t, Repaired{Records: 1}, done)
	_, err = Repair(filepath.Join(dir, "a"), filepath.Join(dir, "c"), Options{})
	require.Error(t, err, "there is a store already")
}

// TestRepairKeepsAll: of a store that is not damaged, or whose indexes and one copy of the
// checkpoint are, nothing is lost.
func TestRepairKeepsAll(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		for _, name := range []string{"full", "basic", "s2"} {
			set := optionSets[name]
			o := Options{Mode: set.Mode, Compression: set.Compression}
			disk, o, want := filled(t, o, closed)
			names, err := disk.List()
			require.NoError(t, err)
			for _, file := range append(names, "") {
				damaged := disk.Clone()
				switch {
				case file == checkpointName:
					damaged.Flip(file, 30, 3)
				case len(file) > 4 && (file[:4] == "ids-" || file[:4] == "plac"):
					require.NoError(t, damaged.Remove(file))
				case file != "":
					continue
				}
				to := vfs.NewMem()
				done, err := repair(damaged, to, o)
				require.NoError(t, err)
				require.Zero(t, done.Lost)
				require.Equal(t, len(want), int(done.Records), "%s without %q", name, file)
				require.Equal(t, file == checkpointName, len(done.Findings) > 0)
				s := mustOpen(t, to, o)
				require.Equal(t, sinceNow(t, want, s.Now()), contents(t, s))
				require.NoError(t, s.Check())
				require.NoError(t, s.Close())
			}
		}
	}
}

// sinceNow lets what was due before be due now.
func sinceNow(t testing.TB, want map[string]string, now int64) map[string]string {
	moved := map[string]string{}
	for id, text := range want {
		slot, data, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(slot, 10, 64)
		require.NoError(t, err)
		moved[id] = fmt.Sprint(max(n, now), " ", data)
	}
	return moved
}

// TestRepairOfDamage flips bits of the buckets. What is in no damaged block must be there, as it
// was.
func TestRepairOfDamage(t *testing.T) {
	t.Parallel()
	disk, o, want := filled(t, Options{Buffer: 16 << 10}, true)
	random := rand.New(rand.NewPCG(9, 9))
	lost, size := 0, len(disk.Data(dataName))
	for range 12 {
		damaged := disk.Clone()
		for range 20 {
			at := random.IntN(size-16) + 16
			damaged.Flip(dataName, int64(at), random.IntN(8))
		}
		to := vfs.NewMem()
		done, err := repair(damaged, to, o)
		require.NoError(t, err)
		s := mustOpen(t, to, o)
		got := contents(t, s)
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
		missing := 0
		for id := range want {
			if _, found := got[id]; !found {
				missing++
			}
		}
		require.LessOrEqual(t, missing, int(done.Lost))
		if missing > 0 {
			lost++
			require.NotEmpty(t, done.Findings)
			require.ErrorIs(t, done.Findings[0], ErrCorrupt)
		}
	}
	require.NotZero(t, lost)
}

// TestCheckCompares plants disagreements between files that are all whole.
func TestCheckCompares(t *testing.T) {
	id := []byte("https://a.test/0")
	plants := map[string]func(*Store){
		"bucket index":    func(s *Store) { s.places.set(0, s.places.get(0)+1) },
		"missing id":      func(s *Store) { s.ids.Delete(idset.KeyOf(string(id))) },
		"additional id":   func(s *Store) { s.ids.Put(idset.Key{1}, 5) },
		"count":           func(s *Store) { s.records++ },
		"record is twice": func(s *Store) { s.place(s.current(), entry{0, 1, id, nil}) },
		"foreign number":  func(s *Store) { s.place(s.current(), entry{99, 1, id, nil}) },
	}
	for name, plant := range plants {
		s := mustOpen(t, vfs.NewMem(), small(Options{}))
		for i := range 10 {
			_, err := s.Add(fmt.Sprint("https://a.test/", i), 1000+int64(i), nil)
			require.NoError(t, err)
		}
		require.NoError(t, s.Check(), name)
		plant(s)
		require.ErrorIs(t, s.Check(), ErrCorrupt, name)
	}
}

func TestShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dirs := []string{filepath.Join(dir, "0"), filepath.Join(dir, "1"), filepath.Join(dir, "2")}
	shards, err := OpenShards(dirs, Options{Start: 1})
	require.NoError(t, err)
	items := make([]Item, 300)
	for i := range items {
		items[i] = Item{fmt.Sprint("https://a.test/", i), 2, nil}
	}
	added, err := shards.AddBatch(append(items, items...))
	require.NoError(t, err)
	require.Equal(t, 300, added)
	require.NoError(t, shards.For("https://a.test/7").Delete("https://a.test/7"))
	require.NoError(t, shards.Advance())
	require.NoError(t, shards.Sync())
	total := 0
	for _, s := range shards.Stores() {
		n := 0
		for r, err := range s.Due(t.Context()) {
			require.NoError(t, err)
			require.Same(t, s, shards.For(string(r.ID)))
			require.NoError(t, r.Reschedule(5, nil))
			n++
		}
		require.Greater(t, n, 60)
		total += n
	}
	require.Equal(t, 299, total)
	require.NoError(t, shards.Close())
	_, err = OpenShards(append(dirs, dirs[0]), Options{})
	require.ErrorIs(t, err, ErrLocked)
	shards, err = OpenShards(dirs, Options{})
	require.NoError(t, err, "a failed one leaves no lock behind")
	require.NoError(t, shards.Close())
}
