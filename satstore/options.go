package satstore

import (
	"fmt"
	"math"
	"time"

	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Defaults of [Options], and limits.
const (
	DefaultUnit   = time.Hour
	DefaultBuffer = 64 << 20
	DefaultCommit = 10 * time.Millisecond

	MaxID   = 64 << 10 // bytes of an id
	MaxData = 1 << 20  // bytes of a record's data or of a message
)

// Options configure a [Store]. The zero Options open any store, or create one of hours.
type Options struct {
	// Unit is the resolution of time: a record is due from the start of the unit that contains its
	// time. It is at least a millisecond, and fixed when a store is created. 0 means the unit of
	// the store, or DefaultUnit for a new one.
	Unit time.Duration

	// Start is the current time of a new store: records due earlier are due immediately. The zero
	// Time means now.
	Start time.Time

	// Merge applies a message that [Store.Update] left for a record, and returns the new data. It
	// may change data in place and must not keep either slice. It runs without a lock, when the
	// record is handed out or read. nil means that the message replaces the data.
	Merge func(id string, data, message []byte) []byte

	// Buffer is the memory for records on their way to the disk, in bytes. It also bounds that for
	// messages and, while the disk syncs fast enough, that for new ids. The log on disk grows to about
	// the same size, and so does the garbage in the data file, or else to half of the file. But all that a
	// bucket gets between two checkpoints takes 4 KiB at least, until its time is near or most of it is
	// deleted: a Buffer of a MiB, and a few records that are deleted and added again for times in all of
	// the next ten years (500 buckets), take a hundred times their size. 0 means DefaultBuffer.
	Buffer int64

	// Commit is the delay after which the log is synced: a power failure loses the changes of
	// that time. 0 means DefaultCommit. Negative means that only Sync and Close sync the log.
	Commit time.Duration

	test testOptions // zero means none
}

// testOptions make everything small and deterministic.
type testOptions struct {
	shape   calendar.Shape
	page    int          // bytes of a page of the buffers
	pending int          // bytes of the file of that name
	writers int          // extents that are written at the same time
	work    func(*Store) // does the background work, in place of goroutines
}

// maxBuffer bounds Options.Buffer to a TiB, so that numbers of pages fit into 32 bits.
const maxBuffer = 1 << 40

func (o Options) withDefaults() Options {
	if o.Merge == nil {
		o.Merge = func(_ string, _, message []byte) []byte { return message }
	}
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	if o.Commit == 0 {
		o.Commit = DefaultCommit
	}
	if o.test.shape == (calendar.Shape{}) {
		o.test.shape = calendar.Default
	}
	if o.test.page == 0 {
		o.test.page = 4 << 10
	}
	if o.test.pending == 0 {
		o.test.pending = wal.PendingSize
	}
	if o.test.writers == 0 {
		o.test.writers = writers
	}
	// With less than eight pages, every flush would be a tiny write.
	o.Buffer = min(max(o.Buffer, 8*int64(o.test.page)), maxBuffer)
	return o
}

// adopt returns the options for an existing store.
func (o Options) adopt(m *manifest.Manifest) (Options, error) {
	if o.Unit != 0 && o.Unit != m.Unit {
		return o, fmt.Errorf("%w: Options.Unit is %v, but the store has %v",
			ErrOptions, o.Unit, m.Unit)
	}
	o.Unit, o.test.shape = m.Unit, m.Shape
	return o, nil
}

// create returns the options for a new store.
func (o Options) create() (Options, error) {
	if o.Unit == 0 {
		o.Unit = DefaultUnit
	}
	if o.Unit < manifest.MinUnit {
		return o, fmt.Errorf("%w: Options.Unit is %v, the minimum is %v",
			ErrOptions, o.Unit, manifest.MinUnit)
	}
	if o.Start.IsZero() {
		o.Start = time.Now()
	}
	return o, nil
}

// Slots count nanoseconds in 64 bits. Times before 1678 and after 2262 stand for "never" and are
// clamped.
var (
	firstTime = time.Unix(-maxSeconds, 0)
	lastTime  = time.Unix(maxSeconds, 0)
)

const maxSeconds = math.MaxInt64 / 1_000_000_000

// slotOf returns the unit that contains a time, counted from 1970.
func slotOf(t time.Time, unit time.Duration) int64 {
	n := min(max(t.Unix(), -maxSeconds), maxSeconds) * 1_000_000_000
	if n > -maxSeconds*1_000_000_000 && n < maxSeconds*1_000_000_000 {
		n += int64(t.Nanosecond())
	}
	slot := n / int64(unit)
	if n%int64(unit) < 0 {
		slot--
	}
	return slot
}

// timeOf returns when a unit begins.
func timeOf(slot int64, unit time.Duration) time.Time {
	switch {
	case slot < -maxSeconds*1_000_000_000/int64(unit):
		return firstTime
	case slot > maxSeconds*1_000_000_000/int64(unit):
		return lastTime
	}
	return time.Unix(0, slot*int64(unit))
}
