package vfs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// written writes to a file, which it creates if necessary.
func written(t testing.TB, m *Mem, name, data string, at int64) {
	t.Helper()
	f, err := m.Open(name)
	if err != nil {
		f, err = m.Create(name)
	}
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(data), at)
	require.NoError(t, err)
}

// outcomes returns the contents of a file after many crashes.
func outcomes(m *Mem, name string) map[string]int {
	seen := map[string]int{}
	for seed := range uint64(400) {
		data := m.Crash(random(seed)).Data(name)
		if data == nil {
			seen["none"]++
		} else {
			seen["="+string(data)]++
		}
	}
	return seen
}

func keys(seen map[string]int) (all []string) {
	for key := range seen {
		all = append(all, key)
	}
	return all
}

func TestCrashKeepsLosesOrTearsWrites(t *testing.T) {
	m := NewMem()
	written(t, m, "a", "xy", 0)
	want := []string{"none", "=", "=x", "=xy"}
	require.ElementsMatch(t, want, keys(outcomes(m, "a")), "neither name nor data is synced")

	require.NoError(t, m.Sync())
	want = []string{"=", "=x", "=xy"}
	require.ElementsMatch(t, want, keys(outcomes(m, "a")), "the data is not synced")

	f, err := m.Open("a")
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.ElementsMatch(t, []string{"=xy"}, keys(outcomes(m, "a")))

	written(t, m, "a", "Z", 1)
	written(t, m, "a", "!", 2)
	want = []string{"=xy", "=xZ", "=xZ!", "=xy!"}
	require.ElementsMatch(t, want, keys(outcomes(m, "a")), "writes are lost independently")
	require.Equal(t, "xZ!", string(m.Data("a")), "a crash does not change the original")
}

// TestNamesSurviveIndependently checks that a crash may keep any subset of the changes of names.
func TestNamesSurviveIndependently(t *testing.T) {
	m := NewMem()
	m.Put("old", nil)
	written(t, m, "run", "", 0)
	written(t, m, "new", "", 0)
	require.NoError(t, m.Rename("new", "list"))
	require.NoError(t, m.Remove("old"))
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		names, err := m.Crash(random(seed)).List()
		require.NoError(t, err)
		seen[strings.Join(names, " ")] = true
	}
	for _, want := range []string{
		"old", "list old", "list", "", "old run", "list run", "new old run", "list old run", "new",
	} {
		require.True(t, seen[want], want)
	}
	require.False(t, seen["list new"], "a rename is atomic, unless its file was never created")
}

func TestNamesOfOneFile(t *testing.T) {
	m := NewMem()
	m.Put("a", []byte("1"))
	written(t, m, "b", "2", 0)
	require.NoError(t, m.Rename("b", "a"))
	require.NoError(t, m.Remove("a"))
	seen := map[string]bool{}
	for seed := range uint64(100) {
		c := m.Crash(random(seed))
		names, err := c.List()
		require.NoError(t, err)
		state := ""
		for _, name := range names {
			state += name
		}
		if state == "a" && string(c.Data("a")) != "1" {
			state = "renamed"
		}
		seen[state] = true
	}
	require.Equal(t,
		map[string]bool{"a": true, "ab": true, "renamed": true, "b": true, "": true}, seen)
	require.NoError(t, m.Sync())
	names, err := m.Crash(random(1)).List()
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestFailAt(t *testing.T) {
	m := NewMem()
	f, err := m.Create("a")
	require.NoError(t, err)
	broken := errors.New("broken")
	m.FailAt(m.Steps()+2, broken)
	require.NoError(t, f.Sync())
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, broken)
	require.Equal(t, []byte{}, m.Data("a"), "the failed write has no effect")
	require.Contains(t, keys(outcomes(m, "a")), "=x", "but it may appear after a crash")
	_, err = f.WriteAt([]byte("x"), 0)
	require.NoError(t, err, "only one step fails")

	m.FailAt(m.Steps()+1, ErrPower)
	for range 2 {
		require.ErrorIs(t, f.Sync(), ErrPower)
		require.ErrorIs(t, m.Sync(), ErrPower)
		require.ErrorIs(t, m.Rename("a", "b"), ErrPower)
		require.ErrorIs(t, m.Remove("a"), ErrPower)
		_, err = m.Create("b")
		require.ErrorIs(t, err, ErrPower)
	}
	names, err := m.List()
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
}

// TestFailedSync checks that a Sync does not make durable what an earlier one has failed to write,
// as Linux drops it.
func TestFailedSync(t *testing.T) {
	m := NewMem()
	m.Put("a", []byte("abc"))
	written(t, m, "a", "X", 0)
	f, err := m.Open("a")
	require.NoError(t, err)
	broken := errors.New("broken")
	m.FailAt(m.Steps()+1, broken)
	require.ErrorIs(t, f.Sync(), broken)
	written(t, m, "a", "YZ", 1)
	require.NoError(t, f.Sync())
	require.Equal(t, "XYZ", string(m.Data("a")))
	require.ElementsMatch(t, []string{"=aYZ", "=XYZ"}, keys(outcomes(m, "a")))
	written(t, m, "a", "!", 0)
	require.NoError(t, f.Sync())
	require.ElementsMatch(t, []string{"=!YZ"}, keys(outcomes(m, "a")))

	m.FailAt(m.Steps()+1, broken, nil, broken)
	require.ErrorIs(t, m.Sync(), broken)
	require.NoError(t, m.Sync())
	require.ErrorIs(t, m.Sync(), broken)
	require.NoError(t, m.Sync())
}

func TestSpace(t *testing.T) {
	m := NewMem()
	f, err := m.Create("a")
	require.NoError(t, err)
	m.SetSpace(4)
	n, err := f.WriteAt([]byte("123456"), 0)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 4, n)
	require.Equal(t, "1234", string(m.Data("a")), "the bytes that fit are written")
	_, err = f.WriteAt([]byte("xxxx"), 0)
	require.NoError(t, err, "overwriting needs no space")
	n, err = f.WriteAt([]byte("yyy"), 2)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 2, n)
	n, err = f.WriteAt([]byte("z"), 9)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Zero(t, n)
	require.EqualValues(t, 4, m.Used())
	m.SetSpace(-1)
	_, err = f.WriteAt([]byte("z"), 9)
	require.NoError(t, err)
	require.EqualValues(t, 10, m.Used())
}

func TestFlipAndClone(t *testing.T) {
	m := NewMem()
	m.Put("a", []byte("abc"))
	c := m.Clone()
	m.Flip("a", 1, 0)
	require.Equal(t, "acc", string(m.Data("a")))
	require.Equal(t, "abc", string(c.Data("a")))
	require.Equal(t, "abc", string(c.Crash(random(1)).Data("a")), "what is durable stays so")
	require.Nil(t, m.Data("none"))
}

// TestMapAllocatesItsSpace checks that Map allocates all space, or fails without creating the file.
func TestMapAllocatesItsSpace(t *testing.T) {
	m := NewMem()
	m.SetSpace(1000)
	_, err := m.Map("a", 1024)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Nil(t, m.Data("a"))
	_, err = m.Map("a", 1000)
	require.NoError(t, err)
	require.EqualValues(t, 1000, m.Used())
}

// TestCrashOfAMap checks that a crash keeps or loses whole sectors, independently of their order.
func TestCrashOfAMap(t *testing.T) {
	m := NewMem()
	mapped, err := m.Map("a", 2*sector)
	require.NoError(t, err)
	require.NoError(t, m.Sync())
	require.NoError(t, mapped.Write(0, []byte{1, 2}))
	require.NoError(t, mapped.Write(sector, []byte{3}))
	seen := map[[3]byte]bool{}
	for seed := range uint64(50) {
		data := m.Crash(random(seed)).Data("a")
		require.Len(t, data, 2*sector)
		seen[[3]byte{data[0], data[1], data[sector]}] = true
	}
	require.Equal(t, map[[3]byte]bool{{}: true, {1, 2}: true, {0, 0, 3}: true, {1, 2, 3}: true}, seen)
}

// TestCrashOfATruncation checks that a truncation is atomic and ordered among the writes.
func TestCrashOfATruncation(t *testing.T) {
	m := NewMem()
	m.Put("a", []byte("abcd"))
	f, err := m.Open("a")
	require.NoError(t, err)
	require.Error(t, f.Truncate(5))
	require.NoError(t, f.Truncate(2))
	require.Equal(t, "ab", string(m.Data("a")))
	require.ElementsMatch(t, []string{"=ab", "=abcd"}, keys(outcomes(m, "a")))
	written(t, m, "a", "Z", 2)
	require.ElementsMatch(t, []string{"=ab", "=abcd", "=abZ", "=abZd"}, keys(outcomes(m, "a")))
	require.NoError(t, f.Sync())
	require.ElementsMatch(t, []string{"=abZ"}, keys(outcomes(m, "a")))
}

// TestCloneKeepsUnsynced: what a killed process did not sync may get lost later, in the same ways.
func TestCloneKeepsUnsynced(t *testing.T) {
	m := NewMem()
	m.Put("old", []byte("old"))
	m.Put("gone", []byte("gone"))
	f, err := m.Open("old")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("new"), 0)
	require.NoError(t, err)
	require.NoError(t, m.Rename("old", "name"))
	require.NoError(t, m.Remove("gone"))
	_, err = m.Create("created")
	require.NoError(t, err)
	mapped, err := m.Map("mapped", 512)
	require.NoError(t, err)
	c := m.Clone()
	require.NoError(t, mapped.Write(0, []byte("later")))
	require.NoError(t, f.Sync())
	require.NoError(t, m.Sync())
	names, err := c.List()
	require.NoError(t, err)
	require.Equal(t, []string{"created", "mapped", "name"}, names)
	require.Equal(t, "new", string(c.Data("name")))
	require.Equal(t, make([]byte, 512), c.Data("mapped"))
	seen := map[string]bool{}
	for seed := range uint64(300) {
		found := c.Crash(random(seed))
		names, err := found.List()
		require.NoError(t, err)
		for _, name := range names {
			seen[name+"="+string(bytes.Trim(found.Data(name), "\x00"))] = true
		}
	}
	for _, want := range []string{"old=old", "old=new", "name=old", "name=new", "gone=gone", "created=", "mapped="} {
		require.True(t, seen[want], want)
	}
}
