package satstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// mailInMemory returns how many bytes of messages are in memory. Those of buckets that are gone do not
// count.
func (s *Store) mailInMemory(t *testing.T) (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.buckets {
		bytes += b.mail.size()
	}
	require.Equal(t, bytes, s.waiting)
	return bytes
}

// TestLateMessages: messages that arrive once their unit has begun, but before Due reads it, need no
// more memory than those that were there before. The records keep their order and their messages, after
// a kill at any step, too, and whether the unit is the current one or a past one.
func TestLateMessages(t *testing.T) {
	t.Parallel()
	for _, now := range []int64{1001, 1004} {
		fs, o := vfs.NewMem(), small(Options{Buffer: 16 << 10})
		s := mustOpen(t, fs, o)
		want := map[string]string{}
		send := func(i int, text string) {
			id := fmt.Sprint("https://a.test/", i)
			require.NoError(t, s.Update(id, []byte(text)))
			want[id] += "+" + text
		}
		for i := range 60 {
			id := fmt.Sprint("https://a.test/", i)
			mustAdd(t, s, id, 1001, "x")
			want[id] = "x"
		}
		for i := range 10 {
			id := fmt.Sprint("later", i)
			mustAdd(t, s, id, 1004, "x")
			want[id] = "x"
		}
		for slot := int64(1001); slot <= now; slot++ {
			require.NoError(t, s.pass(slot))
		}
		mustAdd(t, s, "at once", 0, "x")
		want["at once"] = "x"
		for n := range 20 {
			for i := range 60 {
				send(i, strings.Repeat(fmt.Sprint(n%10), 30))
			}
		}
		for steps := 0; ; steps++ {
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, datasOf(t, killed))
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
			s.mu.Lock()
			b := s.due[0]
			parts := s.partsOfDue(b)
			s.mu.Unlock()
			if parts == 1 {
				break
			}
			require.Less(t, steps, 1000)
			s.o.test.work = nil // so that the spread is half done
			require.NoError(t, s.spreadDue(t.Context(), b))
			s.o.test.work = workNow
			send(7, "during the spread")
			require.NoError(t, s.checkpointNow())
			killed = mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, datasOf(t, killed))
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
		}
		next, most := 0, int64(0)
		due(t, s, now, func(r *Record) {
			require.Equal(t, want[r.ID], string(r.Data), r.ID)
			if strings.HasPrefix(r.ID, "https") {
				require.Equal(t, fmt.Sprint("https://a.test/", next), r.ID, "the order of arrival")
				next++
			}
			most = max(most, s.mailInMemory(t))
			delete(want, r.ID)
			require.NoError(t, r.Reschedule(at(1010), r.Data))
		})
		require.Equal(t, 60, next)
		require.LessOrEqual(t, most, o.Buffer)
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
		s = mustOpen(t, fs, o)
		require.NoError(t, s.Check())
	}
}

// TestMessagesInMemoryAreBounded: those for records that are out, and for records of a bucket that Due
// has begun to read, until the records are returned or deleted. Messages that came before are not
// counted, also after Open.
func TestMessagesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := small(Options{Buffer: 1 << 20, test: testOptions{page: 4 << 10, pending: 2 << 20}})
	s := mustOpen(t, fs, o)
	for i := range 4 {
		mustAdd(t, s, fmt.Sprint(i), 1000, "x")
	}
	send := func(id string) (n int) {
		for ; n < 15; n++ {
			if err := s.Update(id, make([]byte, 100<<10)); err != nil {
				require.ErrorIs(t, err, ErrSize)
				break
			}
		}
		return n
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	for i := range 3 {
		require.Equal(t, 15, send(fmt.Sprint(i)), "they are on disk")
	}
	out := []*Record{}
	for r, err := range s.Due(t.Context(), at(1000)) {
		require.NoError(t, err)
		require.LessOrEqual(t, s.mailInMemory(t), 2*o.Buffer, "two records may have a part of the bucket")
		if out = append(out, r); len(out) == 3 {
			break
		}
	}
	require.Zero(t, s.mailInMemory(t))
	require.Equal(t, 10, send("0"), "the buffers")
	require.Zero(t, send("1"))
	require.LessOrEqual(t, s.mailInMemory(t), o.Buffer)
	require.NoError(t, out[0].Reschedule(at(1001), nil))
	require.Equal(t, 10, send("1"))
	require.NoError(t, s.Delete("1"))
	require.Equal(t, 10, send("2"))
	require.NoError(t, out[2].Delete())
	require.Zero(t, s.mailInMemory(t))
	require.Equal(t, 15, send("3"), "Due has not begun to read its part")
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestMessagesForABegunBucket: a bucket of which a record was returned before Open is read at once. The
// messages for it are bounded, too, and those that were merged before take no memory.
func TestMessagesForABegunBucket(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := small(Options{Buffer: 1 << 20, test: testOptions{page: 4 << 10, pending: 2 << 20}})
	s := mustOpen(t, fs, o)
	for i := range 3 {
		mustAdd(t, s, fmt.Sprint(i), 1000, "x")
	}
	for range 4 {
		require.NoError(t, s.Update("0", make([]byte, 100<<10)))
	}
	for r, err := range s.Due(t.Context(), at(1000)) {
		require.NoError(t, err)
		require.NoError(t, r.Reschedule(at(1001), nil))
		break
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	n := 0
	for ; s.Update("1", make([]byte, 100<<10)) == nil; n++ {
		require.Less(t, n, 10)
	}
	require.Equal(t, 6, n, "with those that are there")
	require.ErrorIs(t, s.Update("2", make([]byte, 100<<10)), ErrSize)
	for r, err := range s.Due(t.Context(), at(1000)) {
		require.NoError(t, err)
		require.LessOrEqual(t, s.mailInMemory(t), int64(6*(100<<10+mailSize)))
		require.NoError(t, r.Delete())
	}
	require.Zero(t, s.mailInMemory(t))
}
