package satstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// TestCallsAfterClose: all calls return ErrClosed, even those that would first read a closed file.
func TestCallsAfterClose(t *testing.T) {
	s, err := Open(t.TempDir(), logged())
	require.NoError(t, err)
	mustAdd(t, s, "out", 1, "x")
	mustAdd(t, s, "deleted", 1, "x")
	mustAdd(t, s, "there", 5, "x")
	held := map[string]*Record{}
	due(t, s, 1, func(r *Record) { held[r.ID] = r })
	require.NoError(t, s.Close())
	for name, do := range map[string]func() error{
		"Add of a known id":  func() error { _, err := s.Add("there", at(5), nil); return err },
		"Add of a new id":    func() error { _, err := s.Add("new", at(5), nil); return err },
		"AddBatch":           func() error { _, err := s.AddBatch([]Item{{ID: "new"}, {ID: "there"}}); return err },
		"Update":             func() error { return s.Update("there", nil) },
		"Update of unknown":  func() error { return s.Update("new", nil) },
		"Delete":             func() error { return s.Delete("there") },
		"Get":                func() error { _, err := s.Get("there"); return err },
		"Get of unknown":     func() error { _, err := s.Get("new"); return err },
		"Scan":               func() error { return firstOf(s.Scan()) },
		"Due":                func() error { return firstOf(s.Due(t.Context(), at(1))) },
		"Sync":               s.Sync,
		"Check":              s.Check,
		"Close":              s.Close,
		"Reschedule":         func() error { return held["out"].Reschedule(at(9), nil) },
		"Delete of a record": func() error { return held["deleted"].Delete() },
		"second Reschedule":  func() error { return held["out"].Reschedule(at(9), nil) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			require.ErrorIs(t, do(), ErrClosed)
		})
	}
	require.NotNil(t, held["out"].Detach(), "it has no error to return, and must not panic")
	require.EqualValues(t, 3, s.Stats().Records, "Stats still work")
	require.EqualValues(t, 1, nowOf(s))
}

// TestReadOnly: when the disk is full, all changes fail with the reason, all reads work, and a
// successful Sync ends it.
func TestReadOnly(t *testing.T) {
	full := errors.New("disk is full")
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "due", 1000, "old")
	mustAdd(t, s, "there", 2000, "old")
	require.NoError(t, s.Sync())
	var held *Record
	due(t, s, 1000, func(r *Record) { held = r })
	was := contents(t, s)
	fs.FailAt(fs.Steps()+1, full)
	mustAdd(t, s, "new", 2000, "x") // goes to memory
	require.ErrorIs(t, s.Sync(), full)
	fs.FailAt(0, nil)
	for name, do := range map[string]func() error{
		"Add":        func() error { _, err := s.Add("newer", at(5), nil); return err },
		"Update":     func() error { return s.Update("there", nil) },
		"Delete":     func() error { return s.Delete("there") },
		"Due":        func() error { return firstOf(s.Due(t.Context(), at(1000))) },
		"Reschedule": func() error { return held.Reschedule(at(1005), nil) },
		"Record":     func() error { return held.Delete() },
	} {
		err := do()
		require.ErrorIs(t, err, ErrReadOnly, name)
		require.ErrorIs(t, err, full, "%s must wrap the cause", name)
	}
	was["new"] = "2000 x"
	require.Equal(t, was, contents(t, s), "it can be read")
	item, err := s.Get("there")
	require.NoError(t, err)
	require.Equal(t, Item{"there", at(2000), []byte("old")}, item)
	added, err := s.Add("there", at(5), nil)
	require.NoError(t, err, "a known id changes nothing")
	require.False(t, added)

	require.NoError(t, s.Sync())
	require.NoError(t, held.Reschedule(at(1005), []byte("visited")), "it was not returned")
	was["due"] = "1005 visited"
	require.Equal(t, was, contents(t, mustOpen(t, fs.Clone(), o)))
	require.NoError(t, s.Check())
}

// TestOpenedTwice: the second one is refused, until the first one is closed.
func TestOpenedTwice(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(dir, logged())
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, dir)
	_, err = Repair(dir, t.TempDir())
	require.ErrorIs(t, err, ErrLocked, "nor can it be repaired while it is open")
	mustAdd(t, first, "a", 1, "first is not harmed")
	require.NoError(t, first.Close())
	second, err := Open(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1 first is not harmed"}, contents(t, second))
	require.NoError(t, second.Close())
}

// TestSizes: the documented maximum sizes fit, and one byte more is refused without effect.
func TestSizes(t *testing.T) {
	require.Equal(t, [2]int{wal.MaxID, wal.MaxData}, [2]int{MaxID, MaxData})
	t.Parallel()
	fs, o := vfs.NewMem(), logged()
	s := mustOpen(t, fs, o)
	id, data := strings.Repeat("i", MaxID), strings.Repeat("d", MaxData)
	mustAdd(t, s, id, 1, data)
	for _, item := range []Item{{ID: ""}, {ID: id + "i"}, {ID: "x", Data: []byte(data + "d")}} {
		_, err := s.AddBatch([]Item{{ID: "before it"}, item})
		require.ErrorIs(t, err, ErrSize, "id of %d bytes, data of %d", len(item.ID), len(item.Data))
	}
	require.ErrorIs(t, s.Delete("before it"), ErrUnknown, "a batch is refused as a whole")
	require.NoError(t, s.Update(id, []byte(data)))
	require.ErrorIs(t, s.Update(id, []byte(data+"d")), ErrSize)
	require.Len(t, due(t, s, 1, func(r *Record) {
		require.ErrorIs(t, r.Reschedule(at(2), []byte(data+"d")), ErrSize)
		require.NoError(t, r.Reschedule(at(2), []byte(data)), "a refusal does not return it")
	}), 1)
	require.NoError(t, s.Update(id, nil), "an empty message is valid")
	mustAdd(t, s, "x", 2, "")
	want := map[string]string{id: "2 ", "x": "2 "}
	require.Equal(t, want, contents(t, s))
	require.Equal(t, want, contents(t, mustOpen(t, fs.Clone(), o)), "after a kill")
	require.NoError(t, s.Check())
}

// TestAnyID: an id may be any bytes.
func TestAnyID(t *testing.T) {
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	for i, id := range []string{
		"\x00", "\x00\x00", "\xff", " ", "\n", "a", "A", "a\x00", "\xc3\x28", "é", "e\u0301",
		strings.Repeat("\x00", MaxID), strings.Repeat("\x00", MaxID-1), strings.Repeat("\xff", 127),
		strings.Repeat("\xff", 128), "SATR", "SATG\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		slot := 1000 + int64(i%4*i)
		mustAdd(t, s, id, slot, id)
		require.NoError(t, s.Update(id, []byte(id)))
		want[id] = fmt.Sprint(slot, " ", id, "+", id)
	}
	require.Equal(t, want, contents(t, s))
	killed := mustOpen(t, fs.Clone(), o)
	require.Equal(t, want, contents(t, killed))
	require.NoError(t, killed.Check())
	due(t, s, 1100, func(r *Record) {
		require.Equal(t, want[r.ID], fmt.Sprint(slotAt(r.At()), " ", string(r.Data)))
		require.NoError(t, s.Delete(r.ID))
		delete(want, r.ID)
	})
	require.Empty(t, want)
	require.Empty(t, contents(t, s))
}

// TestRecordsAreReturnedOnce: all combinations of two ways to return a record.
func TestRecordsAreReturnedOnce(t *testing.T) {
	ways := map[string]func(*Record) error{
		"Reschedule": func(r *Record) error { return r.Reschedule(at(3), []byte("x")) },
		"Delete":     (*Record).Delete,
		"detached":   func(r *Record) error { return r.Detach().Reschedule(at(3), []byte("x")) },
	}
	for first, giveBack := range ways {
		for second, again := range ways {
			t.Run(first+"-"+second, func(t *testing.T) {
				s := mustOpen(t, vfs.NewMem(), logged())
				mustAdd(t, s, "a", 1, "x")
				mustAdd(t, s, "other", 1, "x") // keeps the block
				held := map[string]*Record{}
				due(t, s, 1, func(r *Record) { held[r.ID] = r })
				require.NoError(t, giveBack(held["a"]))
				was, stats := contents(t, s), s.Stats()
				require.ErrorIs(t, again(held["a"]), ErrDone)
				require.Equal(t, was, contents(t, s))
				require.Equal(t, stats.Out, s.Stats().Out)
				require.NoError(t, held["other"].Reschedule(at(3), nil))
				require.NoError(t, s.Check())
			})
		}
	}
}

// TestOptions: an existing store opens with its own options; different ones are refused, with both
// values.
func TestOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir, Options{Unit: time.Minute, Start: time.Unix(90, 0)})
	require.NoError(t, err)
	require.Equal(t, time.Unix(60, 0), s.Now())
	_, err = s.Add("a", time.Unix(119, 0), nil)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = Open(dir, Options{Unit: time.Hour})
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "Options.Unit is 1h0m0s, but the store has 1m0s")
	for _, o := range []Options{{}, {Unit: time.Minute}, {Start: time.Unix(1e9, 0), Buffer: 1, Commit: -1}} {
		s, err := Open(dir, o)
		require.NoError(t, err)
		require.Equal(t, time.Unix(60, 0), s.Now())
		item, err := s.Get("a")
		require.NoError(t, err)
		require.Equal(t, time.Unix(60, 0), item.At, "times are rounded down to the unit")
		require.NoError(t, s.Close())
	}
	_, err = open(vfs.NewMem(), Options{Unit: time.Microsecond})
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "1µs")
	s = mustOpen(t, vfs.NewMem(), Options{Buffer: math.MaxInt64})
	require.Zero(t, s.Now().UnixNano()%int64(time.Hour))
	require.WithinDuration(t, time.Now(), s.Now(), 61*time.Minute)
	require.NoError(t, s.Close())
}

// TestSlotsAndTimes: a time is in its slot, and slots follow each other without a gap, for all
// kinds of units, before 1970 too. Times out of range are clamped.
func TestSlotsAndTimes(t *testing.T) {
	for _, unit := range []time.Duration{
		time.Millisecond, 999 * time.Millisecond, time.Second, 1500 * time.Millisecond, time.Minute,
		time.Hour, 24 * time.Hour, 90*time.Minute + 1, math.MaxInt64,
	} {
		for seconds := int64(-4e9); seconds < 4e9; seconds += 12_345_678 {
			at := time.Unix(seconds, seconds%1e9)
			slot := slotOf(at, unit)
			require.False(t, timeOf(slot, unit).After(at), "%v in units of %v", at, unit)
			require.True(t, timeOf(slot+1, unit).After(at), "%v in units of %v", at, unit)
			require.Equal(t, slot, slotOf(timeOf(slot, unit), unit))
		}
		past, future := slotOf(time.Time{}, unit), slotOf(time.Unix(1<<60, 0), unit)
		require.Less(t, past, slotOf(time.Unix(-9e9, 0), unit)+1)
		require.Greater(t, future, slotOf(time.Unix(9e9, 0), unit)-1)
		require.Equal(t, past, slotOf(time.Unix(-1<<62, 0), unit))
		require.Equal(t, future, slotOf(time.Unix(1<<62, 0), unit))
		require.LessOrEqual(t, future, int64(1<<44))
	}
}

// TestOnDisk uses a real disk: a store and its repair.
func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "a"), logged())
	require.NoError(t, err)
	mustAdd(t, s, "https://a.test/", 1, "x")
	mustAdd(t, s, "https://a.test/b", 9, "x")
	require.NoError(t, s.Update("https://a.test/b", []byte("y")))
	require.NoError(t, s.Close())
	done, err := Repair(filepath.Join(dir, "a"), filepath.Join(dir, "c"))
	require.NoError(t, err)
	require.Equal(t, Repaired{Records: 2, Messages: 1}, done)
	want := map[string]string{"https://a.test/": "1 x", "https://a.test/b": "9 y"}
	for _, name := range []string{"a", "c"} {
		s, err = Open(filepath.Join(dir, name), Options{})
		require.NoError(t, err)
		require.Equal(t, want, contents(t, s))
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
	}
	_, err = Repair(filepath.Join(dir, "a"), filepath.Join(dir, "c"))
	require.ErrorContains(t, err, "not empty", "the directory already has a store")
	_, err = Repair(filepath.Join(dir, "none"), filepath.Join(dir, "d"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.Remove(filepath.Join(dir, "a", manifest.Name)))
	_, err = Open(filepath.Join(dir, "a"), Options{})
	require.ErrorIs(t, err, ErrCorrupt, "the checkpoint is missing")
}

// TestRepairOfLargeRecords: a record that exceeds MaxData with its messages merged does not make
// Repair fail. Its copy is merged when it is read, as the original is.
func TestRepairOfLargeRecords(t *testing.T) {
	t.Parallel()
	o := Options{
		Start: at(1000), Commit: -1, Buffer: 8 << 20,
		Merge: func(_ string, data, m []byte) []byte { return append(data, m...) },
	}
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "from"), o)
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c"} {
		mustAdd(t, s, id, 2000, strings.Repeat(id, MaxData))
	}
	require.NoError(t, s.Update("b", bytes.Repeat([]byte("m"), MaxData)))
	require.NoError(t, s.Update("b", []byte("more")))
	require.NoError(t, s.Delete("c"))
	to := filepath.Join(dir, "to")
	want := datasOf(t, s)
	require.Len(t, want["b"], 2*MaxData+4)
	require.NoError(t, s.Close())
	_, err = Repair(filepath.Join(dir, "from"), to)
	require.NoError(t, err)
	copied, err := Open(to, o)
	require.NoError(t, err)
	require.True(t, maps.Equal(want, datasOf(t, copied)))
	require.NoError(t, copied.Check())
	require.NoError(t, copied.Close())
}

// TestOtherFilesAreNotTouched: files with similar names, as a crawler may keep in the same
// directory, are neither removed nor read.
func TestOtherFilesAreNotTouched(t *testing.T) {
	fs, o := vfs.NewMem(), logged()
	others := []string{
		"log-of-the-crawler", "log-2026", "ids-00000001.bak", "places-00000001", "log-0000000x",
		"CHECKPOINT~", "log--0000001", "log-00000001-", "ids-+0000001",
	}
	for _, name := range others {
		fs.Put(name, make([]byte, 100))
	}
	disk := &faultyFS{Mem: fs, before: func(what, name string) error {
		require.False(t, what == "open" && slices.Contains(others, name), name)
		return nil
	}}
	for range 3 {
		s := mustOpen(t, disk, o)
		require.NoError(t, s.Sync())
		require.NoError(t, s.Close())
		if dated := "log-20261128"; !slices.Contains(others, dated) {
			others = append(others, dated, "ids-20261128")
			fs.Put(dated, make([]byte, 100))
			fs.Put("ids-20261128", make([]byte, 100))
		}
	}
	for _, name := range others {
		require.Len(t, fs.Data(name), 100, name)
	}
	for _, name := range []string{
		wal.FileName(1), idset.FileName(math.MaxUint64), extent.Name, manifest.Name, manifest.Temp,
		wal.PendingName,
	} {
		require.True(t, isOurs(name), name)
	}
	fs.Put(wal.FileName(1), []byte("left behind"))
	fs.Put(idset.FileName(77), []byte("left behind"))
	mustOpen(t, fs, o)
	require.Nil(t, fs.Data(wal.FileName(1)))
	require.Nil(t, fs.Data(idset.FileName(77)))
}

// TestShortLogOfTheCaller: a log of the caller that has just begun when a store is created stays, and the next
// day's does not become the store's. A file of ids of the caller is no reason not to create one.
func TestShortLogOfTheCaller(t *testing.T) {
	fs := vfs.NewMem()
	fs.Put("log-20261128", []byte("begun\n"))
	fs.Put("ids-20261128", []byte("begun\n"))
	s := mustOpen(t, fs, logged())
	require.NoError(t, s.Close())
	require.Equal(t, "begun\n", string(fs.Data("log-20261128")))
	require.Equal(t, "begun\n", string(fs.Data("ids-20261128")))
	require.Nil(t, fs.Data("log-20261129"))
}

// TestForeignFiles: a directory with files of a store but no checkpoint is not taken for a new
// store, unless the files are as empty as after a crash at its creation. They may be much larger than memory, so
// their contents are not read.
func TestForeignFiles(t *testing.T) {
	for name, size := range map[string]int{
		extent.Name: 9, wal.FileName(3): wal.Header + 1, idset.FileName(1): 0,
	} {
		fs := &faultyFS{Mem: vfs.NewMem(), beforeRead: func(name string, _ int64) { t.Error("reads", name) }}
		fs.Put(name, make([]byte, size))
		_, err := open(fs, logged())
		var where *CorruptError
		require.ErrorAs(t, err, &where, name)
		require.Equal(t, name, where.File)
	}
	fs := vfs.NewMem()
	fs.Put(extent.Name, make([]byte, 8))
	fs.Put(wal.FileName(3), make([]byte, wal.Header))
	fs.Put(manifest.Temp, make([]byte, 500))
	s := mustOpen(t, fs, logged())
	require.Nil(t, fs.Data(wal.FileName(3)))
	require.NoError(t, s.Close())
}

// TestCanceled: an iteration ends with its context.
func TestCanceled(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), logged())
	mustAdd(t, s, "a", 1, "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, firstOf(s.Due(ctx, at(1))), context.Canceled)
	require.Len(t, due(t, s, 1, nil), 1)
}

// TestOtherVersion: a store of an earlier or a later version is sound. Nothing changes it.
func TestOtherVersion(t *testing.T) {
	for _, version := range []string{"SATCHK8\n", "SATCHK10", "SATCHK12"} {
		fs := vfs.NewMem()
		b := durable.Seal(version, []byte("a body that nobody here can read"))
		fs.Put(manifest.Name, append(b, b...))
		fs.Put(wal.FileName(7), []byte("a log"))
		before := fs.Clone()
		_, err := open(fs, logged())
		require.ErrorIs(t, err, ErrVersion)
		require.NotErrorIs(t, err, ErrCorrupt)
		_, err = repair(fs, vfs.NewMem(), logged())
		require.ErrorIs(t, err, ErrVersion)
		require.NotErrorIs(t, err, ErrCorrupt)
		names, err := fs.List()
		require.NoError(t, err)
		require.Equal(t, []string{manifest.Name, wal.FileName(7)}, names)
		for _, name := range names {
			require.Equal(t, before.Data(name), fs.Data(name))
		}
		fs.Flip(manifest.Name, 6, 0)
		_, err = open(fs, logged())
		require.ErrorIs(t, err, ErrVersion, "the second copy tells the version")
		fs.Flip(manifest.Name, int64(len(b)+6), 0)
		_, err = open(fs, logged())
		require.ErrorIs(t, err, ErrCorrupt)
	}
}
