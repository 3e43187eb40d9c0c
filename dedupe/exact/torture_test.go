package exact

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

var torture = flag.Duration("torture", 0, "how long to torture Sets, with random seeds")

// TestTorture plays random histories of a Set and of a model, a list of URLs. Each history is played
// without faults, and then again with faults from some of its steps on: the power fails, or the disk
// does once, twice in turn, or after a pause. What was acknowledged must always be there: after a
// power failure what was synced, and at all other times everything. Each URL is one entry, and
// entries of deferred URLs are in the order in which these were deferred.
func TestTorture(t *testing.T) {
	if *torture > 0 {
		for end := time.Now().Add(*torture); time.Now().Before(end) && !t.Failed(); {
			tortureAll(t, rand.Uint64(), 1)
		}
		return
	}
	for seed := range uint64(10) {
		tortureAll(t, seed, 31)
	}
}

var (
	errTornFull = fmt.Errorf("planned: %w", syscall.ENOSPC)
	errTornDisk = fmt.Errorf("planned: %w", syscall.EIO)
)

// tortureAll plays a history with faults at each step, or at every few.
func tortureAll(t *testing.T, seed uint64, every int) {
	steps := tortureOne(t, seed, 0)
	for at := 1 + int(seed)%every; at <= steps && !t.Failed(); at += every {
		for _, faults := range [][]error{
			{vfs.ErrPower}, {errTornDisk}, {errTornFull, errTornDisk},
			{errTornDisk, nil, vfs.ErrPower}, {errTornFull, nil, nil, nil, errTornDisk},
		} {
			tortureOne(t, seed, at, faults...)
		}
	}
}

// A victim is a Set and what is known about it.
type victim struct {
	t       *testing.T
	random  *rand.Rand
	options Options
	fs      *vfs.Mem
	set     *Set
	known   []string        // acknowledged entries
	waiting []string        // deferred, in order
	tried   map[string]bool // URLs of calls that failed, which may have come to disk
	synced  int             // entries that survive a power failure
	trimmed [2]int          // for certain, and perhaps
	down    bool            // the power has failed
	depth   int             // of calls between the steps of merges
}

// tortureOne returns the number of steps of the history of a seed.
func tortureOne(t *testing.T, seed uint64, at int, faults ...error) (steps int) {
	random := rand.New(rand.NewPCG(seed, 2))
	v := &victim{
		t: t, random: random, fs: vfs.NewMem(), tried: map[string]bool{},
		options: Options{Memory: []int64{tiny, 3 << 10, small}[random.IntN(3)]},
	}
	ok := false
	defer func() {
		if !ok || t.Failed() {
			t.Errorf("seed %d, %v at step %d", seed, faults, at)
		}
	}()
	v.open()
	v.fs.FailAt(at, faults...)
	for range 60 + random.IntN(60) {
		v.turn()
	}
	steps = v.fs.Steps()
	v.fs.FailAt(0)
	v.crash()
	v.damage()
	for range 10 {
		v.turn()
	}
	v.check()
	ok = true
	return steps
}

func (v *victim) open() {
	set, err := open(v.fs, v.options)
	for try := 0; err != nil && try < 5 && !v.down; try++ {
		if v.failed(err); !v.down {
			set, err = open(v.fs, v.options)
		}
	}
	if v.down {
		v.fs = v.fs.Crash(v.random)
		v.down = false
		set, err = open(v.fs, v.options)
	}
	require.NoError(v.t, err)
	set.stepPages = 1 + v.random.Int64N(2)
	set.segmentSize = 200 + v.random.Int64N(1000)
	set.between = v.interrupt
	v.set = set
}

// failed reports whether a call failed, which only planned faults may cause.
func (v *victim) failed(err error) bool {
	if err == nil {
		return false
	}
	if !errors.Is(err, errTornFull) && !errors.Is(err, errTornDisk) {
		require.ErrorIs(v.t, err, vfs.ErrPower)
	}
	v.down = v.down || errors.Is(err, vfs.ErrPower)
	return true
}

// interrupt does something between two steps of a merge.
func (v *victim) interrupt() {
	if v.depth > 0 || v.set.closing || v.set.failed != nil || v.random.IntN(4) > 0 {
		return
	}
	v.depth++
	defer func() { v.depth-- }()
	switch v.random.IntN(8) {
	case 0:
		v.sync()
	case 1, 2, 3:
		v.put()
	case 4:
		v.trim()
	default:
		v.add()
	}
}

// turn does something.
func (v *victim) turn() {
	switch n := v.random.IntN(40); {
	case n < 16:
		for range v.random.IntN(8) {
			v.add()
		}
	case n < 26:
		for range v.random.IntN(20) {
			v.put()
		}
	case n < 30:
		v.sync()
	case n < 34:
		v.merge()
	case n < 36:
		v.trim()
	case n == 36:
		v.close()
	case n == 37:
		v.kill()
	case n == 38:
		v.check()
	default:
		v.crash()
	}
}

func (v *victim) url() string { return page(v.random.IntN(400)) }

// settle learns what a call has added, and reopens a Set that is unusable.
func (v *victim) settle(err error) {
	bad := v.failed(err)
	v.catchUp()
	if v.depth > 0 {
		return // the outer call ends in the same way
	}
	if v.down {
		v.crash()
	} else if bad && errors.Is(err, ErrFailed) {
		v.kill()
	}
}

func (v *victim) add() {
	url := v.url()
	v.catchUp()
	added, err := v.set.Add(url)
	if err != nil {
		require.False(v.t, added)
		v.tried[url] = true
	}
	// What this call has done for a merge comes first.
	if added {
		require.NotContains(v.t, v.known, url)
		got := v.entries()
		require.Equal(v.t, url, got[len(got)-1])
		v.merged(got[:len(got)-1])
		v.known = append(v.known, url)
	}
	v.settle(err)
}

func (v *victim) put() {
	url := v.url()
	err := v.set.Defer(url, []byte("data of "+url))
	if v.catchUp(); err == nil && !slices.Contains(v.known, url) {
		v.waiting = append(v.waiting, url)
	}
	v.settle(err)
}

func (v *victim) sync() {
	n := len(v.known)
	err := v.set.Sync()
	if err == nil {
		v.synced = max(v.synced, n)
	}
	v.settle(err)
}

func (v *victim) merge() {
	deferred := len(v.waiting)
	last := ""
	if deferred > 0 {
		last = v.waiting[deferred-1]
	}
	err := v.set.Merge()
	if v.catchUp(); err == nil {
		require.True(v.t, last == "" || slices.Contains(v.known, last))
		v.synced = max(v.synced, len(v.known))
	}
	v.settle(err)
}

func (v *victim) trim() {
	v.catchUp()
	below := v.random.IntN(len(v.known) + 1)
	err := v.set.Trim(uint64(below))
	v.trimmed[1] = max(v.trimmed[1], below)
	if err == nil {
		v.trimmed[0] = max(v.trimmed[0], below)
	}
	v.settle(err)
}

func (v *victim) close() {
	err := v.set.Close()
	if v.failed(err); v.down {
		v.crash()
		return
	}
	deferred := len(v.waiting)
	v.reopen(len(v.known))
	if err == nil {
		v.synced = len(v.known)
		require.True(v.t, deferred == 0 || slices.Contains(v.known, v.waiting[deferred-1]))
	}
	v.forget()
}

// kill ends the process.
func (v *victim) kill() {
	kill(v.t, v.set)
	v.reopen(len(v.known))
	v.forget()
}

// crash cuts the power. Everything that was not synced may be lost.
func (v *victim) crash() {
	v.fs = v.fs.Crash(v.random)
	v.down = false
	v.reopen(v.synced)
	v.forget()
}

// forget says that nothing is deferred any more. A write of a merge that failed may have been in
// flight, and come to disk.
func (v *victim) forget() {
	for _, url := range v.waiting {
		v.tried[url] = true
	}
	v.waiting = nil
}

// reopen requires that at least that many of the known entries are found. There may be others: those
// of calls that failed, or of a merge that was not complete.
func (v *victim) reopen(least int) {
	before := v.fs
	v.open()
	if v.fs != before { // the power failed meanwhile
		least = v.synced
	}
	stats := v.set.Stats()
	found := int(stats.URLs)
	require.GreaterOrEqual(v.t, found, least)
	require.GreaterOrEqual(v.t, int(stats.Trimmed), v.trimmed[0])
	require.LessOrEqual(v.t, int(stats.Trimmed), v.trimmed[1])
	v.trimmed = [2]int{int(stats.Trimmed), int(stats.Trimmed)}
	got := entriesFrom(v.t, v.set, v.trimmed[0])
	require.Equal(v.t, found, v.trimmed[0]+len(got))
	same := min(found, len(v.known))
	require.True(v.t, slices.Equal(v.known[v.trimmed[0]:same], got[:same-v.trimmed[0]]))
	for _, url := range got[same-v.trimmed[0]:] {
		require.True(v.t, v.tried[url] || slices.Contains(v.waiting, url), url)
		require.NotContains(v.t, v.known[:same], url)
	}
	v.known = append(v.known[:same:same], got[same-v.trimmed[0]:]...)
	v.synced = min(v.synced, found)
}

// entries returns those that the model does not know yet. An unusable Set does not tell.
func (v *victim) entries() []string {
	if v.set.failed != nil {
		return nil
	}
	return entriesFrom(v.t, v.set, len(v.known))
}

// catchUp takes the entries of merges.
func (v *victim) catchUp() { v.merged(v.entries()) }

func (v *victim) merged(urls []string) {
	for _, url := range urls {
		require.NotContains(v.t, v.known, url)
		for v.waiting[0] != url {
			require.Contains(v.t, v.known, v.waiting[0], "was deferred earlier")
			v.waiting = v.waiting[1:]
		}
		v.known = append(v.known, url)
	}
}

// check adds all known URLs once more.
func (v *victim) check() {
	v.catchUp()
	for _, url := range slices.Clone(v.known) {
		added, err := v.set.Add(url)
		if v.catchUp(); err != nil {
			v.settle(err)
			return
		}
		require.False(v.t, added, url)
	}
	if v.set.Stats().Deferred == 0 {
		for _, url := range v.waiting {
			require.Contains(v.t, v.known, url)
		}
	}
}

// damage flips a bit of the closed Set. If that is found, it is damage, and no other error; if not,
// everything that was synced must be there.
func (v *victim) damage() {
	if err := v.set.Close(); v.failed(err) {
		return
	}
	v.reopen(len(v.known))
	v.forget()
	require.NoError(v.t, v.set.Close())
	names, err := v.fs.List()
	require.NoError(v.t, err)
	name := names[v.random.IntN(len(names))]
	if size := len(v.fs.Data(name)); size > 0 {
		whole := v.fs.Clone()
		v.fs.Flip(name, v.random.Int64N(int64(size)), v.random.IntN(8))
		if err := v.readAll(); err != nil {
			require.ErrorIs(v.t, err, ErrCorrupt)
			require.NotErrorIs(v.t, err, ErrVersion)
		}
		v.fs = whole
	}
	v.reopen(len(v.known))
}

// readAll compares all entries.
func (v *victim) readAll() error {
	set, err := open(v.fs, v.options)
	if err != nil {
		return err
	}
	at := v.trimmed[0]
	for entry, err := range set.Entries(uint64(at)) {
		if err != nil {
			return err
		}
		require.Equal(v.t, v.known[at], entry.URL)
		at++
	}
	require.Equal(v.t, len(v.known), at)
	return set.Close()
}
