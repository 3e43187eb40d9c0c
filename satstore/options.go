package satstore

import (
	"fmt"
	"math"
	"time"

	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// What zero Options stand for, and how large a record may be.
const (
	DefaultUnit   = time.Hour
	DefaultBuffer = 64 << 20
	DefaultCommit = 10 * time.Millisecond

	MaxID   = wal.MaxID   // bytes of an id
	MaxData = wal.MaxData // bytes of a record's data, or of a message
)

// Options size a [Store]. The zero Options open what is there, or make a store of hours.
type Options struct {
	// Unit is how exact times are: a record is due from the beginning of the unit in which its
	// time lies. It is fixed when a store is made, and at least a millisecond. 0 means that of
	// the store, DefaultUnit for a new one.
	Unit time.Duration

	// Start is the time at which a new store begins: what is due before is due at once. The zero
	// Time means the present.
	Start time.Time

	// Merge returns a record's data after a message that [Store.Update] left for it. It may change
	// data in place, must not keep either slice, and runs under no lock, when the record is handed
	// out or looked at. nil means that the message becomes the data.
	Merge func(id string, data, message []byte) []byte

	// Buffer is the memory for records on their way to the disk, in bytes. The logs are about as
	// long. 0 means DefaultBuffer.
	Buffer int64

	// Commit is how long a change may wait for others before the log is synced: what a power
	// failure may cost. 0 means DefaultCommit, negative means that only Sync and Close do so.
	Commit time.Duration

	test testOptions // zero means what is best
}

// testOptions make everything small and in order.
type testOptions struct {
	shape   calendar.Shape
	page    int  // bytes of a page of the buffers
	pending int  // bytes of the file of that name
	inline  bool // what is done in the background is done by whoever asks for it
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
	// With less, nothing would be worth writing.
	o.Buffer = min(max(o.Buffer, 8*int64(o.test.page)), maxBuffer)
	return o
}

// adopt returns the options for a store that is there.
func (o Options) adopt(m *manifest.Manifest) (Options, error) {
	if o.Unit != 0 && o.Unit != m.Unit {
		return o, fmt.Errorf("%w: Options.Unit is %v, that of the store is %v", ErrOptions, o.Unit, m.Unit)
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
		return o, fmt.Errorf("%w: Options.Unit is %v, the least is %v", ErrOptions, o.Unit, manifest.MinUnit)
	}
	if o.Start.IsZero() {
		o.Start = time.Now()
	}
	return o, nil
}

// Times have 64 bits of nanoseconds. Those before 1678 and after 2262, at which something was
// never visited or never will be, count as the first and the last one.
var (
	firstTime = time.Unix(-maxSeconds, 0)
	lastTime  = time.Unix(maxSeconds, 0)
)

const maxSeconds = math.MaxInt64 / 1_000_000_000

// slotOf returns in which unit, counted from 1970 on, a time lies.
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
