package exact

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func add(t testing.TB, s *Set, urls ...string) {
	t.Helper()
	for _, url := range urls {
		require.NoError(t, s.Add(url, []byte("data of "+url)))
	}
}

// small is memory for a thousand sightings.
const small = 48 << 10

func mustOpen(t testing.TB, d disk, o Options) *Set {
	t.Helper()
	s, err := open(d, o)
	require.NoError(t, err)
	return s
}

func TestNothingIsAnEntryBeforeTheMerge(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	add(t, s, "b", "a", "b")
	require.Empty(t, entriesOf(t, s))
	require.Equal(t, 2, s.Stats().Waiting)
	require.NoError(t, s.Merge())
	require.Equal(t, []string{"b", "a"}, entriesOf(t, s))
	require.Zero(t, s.Stats().Waiting)
	add(t, s, "a", "c")
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Add("d", nil), ErrClosed)
	require.ErrorIs(t, s.Merge(), ErrClosed)
	require.ErrorIs(t, s.Trim(1), ErrClosed)
	require.ErrorIs(t, s.Close(), ErrClosed)
	for _, err := range s.Entries(0) {
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestFirstDataCount(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	require.NoError(t, s.Add("a", []byte("first")))
	require.NoError(t, s.Add("a", []byte("second")))
	require.NoError(t, s.Add("", nil))
	require.NoError(t, s.Merge())
	require.NoError(t, s.Add("a", []byte("third")))
	require.NoError(t, s.Merge())
	var got []Entry
	for entry, err := range s.Entries(0) {
		require.NoError(t, err)
		got = append(got, entry)
	}
	require.Equal(t, []Entry{{0, "a", []byte("first")}, {1, "", nil}}, got)
}

// TestModel compares Sets of little memory, which merge by themselves, with a map. They are closed,
// trimmed and read from random places meanwhile.
func TestModel(t *testing.T) {
	for _, wide := range []bool{false, true} {
		for _, opened := range []func(testing.TB, disk, Options) *Set{mustOpen, mustOpenSmall} {
			for seed := range uint64(2) {
				t.Run(fmt.Sprintf("wide=%v/seed=%d", wide, seed), func(t *testing.T) {
					o := Options{Memory: small, Wide: wide}
					testModel(t, func(d disk) *Set { return opened(t, d, o) }, rand.New(rand.NewPCG(seed, 0)))
				})
			}
		}
	}
}

func testModel(t *testing.T, opened func(disk) *Set, random *rand.Rand) {
	d := newMemDisk()
	s := opened(d)
	met := map[string]bool{}
	var want []string
	trimmed := 0
	for i := range 4000 {
		url := "https://a.test/" + strconv.Itoa(random.IntN(i/2+100))
		add(t, s, url)
		if !met[url] {
			met[url] = true
			want = append(want, url)
		}
		switch random.IntN(400) {
		case 0:
			require.NoError(t, s.Close())
			s = opened(d)
		case 1:
			trimmed = max(trimmed, random.IntN(len(want)))
			require.NoError(t, s.Merge())
			require.NoError(t, s.Trim(uint64(trimmed)))
		case 2:
			require.NoError(t, s.Merge())
			from := trimmed + random.IntN(len(want)-trimmed)
			require.Equal(t, want[from:], urlsFrom(t, s, from))
		}
	}
	require.NoError(t, s.Merge())
	require.Equal(t, want[trimmed:], urlsFrom(t, s, trimmed))
	stats := s.Stats()
	require.EqualValues(t, len(want), stats.URLs)
	require.Less(t, stats.Runs, 16)
	for i, r := range s.runs[1:] {
		require.GreaterOrEqual(t, s.runs[i].count, 2*r.count)
	}
}

// urlsFrom returns the URLs of the entries from a number on.
func urlsFrom(t *testing.T, s *Set, from int) (urls []string) {
	t.Helper()
	for entry, err := range s.Entries(uint64(from)) {
		require.NoError(t, err)
		require.EqualValues(t, from+len(urls), entry.Seq)
		urls = append(urls, entry.URL)
	}
	return urls
}

func TestTrim(t *testing.T) {
	d := newMemDisk()
	s := mustOpen(t, d, Options{Memory: small})
	add(t, s, "a", "b", "c")
	require.NoError(t, s.Merge())
	require.NoError(t, s.Trim(2))
	require.Equal(t, []string{"c"}, urlsFrom(t, s, 2))
	for _, err := range s.Entries(1) {
		require.ErrorIs(t, err, ErrTrimmed)
	}
	require.NoError(t, s.Trim(1)) // does not bring anything back
	for _, err := range s.Entries(1) {
		require.ErrorIs(t, err, ErrTrimmed)
	}
	require.NoError(t, s.Trim(100)) // means all there are
	names, _ := d.list()
	require.Equal(t, []string{"MANIFEST", "run-00000001"}, names)
	add(t, s, "a", "d")
	require.NoError(t, s.Merge())
	require.Equal(t, []string{"d"}, urlsFrom(t, s, 3))
}

// TestSegmentsAreCutAndTrimmed writes more than a segment holds.
func TestSegmentsAreCutAndTrimmed(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	s.segmentSize = 1000
	for i := 0; len(s.disked.segments) < 3; i++ {
		add(t, s, strconv.Itoa(i))
		require.NoError(t, s.Merge())
	}
	second := s.disked.segments[1].first
	for _, from := range []uint64{0, second - 1, second, second + 1} {
		for entry, err := range s.Entries(from) {
			require.NoError(t, err)
			require.Equal(t, from, entry.Seq)
			break
		}
	}
	require.NoError(t, s.Trim(second-1))
	require.Len(t, s.disked.segments, 3)
	require.NoError(t, s.Trim(second))
	require.Len(t, s.disked.segments, 2)
	require.Equal(t, strconv.Itoa(int(second)), urlsFrom(t, s, int(second))[0])
}

// TestRecentKeepsTheLatest compares one set of the list with its definition.
func TestRecentKeepsTheLatest(t *testing.T) {
	r := newRecent(0)
	require.Len(t, r.sets, 1)
	require.Len(t, newRecent(1000).sets, 8)
	var latest []uint64
	random := rand.New(rand.NewPCG(1, 0))
	for range 1000 {
		f := 1 + random.Uint64N(7)
		i := slices.Index(latest, f)
		require.Equal(t, i >= 0, r.meet(fingerprint{f}))
		if i >= 0 {
			latest = slices.Delete(latest, i, i+1)
		}
		latest = append([]uint64{f}, latest...)
		latest = latest[:min(len(latest), setSize)]
	}
	r.forget(fingerprint{latest[1]})
	require.False(t, r.meet(fingerprint{latest[1]}))
	require.True(t, r.meet(fingerprint{latest[0]}))
}

func TestRefusals(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	require.ErrorIs(t, s.Add(strings.Repeat("x", MaxEntry), nil), ErrTooLarge)
	require.ErrorIs(t, s.Add("a", make([]byte, MaxEntry)), ErrTooLarge)
	require.NoError(t, s.Add("a", make([]byte, MaxEntry-10)))
	require.NoError(t, s.Merge())
	require.Len(t, urlsFrom(t, s, 0), 1)

	dir := t.TempDir()
	s, err := Open(dir, Options{NoSync: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = Open(dir, Options{Wide: true})
	require.ErrorIs(t, err, ErrOptions)
	_, err = Open(filepath.Join(dir, manifestName, "x"), Options{})
	require.Error(t, err)
}

// TestTwoSetsCannotShareADirectory: each would write over what the other has acknowledged.
func TestTwoSetsCannotShareADirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, s.Close())
	_, err = Open(dir, Options{Wide: true})
	require.ErrorIs(t, err, ErrOptions)
	s, err = Open(dir, Options{}) // an Open that fails leaves no lock
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestLeftoversAreRemoved opens a directory in which a merge did not finish and somebody else left
// files, some of which have names much like ours.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	add(t, s, "a")
	require.NoError(t, s.Close())
	others := []string{
		"new-0000008", "new-000000008", "new-seeds.txt", "other", "run-", "run-+0000007", "run-00000007~",
		"run-crawler.sh",
	}
	for _, name := range append(others, "run-00000007", "new-00000008", manifestTemp) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	names, err := directory(dir).list()
	require.NoError(t, err)
	ours := []string{"MANIFEST", "lock", "new-00000002", "run-00000001"}
	require.ElementsMatch(t, append(others, ours...), names)
	require.NoError(t, s.Close())
}

// TestEveryDamageIsFound changes each byte of each file in turn, and cuts each file off there.
func TestEveryDamageIsFound(t *testing.T) {
	for _, name := range []string{"MANIFEST", "run-00000001", "new-00000002"} {
		d := newMemDisk()
		s := mustOpen(t, d, Options{Memory: small})
		add(t, s, "a", "b", "c", "d")
		require.NoError(t, s.Close())
		whole := slices.Clone(d.names[name].data)
		for i := range whole {
			damaged := slices.Clone(whole)
			damaged[i] ^= 0x10
			for _, data := range [][]byte{damaged, whole[:i]} {
				d.names[name].data = slices.Clone(data)
				err := openAndRead(d)
				require.ErrorIs(t, err, ErrCorrupt, "%s, byte %d", name, i)
				var corrupt *CorruptError
				require.ErrorAs(t, err, &corrupt)
				require.LessOrEqual(t, corrupt.Offset, int64(len(whole)))
				require.Contains(t, err.Error(), "exact: "+corrupt.File+": byte ")
			}
		}
		d.names[name].data = whole
		require.NoError(t, openAndRead(d))
		delete(d.names, name)
		require.Error(t, openAndRead(d), name)
	}
}

// openAndRead returns the first error of a Set.
func openAndRead(d disk) error {
	s, err := open(d, Options{Memory: small})
	if err != nil {
		return err
	}
	for _, err := range s.Entries(0) {
		if err != nil {
			return err
		}
	}
	return s.Close()
}

// TestDamageThatComesLater is found by the merge that reads it, which then changes nothing.
func TestDamageThatComesLater(t *testing.T) {
	d := newMemDisk()
	s := mustOpen(t, d, Options{Memory: small})
	add(t, s, "a")
	require.NoError(t, s.Merge())
	d.names["run-00000001"].data[runHeader] ^= 1
	add(t, s, "b")
	require.ErrorIs(t, s.Merge(), ErrCorrupt)
	d.names["run-00000001"].data[runHeader] ^= 1
	require.NoError(t, s.Merge())
	require.Equal(t, []string{"a", "b"}, entriesOf(t, s))
}

func TestConcurrentUse(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	const goroutines, urls = 4, 5000
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for _, i := range rand.New(rand.NewPCG(uint64(g), 0)).Perm(urls) {
				url := strconv.Itoa(i)
				if err := s.Add(url, []byte("data of "+url)); err != nil {
					t.Error(err)
				}
				if i%1000 == 0 {
					_ = s.Stats()
					if err := s.Merge(); err != nil {
						t.Error(err)
					}
					for _, err := range s.Entries(0) {
						if err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, s.Merge())
	got := entriesOf(t, s)
	slices.Sort(got)
	require.Len(t, slices.Compact(got), urls)
}

// TestTiersKeepWorkDown counts what the list and the filter save.
func TestTiersKeepWorkDown(t *testing.T) {
	s := mustOpen(t, newMemDisk(), Options{Memory: small})
	add(t, s, "a", "a", "a", "b")
	require.NoError(t, s.Merge())
	read := s.Stats().Read
	require.Zero(t, read) // all were surely new
	add(t, s, "a", "b")   // both are in the list
	require.NoError(t, s.Merge())
	stats := s.Stats()
	require.Equal(t, read, stats.Read)
	require.EqualValues(t, 6, stats.Added)
	require.EqualValues(t, 4, stats.Recent)
	require.EqualValues(t, 2, stats.New)
	require.EqualValues(t, 1, stats.Merges)
}

func FuzzManifest(f *testing.F) {
	m := &manifest{
		width: 8, next: 9, trimmed: 3,
		runs: []runSize{{1, 9}}, segments: []segment{{2, 0, 100}},
	}
	f.Add(m.encode())
	f.Add([]byte("spinneret exact set 1\nkey\nkey \nrun\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(m.encode(), b) {
			t.Errorf("%q becomes %q", b, m.encode())
		}
	})
}

// FuzzFiles gives any bytes for a run and a segment: the Set opens or says that they are corrupt.
func FuzzFiles(f *testing.F) {
	d := newMemDisk()
	s := mustOpen(f, d, Options{Memory: small})
	add(f, s, "a", "b")
	require.NoError(f, s.Close())
	f.Add(d.names["run-00000001"].data, d.names["new-00000002"].data)
	f.Fuzz(func(t *testing.T, run, segment []byte) {
		changed := newMemDisk()
		for name, data := range map[string][]byte{
			manifestName: d.names[manifestName].data, "run-00000001": run, "new-00000002": segment,
		} {
			changed.names[name] = &memFile{disk: changed, data: slices.Clone(data)}
		}
		if err := openAndRead(changed); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	})
}
