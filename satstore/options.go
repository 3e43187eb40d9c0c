package satstore

import (
	"math"
	"math/bits"
	"time"
)

// What zero Options stand for, and what bounds them.
const (
	DefaultUnit    = time.Hour
	DefaultHorizon = 9600 // slots: 400 days of hours
	DefaultRadix   = 64
	DefaultBuffer  = 64 << 20
	DefaultPage    = 4 << 10
	DefaultCommit  = 10 * time.Millisecond

	MaxID      = 64 << 10 // bytes of an id
	MaxData    = 1 << 20  // bytes of a record's data, or of a message
	maxBuckets = 60_000   // so that 16 bits number them, those of passed slots included
	maxHorizon = 1 << 40  // slots
	maxPages   = 1 << 28  // in buffers: a TiB of those of 4 KiB, and sums of them fit into 32 bits
)

// A Mode says how much a store keeps beside the records.
type Mode int

// Full keeps an index of ids. Basic and Naive are for those who do without it, and for comparison.
const (
	Full  Mode = iota // ids are unique; Update, Get and Delete work (SAT in the paper)
	Basic             // no index: every Add adds, nothing is found by id (SAT/Basic)
	Naive             // Full, with a buffer of one page for each bucket (SAT/Naive)
)

// A Flush says which buffers are written when memory is full.
type Flush int

// FlushAll writes all buffers but those of the nearest slots in one sequential pass, while others are
// filled. FlushLarge writes those of more than 16 pages, else of more than 4, else of more than 1, as
// the paper does, and lets everybody wait.
const (
	FlushAll Flush = iota
	FlushLarge
)

// A Compression is applied to blocks of 64 KiB.
type Compression int

// None is the fastest unless the disk is slower than about 500 MB/s.
const (
	None Compression = iota
	S2
	Zstd
)

// Options size a [Store]. The zero Options keep slots of an hour for 400 days in 64 MiB of buffers.
// Unit, Horizon, Radix, Mode and Start count when a store is created. Later, Unit, Horizon, Radix
// and Mode have to be the same.
type Options struct {
	Unit    time.Duration // of a slot, at least a microsecond; 0 means DefaultUnit
	Horizon int64         // slots ahead that have buckets; 0 means DefaultHorizon

	// Radix is how many buckets a bucket of coarser slots is split into when it comes near, up to
	// 512. 0 means DefaultRadix, negative means that each slot has a bucket, for a Horizon of up to
	// 50,000.
	Radix int

	Start int64 // the first slot; 0 means the one of the time at creation
	Mode  Mode  // 0 means Full

	// Merge returns a record's data after a message that [Store.Update] left for it. It may change
	// data in place, must not keep either slice, and runs under no lock, when the record is due or
	// looked at. nil means that the message becomes the data.
	Merge func(id, data, message []byte) []byte

	Buffer int64 // bytes of memory for records on their way to the disk; 0 means DefaultBuffer
	Page   int   // bytes by which a buffer grows; 0 means DefaultPage
	Flush  Flush // 0 means FlushAll

	// Commit is how long a change may wait for others before the log is synced: what a power
	// failure may cost. 0 means DefaultCommit, negative means that only Sync and Close do so.
	Commit time.Duration

	// NoLog writes no log. Any crash then takes the store back to the last checkpoint: Sync, Close,
	// or when four times Buffer had been written. false means that a log is written.
	NoLog bool

	// NoSync leaves it to the operating system when to write. A power failure may then cost the
	// store; a crash of the process costs nothing. false means that files are synced.
	NoSync bool

	Compression Compression // of records and messages; 0 means None

	// These are for tests.
	writers int  // of extents, at once; 0 means defaultWriters
	pending int  // bytes of the file of that name; 0 means pendingSize
	inline  bool // buffers are written while the caller waits; false means in the background

	// exact lets Start be 0, for Repair, whose store may be in that slot; false means what Start says.
	exact bool
}

func (o Options) withDefaults() Options {
	if o.Unit <= 0 {
		o.Unit = DefaultUnit
	}
	o.Unit = max(o.Unit, time.Microsecond) // or the present would be beyond maxSlot
	if o.Horizon <= 0 {
		o.Horizon = DefaultHorizon
	}
	o.Horizon = min(o.Horizon, maxHorizon)
	switch {
	case o.Radix == 0:
		o.Radix = DefaultRadix
	case o.Radix < 0:
		o.Radix = -1
	default:
		o.Radix = min(max(o.Radix, 2), maxFlat)
	}
	if o.Merge == nil {
		o.Merge = func(_, _, message []byte) []byte { return message }
	}
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	if o.Page <= 0 {
		o.Page = DefaultPage
	}
	o.Page = min(max(o.Page, 512), 1<<20)
	// Less, and nothing would be worth writing.
	o.Buffer = min(max(o.Buffer, 8*int64(o.Page)), maxPages*int64(o.Page))
	if o.Commit == 0 {
		o.Commit = DefaultCommit
	}
	if o.pending == 0 {
		o.pending = pendingSize
	}
	if o.Start == 0 && !o.exact {
		o.Start = slotOf(time.Now(), o.Unit)
	}
	o.Start = min(max(o.Start, -maxSlot), maxSlot-maxHorizon) // slots have to follow it
	return o
}

// known reports whether the choices are among those there are. Others cannot stand for anything: a
// block of an unknown compression could never be read again.
func (o Options) known() bool {
	return o.Mode >= Full && o.Mode <= Naive && o.Flush >= FlushAll && o.Flush <= FlushLarge &&
		o.Compression >= None && o.Compression <= Zstd
}

// agree reports whether what counts at creation is the same.
func (o Options) agree(with Options) bool {
	return o.Unit == with.Unit && o.Horizon == with.Horizon && o.Radix == with.Radix &&
		o.Mode == with.Mode
}

// indexed reports whether ids are indexed.
func (o Options) indexed() bool { return o.Mode != Basic }

// slotOf numbers units from 1970 on; earlier times have negative slots. A unit with a fraction of a
// second needs nanoseconds, of which 64 bits hold three centuries. Times beyond are those at which
// something is never to be visited, or was never visited: they must not come around at the other
// end, where the one would be due at once.
func slotOf(t time.Time, unit time.Duration) int64 {
	seconds, nanos := t.Unix(), int64(t.Nanosecond())
	switch {
	case unit%time.Second == 0:
		return min(max(floorDiv(seconds, int64(unit/time.Second)), -maxSlot), maxSlot)
	case seconds > maxNanoSeconds:
		return maxSlot
	case seconds < -maxNanoSeconds:
		return -maxSlot
	}
	return floorDiv(seconds*1e9+nanos, int64(unit))
}

// startOf is when a slot begins. Slots and units are bounded, but their product is not: what no
// time.Time can hold is at one of its ends, as slotOf has it.
func startOf(slot int64, unit time.Duration) time.Time {
	n, sign := uint64(slot), int64(1)
	if slot < 0 {
		n, sign = -n, -1
	}
	high, low := bits.Mul64(n, uint64(unit))
	if high >= uint64(time.Second) { // or the quotient would not fit
		return time.Unix(sign*maxSeconds, 0)
	}
	seconds, nanos := bits.Div64(high, low, uint64(time.Second))
	if seconds > maxSeconds {
		return time.Unix(sign*maxSeconds, 0)
	}
	return time.Unix(sign*int64(seconds), sign*int64(nanos))
}

// maxSeconds bounds times: a time.Time counts from the year 1, which adds to the seconds of Unix.
const maxSeconds = 1 << 62

// maxNanoSeconds is how many seconds surely have a number of nanoseconds.
const maxNanoSeconds = math.MaxInt64/1_000_000_000 - 1

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
