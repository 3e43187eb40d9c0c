package satstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
)

// TestClockSetForward jumps over more slots than the store has buckets for, between random
// operations. Skipped records are due, oldest first, and the others are not.
func TestClockSetForward(t *testing.T) {
	t.Parallel()
	for name, o := range optionSets {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, o, 5)
			for _, slots := range []int64{1, 70, 500, 3500, 2} {
				for range 25 {
					require.NoError(t, p.play())
				}
				last := int64(0)
				due(t, p.s, p.now()+slots, func(r *Record) {
					require.GreaterOrEqual(t, slotAt(r.At()), last)
					last = slotAt(r.At())
					require.Equal(t, last, p.m[r.ID].slot)
					require.Equal(t, p.m[r.ID].merged(), string(r.Data))
					p.out[r.ID] = &held{r, len(p.m[r.ID].mail)}
				})
				for id, r := range p.m {
					require.True(t, r.slot > p.now() || p.out[id] != nil, id)
				}
				p.check()
				require.NoError(t, p.s.Check(), "after %d slots", slots)
				p.kill()
				p.reopen()
				p.check()
			}
			require.NoError(t, p.s.Close())
		})
	}
}

// TestClockSetBack: the current slot never goes back, neither in an open store nor on reopening,
// and a record rescheduled to the past is not delayed.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, o := vfs.NewMem(), Options{Commit: -1}
		s := mustOpen(t, fs, o)
		began := time.Now()
		ahead := began.Add(48 * time.Hour) // the clock is two days fast, and is then corrected
		require.NoError(t, s.pass(slotAt(ahead)))
		require.Zero(t, s.Stats().Lag, "a slot in the future is not late")
		_, err := s.Add("new", began, nil)
		require.NoError(t, err)
		_, err = s.Add("later", ahead.Add(time.Hour), nil)
		require.NoError(t, err)
		var seen []string
		for r, err := range s.Due(t.Context(), began) {
			require.NoError(t, err)
			seen = append(seen, r.ID)
			require.Equal(t, slotAt(ahead), slotAt(r.At()))
			require.NoError(t, r.Reschedule(began.Add(time.Hour), nil), "in an hour by the clock")
		}
		require.Equal(t, []string{"new"}, seen)
		require.NoError(t, s.Close())

		s = mustOpen(t, fs, o)
		require.Equal(t, slotAt(ahead), nowOf(s))
		require.Empty(t, due(t, s, slotAt(ahead), nil))
		require.ElementsMatch(t, []string{"later", "new"}, due(t, s, slotAt(ahead)+1, nil))
		time.Sleep(51*time.Hour + 30*time.Minute) // the clock has passed the slot
		require.Equal(t, time.Since(s.Now())-time.Hour, s.Stats().Lag)
		require.NoError(t, s.Close())
	})
}

// TestEachSlotComes puts records at the boundaries of buckets, at all levels. Each must be due in
// its slot, not before and not after, even if the store was closed or killed shortly before.
func TestEachSlotComes(t *testing.T) {
	t.Parallel()
	const start, walked = 1000, 700
	for _, shape := range []calendar.Shape{{First: 6, More: 8}, {First: 2, More: 2}, {First: 1, More: 1}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			o := small(Options{test: testOptions{shape: shape}})
			fs := vfs.NewMem()
			s := mustOpen(t, fs, o)
			slots := []int64{start + walked}
			for n := int64(1); n <= 512; n *= 2 {
				slots = append(slots, start+n-1, start+n, start+n+1)
			}
			for _, end := range s.calendar.Ends() {
				slots = append(slots, end-1, end, end+1)
			}
			slices.Sort(slots)
			slots = slices.Compact(slots)
			slots = slices.DeleteFunc(slots, func(n int64) bool {
				return n <= start || n > start+walked
			})
			for _, slot := range slots {
				mustAdd(t, s, fmt.Sprint("slot ", slot), slot, "x")
			}
			mustAdd(t, s, "past", 3, "x")
			_, err := s.Add("far past", time.Time{}, nil)
			require.NoError(t, err)
			_, err = s.Add("never", time.Unix(1<<60, 0), nil)
			require.NoError(t, err)
			require.Equal(t, []string{"past", "far past"}, takeDue(t, s, start))
			for now := int64(start + 1); now <= start+walked; now++ {
				switch now % 50 {
				case 10:
					require.NoError(t, s.Close())
					s = mustOpen(t, fs, o)
				case 30:
					fs = fs.Clone() // the state after a kill
					s = mustOpen(t, fs, o)
				}
				var want []string
				if slices.Contains(slots, now) {
					want = []string{fmt.Sprint("slot ", now)}
				}
				require.Equal(t, want, takeDue(t, s, now))
			}
			item, err := s.Get("never")
			require.NoError(t, err)
			require.Equal(t, 2262, item.At.UTC().Year())
			require.NoError(t, s.Check())
			// The end of time is a few steps away, and then it is due.
			require.Equal(t, []string{"never"}, takeDue(t, s, slotAt(time.Unix(1<<60, 0))))
		})
	}
}

// takeDue removes the due records, which must be of the current slot.
func takeDue(t *testing.T, s *Store, now int64) []string {
	t.Helper()
	return due(t, s, now, func(r *Record) {
		require.Equal(t, now, slotAt(r.At()))
		require.NoError(t, r.Delete())
	})
}

// TestHeldForLong: a record that is out for many slots keeps neither its bucket nor the time from
// advancing; only very many slots with such records do.
func TestHeldForLong(t *testing.T) {
	o := logged()
	o.Buffer = 1 << 16
	s := mustOpen(t, vfs.NewMem(), o)
	filler := strings.Repeat("data", 2500)
	for i := range 600 {
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 2, filler)
	}
	var stuck *Record
	due(t, s, 2, func(r *Record) {
		if stuck == nil {
			stuck = r.Detach()
		} else {
			require.NoError(t, r.Delete())
		}
	})
	require.NoError(t, s.pass(3))
	require.NoError(t, s.checkpointNow())
	require.NoError(t, s.checkpointNow(), "the buffers are on disk now")
	require.LessOrEqual(t, len(s.state.due[0].records.Extents()), 1)
	was := s.state.due
	for len(s.state.due) < 50_000 { // as if records of that many slots were out
		s.state.due = append(s.state.due, was[0])
	}
	require.ErrorContains(t, firstOf(s.Due(t.Context(), at(4))), "return some")
	s.state.due = was
	require.NoError(t, stuck.Reschedule(at(5), []byte("back")), "the store has not failed")
	require.Empty(t, due(t, s, 4, nil))
	require.Empty(t, s.state.due, "returned records free their buckets")
	require.NoError(t, s.Check())
}
