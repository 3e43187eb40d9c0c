package satstore

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

func dueIDs(t *testing.T, s *Store, visit func(*Record)) (ids []string) {
	t.Helper()
	for r, err := range s.Due(t.Context()) {
		require.NoError(t, err)
		ids = append(ids, string(r.ID))
		if visit != nil {
			visit(r)
		}
	}
	return ids
}

func mustAdd(t *testing.T, s *Store, id string, slot int64, data string) {
	t.Helper()
	added, err := s.Add(id, slot, []byte(data))
	require.NoError(t, err)
	require.True(t, added)
}

// TestFallingBehind lets hundreds of slots pass unread, more than have buckets of their own then.
// All come in their order, messages included, and nothing is lost on the way.
func TestFallingBehind(t *testing.T) {
	fs := vfs.NewMem()
	o := small(Options{})
	s := mustOpen(t, fs, o)
	var want []string
	for slot := range int64(300) {
		for i := range 3 {
			id := fmt.Sprintf("https://a.test/%03d/%d", slot, i)
			mustAdd(t, s, id, 1000+slot, "x")
			want = append(want, id)
		}
	}
	for range 300 {
		require.NoError(t, s.Advance())
	}
	require.NoError(t, s.Update("https://a.test/250/1", []byte("hint")))
	require.LessOrEqual(t, len(s.due), maxDue)
	require.EqualValues(t, 900, s.Stats().Due)
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	got := dueIDs(t, s, func(r *Record) {
		if string(r.ID) == "https://a.test/250/1" {
			require.Equal(t, "x+hint", string(r.Data))
		}
		require.NoError(t, r.Reschedule(0, r.Data))
	})
	require.Equal(t, want, got)
	require.NoError(t, s.Check())
}

// TestStuckRecordsKeepLittle: a record that is out for many slots does not keep its bucket.
func TestStuckRecordsKeepLittle(t *testing.T) {
	o := Options{Start: 1, Commit: -1, Buffer: 1 << 16, Radix: -1, Horizon: 50}
	s := mustOpen(t, vfs.NewMem(), o)
	filler := strings.Repeat("data", 2500)
	for i := range 600 {
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 2, filler)
	}
	require.NoError(t, s.Advance())
	var stuck *Record
	dueIDs(t, s, func(r *Record) {
		if stuck == nil {
			r.Detach()
			stuck = r
		} else {
			require.NoError(t, r.Delete())
		}
	})
	require.NoError(t, s.checkpointNow())
	require.LessOrEqual(t, len(s.due[0].records.extents), 1)
	require.NoError(t, stuck.Reschedule(5, nil))
	require.NoError(t, s.Check())
}

// TestPasses lets more messages wait than fit into memory: the bucket is read several times, each
// record comes once, with its messages in their order, and late ones wait for the next time.
func TestPasses(t *testing.T) {
	o := small(Options{})
	s := mustOpen(t, vfs.NewMem(), o)
	for i := range 60 {
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 1001, "x")
	}
	for n := range 20 {
		for i := range 60 {
			require.NoError(t, s.Update(fmt.Sprint("https://a.test/", i), fmt.Append(nil, n)))
		}
	}
	require.NoError(t, s.Advance())
	want := "x"
	for n := range 20 {
		want += fmt.Sprint("+", n)
	}
	held := []*Record{}
	got := dueIDs(t, s, func(r *Record) {
		if strings.HasPrefix(string(r.ID), "https://a.test/new") {
			require.Equal(t, "n", string(r.Data))
			require.NoError(t, r.Delete())
			return
		}
		require.Equal(t, want, string(r.Data))
		if len(held) == 0 {
			mustAdd(t, s, "https://a.test/new", 0, "n")
		}
		require.NoError(t, s.Update(string(r.ID), []byte("late")))
		held = append(held, r)
	})
	require.Len(t, got, 61)
	require.Greater(t, s.due[0].passes, uint64(3))
	for _, r := range held {
		require.NoError(t, r.Reschedule(1002, []byte("y")))
	}
	require.NoError(t, s.Advance())
	require.Len(t, dueIDs(t, s, func(r *Record) { require.Equal(t, "y+late", string(r.Data)) }), 60)
}

func TestRefusals(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Start: 1, Commit: -1})
	mustAdd(t, s, "https://a.test/", 0, "x")
	added, err := s.Add("https://a.test/", 5, nil)
	require.NoError(t, err)
	require.False(t, added, "it is known")
	for _, item := range []Item{
		{"", 0, nil}, {strings.Repeat("x", MaxID+1), 0, nil}, {"x", 0, make([]byte, MaxData+1)},
	} {
		_, err := s.AddBatch([]Item{{"https://a.test/b", 0, nil}, item})
		require.ErrorIs(t, err, ErrSize)
	}
	require.ErrorIs(t, s.Update("https://a.test/", make([]byte, MaxData+1)), ErrSize)
	require.ErrorIs(t, s.Delete("https://a.test/b"), ErrUnknown, "a batch is refused as a whole")
	dueIDs(t, s, func(r *Record) {
		require.ErrorIs(t, r.Reschedule(2, make([]byte, MaxData+1)), ErrSize)
		require.NoError(t, r.Delete())
		require.ErrorIs(t, r.Delete(), ErrDone)
		require.ErrorIs(t, r.Reschedule(2, nil), ErrDone)
		r.Detach()
	})
	_, err = s.Get("https://a.test/")
	require.ErrorIs(t, err, ErrUnknown)
	mustAdd(t, s, "https://a.test/", 1<<62, strings.Repeat("x", MaxData))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Due(ctx) {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, s.Close())
	for _, err := range []error{
		s.Sync(), s.Advance(), s.Update("x", nil), s.Check(), s.backup(vfs.NewMem()),
	} {
		require.ErrorIs(t, err, ErrClosed)
	}
	for _, err := range s.Due(t.Context()) {
		require.ErrorIs(t, err, ErrClosed)
	}
	for _, err := range s.Scan() {
		require.ErrorIs(t, err, ErrClosed)
	}
	_, err = open(vfs.NewMem(), Options{Radix: -1, Horizon: 1 << 20})
	require.ErrorIs(t, err, ErrOptions)
}

// TestDamagedLog: a group that is not whole is the end of the log, unless one behind it says that
// it had been synced.
func TestDamagedLog(t *testing.T) {
	for _, synced := range []bool{false, true} {
		fs := vfs.NewMem()
		l, err := createLog(fs, 1, true)
		require.NoError(t, err)
		for i := range 3 {
			if synced {
				l.synced = l.end
			}
			require.NoError(t, l.write(l.frame(nil, fmt.Append(nil, "changes", i))))
		}
		fs.Flip(logName(1), int64(logHeader+groupHeader+8+groupHeader), 1) // in the second one
		r, err := openLog(fs, 1)
		require.NoError(t, err)
		changes, err := r.next()
		require.NoError(t, err)
		require.Equal(t, "changes0", string(changes))
		changes, err = r.next()
		require.Empty(t, changes)
		if !synced {
			require.NoError(t, err)
			continue
		}
		var where *CorruptError
		require.ErrorAs(t, err, &where)
		want := CorruptError{File: logName(1), Offset: logHeader + groupHeader + 8, Reason: where.Reason}
		require.Equal(t, want, *where)
	}
}

// TestLogHoldsWhatChanged: a visit that changes a few bytes of a record costs a few bytes of log.
func TestLogHoldsWhatChanged(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Start: 1, Commit: -1})
	data := bytes.Repeat([]byte("0123456789"), 20)
	for i := range 1000 {
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 0, string(data))
	}
	require.NoError(t, s.Sync())
	before := s.Stats().LogSize
	dueIDs(t, s, func(r *Record) {
		copy(r.Data[40:], "abcdefgh")
		require.NoError(t, r.Reschedule(7, r.Data))
	})
	require.Less(t, s.Stats().LogSize-before, int64(1000*20))
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := mustOpen(t, vfs.NewMem(), Options{Unit: time.Minute, Commit: -1})
		require.Equal(t, s.Slot(start), s.Now())
		require.True(t, start.Truncate(time.Minute).Equal(s.Start(s.Now())))
		for i := range 6 {
			mustAdd(t, s, fmt.Sprint("https://a.test/", i), s.Now()+1, "data")
		}
		require.NoError(t, s.Advance())
		n := 0
		dueIDs(t, s, func(r *Record) {
			if n++; n > 2 {
				require.NoError(t, r.Reschedule(s.Now()+5, r.Data))
			}
		})
		time.Sleep(150 * time.Second)
		got := s.Stats()
		require.Equal(t, time.Since(s.Start(s.Now()+1)), got.Lag)
		require.NoError(t, s.Advance())
		got = s.Stats()
		require.EqualValues(t, 6, got.Records)
		require.EqualValues(t, 2, got.Due)
		require.EqualValues(t, 2, got.Out)
		require.EqualValues(t, 4, got.Rescheduled)
		require.EqualValues(t, 4, got.SlotRecords)
		require.Equal(t, 150*time.Second, got.SlotTime)
		require.Equal(t, 15*time.Second, got.Deadline)
		require.Zero(t, Stats{}.WriteAmplification())
		require.NoError(t, s.Sync())
		require.Positive(t, s.Stats().WriteAmplification())
		require.NoError(t, s.Close())
	})
}

func TestSlotOf(t *testing.T) {
	for _, tt := range []struct {
		at   time.Time
		unit time.Duration
		want int64
	}{
		{time.Unix(0, 0), time.Hour, 0},
		{time.Unix(3599, 999), time.Hour, 0},
		{time.Unix(3600, 0), time.Hour, 1},
		{time.Unix(-1, 0), time.Hour, -1},
		{time.Unix(1, 5e8), 500 * time.Millisecond, 3},
	} {
		require.Equal(t, tt.want, slotOf(tt.at, tt.unit), "%v in %v", tt.at, tt.unit)
	}
}

// TestPanicsLoseNothing: what was handed out before a consumer panicked is out, the rest is not.
func TestPanicsLoseNothing(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Start: 1, Commit: -1})
	for i := range 5 {
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 0, "x")
	}
	var first []*Record
	require.Panics(t, func() {
		for r := range s.Due(t.Context()) {
			if first = append(first, r); len(first) == 2 {
				panic("consumer")
			}
		}
	})
	require.EqualValues(t, 2, s.Stats().Out)
	require.Len(t, dueIDs(t, s, func(r *Record) { require.NoError(t, r.Reschedule(3, nil)) }), 3)
	for _, r := range first {
		require.NoError(t, r.Reschedule(4, nil))
	}
	require.NoError(t, s.Check())
}

// TestLastOneIsDeleted: when the last record of a passed slot turns out to be deleted, the bucket
// is given up, and the records behind it, which moved before, do not come again.
func TestLastOneIsDeleted(t *testing.T) {
	fs, o := vfs.NewMem(), Options{Start: 1, Commit: -1}
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "https://a.test/out", 1, "x")
	mustAdd(t, s, "https://a.test/moved", 1, "x")
	dueIDs(t, s, func(r *Record) {
		if string(r.ID) == "https://a.test/moved" {
			require.NoError(t, r.Reschedule(9, nil))
		}
	})
	require.NoError(t, s.Advance())
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	require.NoError(t, s.Delete("https://a.test/out"))
	require.Empty(t, dueIDs(t, s, nil))
	require.Len(t, contents(t, s), 1)
	require.NoError(t, s.Check())
}
