package satstore

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// units are of all sorts: with and without a fraction of a second, and the least and largest ones.
var units = []time.Duration{
	time.Microsecond, 333 * time.Microsecond, time.Second, 1500 * time.Millisecond, time.Hour,
	math.MaxInt64,
}

// TestStartOfFarSlots: slots that are further away than any time keep their order, and the others
// begin at the first moment that is in them.
func TestStartOfFarSlots(t *testing.T) {
	slots := []int64{
		math.MinInt64, -maxSlot, -1 << 50, -1 << 33, -1e9, -1, 0, 1, 1e9, 1 << 33, 1 << 50, maxSlot,
		math.MaxInt64,
	}
	for _, unit := range units {
		for i, slot := range slots {
			at := startOf(slot, unit)
			if i > 0 {
				require.False(t, at.Before(startOf(slots[i-1], unit)), "%d of %v", slot, unit)
			}
			if slot != 0 {
				require.Equal(t, slot < 0, at.Before(time.Unix(0, 0)), "%d of %v", slot, unit)
			}
			// Where a slot of that time can be counted, it is the one.
			if s := at.Unix(); s > -maxNanoSeconds && s < maxNanoSeconds {
				require.Equal(t, slot, slotOf(at, unit), "%d of %v", slot, unit)
				require.Equal(t, slot-1, slotOf(at.Add(-1), unit), "%d of %v", slot, unit)
			}
		}
	}
}

// TestSlotsAreBounded: of no time there is a slot beyond those that a record can be in.
func TestSlotsAreBounded(t *testing.T) {
	for _, unit := range units {
		for _, seconds := range []int64{-1 << 62, -1 << 40, 0, 1 << 40, 1 << 62} {
			slot := slotOf(time.Unix(seconds, 999_999_999), unit)
			require.LessOrEqual(t, slot, int64(maxSlot), "%d s in %v", seconds, unit)
			require.GreaterOrEqual(t, slot, int64(-maxSlot), "%d s in %v", seconds, unit)
		}
	}
}

// TestStartAnywhere: a store can begin in any slot, go on from there, and be opened again.
func TestStartAnywhere(t *testing.T) {
	for _, start := range []int64{math.MinInt64, -maxSlot, -1, 1, maxSlot, math.MaxInt64} {
		for _, radix := range []int{-1, 4} {
			fs, o := vfs.NewMem(), small(Options{Radix: radix, Horizon: 100})
			o.Start = start
			s := mustOpen(t, fs, o)
			now := s.Now()
			mustAdd(t, s, "first", math.MinInt64, "x")
			mustAdd(t, s, "next", now+1, "x")
			mustAdd(t, s, "far", now+150, "x")
			mustAdd(t, s, "last", math.MaxInt64, "x")
			require.Equal(t, []string{"first"}, takeDue(t, s, now))
			require.NoError(t, s.Advance())
			s = mustOpen(t, fs.Clone(), o)
			require.Equal(t, now+1, s.Now())
			require.Equal(t, []string{"next"}, takeDue(t, s, now+1))
			want := map[string]string{
				"far": fmt.Sprint(now+150, " x"), "last": fmt.Sprint(int64(maxSlot), " x"),
			}
			require.Equal(t, want, contents(t, s), "from %d, radix %d", start, radix)
			require.NoError(t, s.Check())
			require.NoError(t, s.Close())
		}
	}
}

// TestImpossibleOptions: a choice that there is not is refused, and nothing is made.
func TestImpossibleOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"a mode":                {Mode: Naive + 1},
		"a negative mode":       {Mode: -1},
		"a compression":         {Compression: Zstd + 1},
		"a flush":               {Flush: FlushLarge + 1},
		"too many flat buckets": {Radix: -1, Horizon: maxFlatHorizon + 1},
	} {
		fs := vfs.NewMem()
		_, err := open(fs, o)
		require.ErrorIs(t, err, ErrOptions, name)
		require.Zero(t, fs.Steps(), name)
	}
	o := Options{Buffer: math.MaxInt64, Page: 512}.withDefaults()
	require.Equal(t, int64(maxPages*512), o.Buffer, "or sums of it would overflow")
}

// TestAnyID: an id is any bytes.
func TestAnyID(t *testing.T) {
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	for i, id := range []string{
		"\x00", "\x00\x00", "\xff", " ", "\n", "a", "A", "a\x00", "\xc3\x28", "é", "e\u0301",
		strings.Repeat("\x00", MaxID), strings.Repeat("\x00", MaxID-1), strings.Repeat("\xff", 127),
		strings.Repeat("\xff", 128), "SATR", groupStart,
	} {
		slot := 1000 + int64(i%4*i)
		mustAdd(t, s, id, slot, id)
		require.NoError(t, s.Update(id, []byte(id)))
		want[id] = fmt.Sprint(slot, " ", id, "+", id)
	}
	require.Equal(t, want, contents(t, s))
	for id, text := range want {
		item, err := s.Get(id)
		require.NoError(t, err)
		require.Equal(t, text, fmt.Sprint(item.Slot, " ", string(item.Data)))
	}
	killed := mustOpen(t, fs.Clone(), o)
	require.Equal(t, want, contents(t, killed))
	require.NoError(t, killed.Check())
	for id := range want {
		require.NoError(t, s.Delete(id))
	}
	require.Empty(t, contents(t, s))
}

// groupStart is what a group of the log begins with.
const groupStart = "SATG\x00\x00\x00\x00\x00\x00\x00\x00"

// TestHorizonOfOne: a horizon so short that all but the next slot lies beyond it. A checkpoint
// between the beginning of a slot and the move of what is due in it can be opened.
func TestHorizonOfOne(t *testing.T) {
	for _, radix := range []int{-1, 2} {
		fs, o := vfs.NewMem(), small(Options{Horizon: 1, Radix: radix, NoLog: true})
		s := mustOpen(t, fs, o)
		for i := range int64(9) {
			mustAdd(t, s, fmt.Sprint(1000+i), 1000+i, "x")
		}
		for now := int64(1000); now < 1010; now++ {
			want := contents(t, s)
			s.flushed = 1 << 40 // so that Advance writes a checkpoint
			require.NoError(t, s.Advance())
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, now+1, killed.Now())
			require.Equal(t, want, contents(t, killed))
			require.NoError(t, killed.Check())
			dueIDs(t, s, func(r *Record) {
				require.LessOrEqual(t, r.Slot, now+1)
				require.NoError(t, r.Reschedule(r.Slot+3, r.Data))
			})
		}
	}
}
