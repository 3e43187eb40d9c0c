package satstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestDeleteBesideDelete: while Store.Delete or Update waits for room, the owner of the record deletes it,
// and a checkpoint begins that does not save its page of the bucket index. The log that follows must not
// change the record again: that would count for another one in its bucket.
func TestDeleteBesideDelete(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Store) error{
		"Delete": func(s *Store) error { return s.Delete("gone") },
		"Update": func(s *Store) error { return s.Update("gone", []byte("message")) },
	} {
		t.Run(name, func(t *testing.T) {
			o := small(Options{Buffer: 16 << 10})
			meanwhile := func() {}
			o.test.work = func(*Store) {
				do := meanwhile
				meanwhile = func() {}
				do()
			}
			fs := vfs.NewMem()
			s := mustOpen(t, fs, o)
			mustAdd(t, s, "gone", 1000, "x")
			mustAdd(t, s, "kept", 1000, "x")
			// As if many records had been added, so that a checkpoint saves some of the pages.
			for n := range 3 {
				s.seq = uint64(n+1) * pageNumbers
				require.NoError(t, s.checkpointNow())
				mustAdd(t, s, fmt.Sprint("far", n), 5000, "x")
				mustAdd(t, s, fmt.Sprint("farther", n), 5000, "x")
			}
			for range 8 {
				require.NoError(t, s.checkpointNow())
			}
			var gone *Record
			due(t, s, 1000, func(r *Record) {
				if r.ID == "gone" {
					gone = r
				}
			})
			require.Empty(t, due(t, s, 1002, nil))
			for n := range 3 {
				require.NoError(t, s.Delete(fmt.Sprint("far", n)))
			}
			s.places.turn = 1
			meanwhile = func() {
				require.NoError(t, gone.Delete())
				require.NoError(t, s.checkpointNow())
			}
			require.ErrorIs(t, change(s), ErrUnknown)
			want := contents(t, s)
			require.NoError(t, s.Sync())
			abandon(s)
			s = mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, contents(t, s))
			require.NoError(t, s.Check())
			abandon(s)
		})
	}
}

// TestReturnedTwice: the store knows which records were returned, also from a copy of a Record, after
// the last one of its bucket, and whether or not the record is still there.
func TestReturnedTwice(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	for i := range 6 {
		mustAdd(t, s, fmt.Sprint(i), 1001, "data")
	}
	var out []*Record
	due(t, s, 1001, func(r *Record) { out = append(out, r) })
	require.Empty(t, due(t, s, 1002, nil)) // so that the bucket goes with its last record
	copies := make([]Record, len(out))
	for i, r := range out {
		copies[i] = *r
	}
	refuse := func(n int) {
		for i := range copies[:n] {
			again := copies[i]
			require.ErrorIs(t, again.Reschedule(at(1003), nil), ErrDone)
			require.ErrorIs(t, again.Delete(), ErrDone)
			require.ErrorIs(t, out[i].Delete(), ErrDone)
		}
	}
	for i, r := range out {
		switch i % 3 {
		case 0:
			require.NoError(t, r.Reschedule(at(1005), []byte("new")))
		case 1:
			require.NoError(t, r.Delete())
		default:
			require.NoError(t, s.Delete(r.ID))
			require.NoError(t, r.Delete())
		}
		refuse(i + 1)
	}
	require.True(t, out[0].bucket.dead)
	require.NoError(t, s.Delete("0"))
	refuse(len(out))
	require.Zero(t, s.Stats().Out)
	require.NoError(t, s.Check())
	require.NoError(t, s.Sync())
	abandon(s)
	s = mustOpen(t, fs.Clone(), o)
	require.Equal(t, []string{"3"}, due(t, s, 1005, nil))
	abandon(s)
}

// TestSplitReadsOnce: a split reads each extent once, although it moves a block at a time.
func TestSplitReadsOnce(t *testing.T) {
	t.Parallel()
	o := Options{Start: at(1000), Commit: -1, Buffer: 1 << 20, test: testOptions{work: workNow}}
	s := mustOpen(t, vfs.NewMem(), o)
	const records = 20_000
	for i := range records {
		mustAdd(t, s, fmt.Sprint(i), 1000+500+int64(i%10), string(make([]byte, 200)))
	}
	require.NoError(t, s.checkpointNow())
	b := s.bucketOf(0)
	size, before := b.records.Bytes(), s.Stats()
	require.NotEqual(t, int64(1), b.width)
	require.Greater(t, size, int64(3<<20))
	require.Empty(t, due(t, s, 1498, nil))
	after := s.Stats()
	require.GreaterOrEqual(t, after.Split-before.Split, int64(records))
	require.LessOrEqual(t, after.BytesRead-before.BytesRead, 3*size)
	require.NoError(t, s.Close())
}
