package satstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestPendingGoesOnFromTheLog: of the two halves, those count that follow the log's last group
// without a gap, and nothing else does.
func TestPendingGoesOnFromTheLog(t *testing.T) {
	const number, first = 5, int64(1000)
	second := first + groupHeader + 3
	type part struct {
		number uint64
		end    int64
		text   string
	}
	for _, tt := range []struct {
		name   string
		halves [2]part
		groups string // that the log has
		want   string
	}{
		{"the first half is next", [2]part{{number, first, "abc"}, {}}, "", "abc"},
		{"the second half is next", [2]part{{}, {number, first, "abc"}}, "", "abc"},
		{"both, in their order", [2]part{{number, first, "abc"}, {number, second, "def"}}, "", "abcdef"},
		{"both, the other way round", [2]part{{number, second, "def"}, {number, first, "abc"}}, "",
			"abcdef"},
		{"one has been written", [2]part{{number, first, "abc"}, {number, second, "def"}}, "abc", "def"},
		{"both have been written", [2]part{{number, first, "abc"}, {number, second, "def"}}, "abcdef", ""},
		{"one is missing between", [2]part{{}, {number, second, "def"}}, "", ""},
		{"of an older log", [2]part{{number - 1, first, "abc"}, {number - 1, second, "def"}}, "", ""},
		{"empty halves", [2]part{{number, first, ""}, {number, first, ""}}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			m, err := fs.Map(pendingName, 512)
			require.NoError(t, err)
			h := halves(m)
			for i, p := range tt.halves {
				h[i].publish(append(h[i].begin(p.number, p.end), p.text...))
			}
			end := first
			for range len(tt.groups) / 3 {
				end += groupHeader + 3
			}
			got := ""
			for {
				changes := pendingAfter(fs.Data(pendingName), number, end)
				if changes == nil {
					break
				}
				got += string(changes)
				end += groupHeader + int64(len(changes))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestPendingOfAFileOfAnySize: files that are too short or odd hold nothing, and break nothing.
func TestPendingOfAFileOfAnySize(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for size := range 200 {
		file := make([]byte, size)
		for i := range file {
			file[i] = byte(random.Int())
		}
		require.Nil(t, pendingAfter(file, 0, 0))
		copy(file, pendingMagic)
		require.Nil(t, pendingAfter(file, 0, 0))
	}
}

// TestDamagedPending flips each bit of what a half holds: none of the changes counts then.
func TestDamagedPending(t *testing.T) {
	fs := vfs.NewMem()
	m, err := fs.Map(pendingName, 512)
	require.NoError(t, err)
	h := halves(m)
	changes := append(h[0].begin(3, 20), "changes"...)
	h[0].publish(changes)
	require.Equal(t, changes, pendingAfter(fs.Data(pendingName), 3, 20))
	for at := range pendingHeader + len(changes) {
		for bit := range 8 {
			damaged := fs.Clone()
			damaged.Flip(pendingName, int64(at), bit)
			require.Nil(t, pendingAfter(damaged.Data(pendingName), 3, 20), "bit %d of %d", bit, at)
		}
	}
}

// TestChangesOutliveTheProcess: each kind of change is found by whoever opens the files that a
// killed process leaves, before anything was committed.
func TestChangesOutliveTheProcess(t *testing.T) {
	o := Options{Start: 1, Commit: -1, pending: 8 << 10}
	long := strings.Repeat("x", 6000) // more than a half has room for
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, s *Store, r *Record)
		want map[string]string
	}{
		{"an addition", func(t *testing.T, s *Store, _ *Record) {
			mustAdd(t, s, "b", 7, "new")
		}, map[string]string{"a": "1 old", "b": "7 new"}},
		{"an addition that is too large for the file", func(t *testing.T, s *Store, _ *Record) {
			mustAdd(t, s, "b", 7, long)
		}, map[string]string{"a": "1 old", "b": "7 " + long}},
		{"a visit", func(t *testing.T, s *Store, r *Record) {
			require.NoError(t, r.Reschedule(9, []byte("visited")))
		}, map[string]string{"a": "9 visited"}},
		{"a visit after a message", func(t *testing.T, s *Store, r *Record) {
			require.NoError(t, s.Update("a", []byte("later")))
			require.NoError(t, r.Reschedule(9, []byte("visited")))
		}, map[string]string{"a": "9 later"}},
		{"a visit of a record that was detached", func(t *testing.T, s *Store, r *Record) {
			r.Detach()
			require.NoError(t, r.Reschedule(9, []byte("visited")))
		}, map[string]string{"a": "9 visited"}},
		{"a record given back for good", func(t *testing.T, s *Store, r *Record) {
			require.NoError(t, r.Delete())
		}, map[string]string{}},
		{"a message", func(t *testing.T, s *Store, _ *Record) {
			require.NoError(t, s.Update("a", []byte("message")))
		}, map[string]string{"a": "1 message"}},
		{"a batch of messages", func(t *testing.T, s *Store, _ *Record) {
			left, err := s.UpdateBatch([]Message{
				{"a", []byte("one")}, {"unknown", nil}, {"a", []byte("two")},
			})
			require.NoError(t, err)
			require.Equal(t, 2, left)
		}, map[string]string{"a": "1 two"}},
		{"a deletion", func(t *testing.T, s *Store, _ *Record) {
			require.NoError(t, s.Delete("a"))
		}, map[string]string{}},
		{"a deletion and an addition", func(t *testing.T, s *Store, _ *Record) {
			require.NoError(t, s.Delete("a"))
			mustAdd(t, s, "a", 3, "again")
		}, map[string]string{"a": "3 again"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := mustOpen(t, fs, o)
			mustAdd(t, s, "a", 1, "old")
			var out *Record
			dueIDs(t, s, func(r *Record) { out = r })
			tt.do(t, s, out)
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, tt.want, contents(t, killed))
			require.NoError(t, killed.Check())
			require.NoError(t, s.Advance())
			killed = mustOpen(t, fs.Clone(), o)
			require.EqualValues(t, 2, killed.Now(), "the slot began, and outlives the process")
			require.Equal(t, tt.want, contents(t, killed))
		})
	}
}

// TestTooLargeAndRefused: a change that has to be written at once, and cannot be, is refused, and
// what was acknowledged before it is there.
func TestTooLargeAndRefused(t *testing.T) {
	fs := vfs.NewMem()
	o := Options{Start: 1, Commit: -1, pending: 8 << 10}
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	for i := range 5 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 5, "x")
		want[id] = "5 x"
	}
	fs.SetSpace(fs.Used())
	_, err := s.Add("https://a.test/large", 5, make([]byte, 10_000))
	require.ErrorIs(t, err, ErrReadOnly)
	found := mustOpen(t, fs.Clone(), o)
	require.Equal(t, want, contents(t, found))
	require.NoError(t, found.Check())
}

// unmappable is a file system of a system that knows no files that are memory as well.
type unmappable struct{ *vfs.Mem }

func (unmappable) Map(string, int) (*vfs.Map, error) { return nil, errors.ErrUnsupported }

// TestUnmappable: without files that are memory a store keeps what was committed.
func TestUnmappable(t *testing.T) {
	t.Parallel()
	fs := unmappable{vfs.NewMem()}
	o := Options{Start: 1, Commit: -1}
	s, err := open(fs, o)
	require.NoError(t, err)
	mustAdd(t, s, "https://a.test/a", 5, "x")
	require.NoError(t, s.Sync())
	mustAdd(t, s, "https://a.test/b", 5, strings.Repeat("x", MaxData))
	found := mustOpen(t, fs.Clone(), o)
	require.Equal(t, map[string]string{"https://a.test/a": "5 x"}, contents(t, found))
	for i := range 40 { // more than is kept in memory
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 5, strings.Repeat("x", MaxData/8))
	}
	require.NoError(t, s.Close())
	require.Len(t, contents(t, mustOpen(t, fs.Clone(), o)), 42)
}
