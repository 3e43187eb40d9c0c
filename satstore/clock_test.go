package satstore

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A crawler turns the clock into slots: it advances until the current slot is that of the time. A
// clock that is set forward makes it advance a thousand times in a row, one that is set back makes
// it wait in a slot that seems to lie ahead.

// jump begins many slots, with nothing worked off in between. It returns the store's error.
func (p *player) jump(slots int) (err error) {
	first := p.m.now
	for n := 0; n < slots && err == nil; n++ {
		err = p.s.Advance()
	}
	for p.m.now < p.s.Now() {
		p.m.now++
		if p.m.now < first+600 { // no test lets a crash come later
			p.done()
		}
	}
	return err
}

// TestClockSetForward jumps over more slots than the store has buckets for, between random things.
// What was skipped is due, oldest first, and the rest is not.
func TestClockSetForward(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"full", "flat", "naive", "nolog", "basic", "zstd"} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, optionSets[name], 5)
			p.late = true
			for _, slots := range []int{1, 70, 500, 3500, 2} {
				for range 25 {
					require.NoError(t, p.play())
				}
				require.NoError(t, p.jump(slots))
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

// TestPowerFailsWhileCatchingUp: a crash in the midst of a jump leaves some slot of it, with all
// records in their places.
func TestPowerFailsWhileCatchingUp(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"full", "flat", "naive", "nolog", "basic", "zstd"} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, optionSets[name], 7)
			p.late = true
			for range 4 {
				for range 40 {
					require.NoError(t, p.play())
				}
				p.fs.FailAt(p.fs.Steps()+1+p.random.IntN(120), vfs.ErrPower)
				err := p.jump(200 + p.random.IntN(300))
				if err != nil {
					require.ErrorIs(t, err, vfs.ErrPower)
				}
				p.catchUp()
				p.crash()
			}
			p.check()
			require.NoError(t, p.s.Check())
		})
	}
}

// TestClockSetBack: the current slot never goes back, be it while the store is open or when it is
// opened again, and what is wanted for a slot that has passed is not put off.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, o := vfs.NewMem(), Options{Unit: time.Hour, Commit: -1}
		s := mustOpen(t, fs, o)
		began := s.Now()
		require.Equal(t, s.Slot(time.Now()), began)
		for range 48 { // the clock ran ahead by two days, and is then set right
			require.NoError(t, s.Advance())
		}
		require.Zero(t, s.Stats().Lag, "a slot that lies ahead is not late")
		now := s.Slot(time.Now())
		require.Equal(t, began, now)
		mustAdd(t, s, "new", now, "x")
		mustAdd(t, s, "later", s.Now()+1, "x")
		require.Equal(t, []string{"new"}, dueIDs(t, s, func(r *Record) {
			require.Equal(t, began+48, r.Slot)
			require.NoError(t, r.Reschedule(now+1, r.Data), "for the clock it is in an hour")
		}))
		require.NoError(t, s.Close())

		s = mustOpen(t, fs, o)
		require.Equal(t, began+48, s.Now())
		require.Empty(t, dueIDs(t, s, nil))
		require.NoError(t, s.Advance())
		require.ElementsMatch(t, []string{"later", "new"}, dueIDs(t, s, nil))
		time.Sleep(50*time.Hour + 30*time.Minute) // the clock has caught up, and more
		require.Equal(t, 30*time.Minute, s.Stats().Lag)
		require.NoError(t, s.Close())
	})
}

// TestEachSlotComes puts records where one bucket ends and another begins, at all levels, and beyond
// the last one. Each has to come due in its slot, not before and not after, also if the store was
// closed, or killed, shortly before.
func TestEachSlotComes(t *testing.T) {
	t.Parallel()
	const start, walked = 1000, 700
	for name, o := range map[string]Options{
		"one level":     {Radix: 64, Horizon: 200},
		"many levels":   {Radix: 4, Horizon: 600},
		"two levels":    {Radix: 512, Horizon: 600},
		"without radix": {Radix: -1, Horizon: 600},
		"tiny horizon":  {Radix: 2, Horizon: 1},
		"naive":         {Radix: 4, Horizon: 600, Mode: Naive},
	} {
		t.Run(name, func(t *testing.T) {
			o := small(o)
			fs := vfs.NewMem()
			s := mustOpen(t, fs, o)
			var slots []int64
			for i := range s.calendar.levels {
				l := &s.calendar.levels[i]
				slots = append(slots, l.end-1, l.end, l.end+1, l.end-l.width, l.end+l.width)
			}
			for n := int64(1); n <= 512; n *= 2 {
				slots = append(slots, start+n-1, start+n, start+n+1)
			}
			h := start + s.o.Horizon
			slots = append(slots, h-1, h, h+1, start+walked)
			slices.Sort(slots)
			slots = slices.Compact(slots)
			slots = slices.DeleteFunc(slots, func(n int64) bool {
				return n <= start || n > start+walked
			})
			for _, slot := range slots {
				mustAdd(t, s, fmt.Sprint("slot ", slot), slot, "x")
			}
			mustAdd(t, s, "past", -maxSlot, "x")
			mustAdd(t, s, "far past", -1<<63, "x")
			mustAdd(t, s, "never", 1<<63-1, "x")
			require.Equal(t, []string{"past", "far past"}, takeDue(t, s, start))
			for now := int64(start + 1); now <= start+walked; now++ {
				require.NoError(t, s.Advance())
				switch now % 50 {
				case 10:
					require.NoError(t, s.Close())
					s = mustOpen(t, fs, o)
				case 30:
					fs = fs.Clone() // what a kill leaves
					s = mustOpen(t, fs, o)
				}
				var want []string
				if slices.Contains(slots, now) {
					want = []string{fmt.Sprint("slot ", now)}
				}
				require.Equal(t, want, takeDue(t, s, now))
			}
			require.Equal(t, map[string]string{"never": fmt.Sprint(int64(maxSlot), " x")}, contents(t, s))
			require.NoError(t, s.Check())
		})
	}
}

// takeDue removes what is due, which must be of the current slot.
func takeDue(t *testing.T, s *Store, now int64) []string {
	t.Helper()
	return dueIDs(t, s, func(r *Record) {
		require.Equal(t, now, r.Slot)
		require.NoError(t, r.Delete())
	})
}

// TestManyVisitsNeedNoRoom: records that are visited in each slot are written again each time. With
// each checkpoint the room that they left is used again, so the file does not grow with the visits.
func TestManyVisitsNeedNoRoom(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, vfs.NewMem(), small(Options{}))
	total := int64(0)
	for i := range 200 {
		id, data := fmt.Sprint("https://a.test/", i), fmt.Sprintf("%100d", i)
		mustAdd(t, s, id, 1000, data)
		total += int64(len(id) + len(data))
	}
	visits, early := 0, int64(0)
	for slot := range 150 {
		dueIDs(t, s, func(r *Record) {
			visits++
			require.NoError(t, r.Reschedule(r.Slot+1, r.Data))
		})
		require.NoError(t, s.Advance())
		if slot%5 == 0 {
			require.NoError(t, s.checkpointNow())
		}
		if slot == 20 {
			early = s.Stats().DiskSize
		}
	}
	require.Equal(t, 200*150, visits)
	require.Greater(t, s.Stats().BytesWritten, 50*total, "or this would prove nothing")
	require.LessOrEqual(t, s.Stats().DiskSize, early*5/4)
	require.NoError(t, s.Check())
}
