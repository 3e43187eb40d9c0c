package exact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// FuzzHistory plays one history on several kinds of Sets: URLs are added, deferred, merged, synced,
// trimmed and listed; the Set is closed and reopened; the process is killed, disk operations fail,
// and the power fails. All must agree with a model, which is two lists.
//
// Each byte is an operation: those from opMerge on are listed below, all others add or defer a URL.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{1, 2, 1, opMerge, 3, 1, opReopen, 3, 4, opPower, 1, 4, opSync, opTrim, 5, opFail, 6, opKill})
	random := rand.New(rand.NewPCG(1, 0))
	for range 20 {
		history := make([]byte, random.IntN(300))
		for i := range history {
			history[i] = byte(random.IntN(opMerge))
			if random.IntN(12) == 0 {
				history[i] = byte(opMerge + random.IntN(256-opMerge))
			}
		}
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, history []byte) {
		for _, o := range []Options{{Memory: tiny}, {Memory: small}} {
			p := &player{
				t: t, options: o, fs: vfs.NewMem(), random: rand.New(rand.NewPCG(uint64(len(history)), 0)),
			}
			p.open()
			for _, op := range history[:min(len(history), 300)] {
				p.play(op)
			}
			p.do(func() error { return p.set.Merge() })
			p.compare()
		}
	})
}

const (
	opMerge = 240 + iota
	opSync
	opReopen // close and open
	opKill   // open without a close
	opPower  // a power failure
	opFail   // one of the next disk operations fails
	opTrim
	opWalk
	opFail2 // as opFail, to make it more frequent
	opFail3
	opKill2
	opPower2
)

// A player applies operations to a Set and to the model, two lists.
type player struct {
	t       *testing.T
	options Options
	random  *rand.Rand
	fs      *vfs.Mem
	set     *Set
	known   []string // entries, in order
	waiting []string // deferred
	synced  int      // entries known to be durable
	trimmed int
}

func (p *player) open() {
	set, err := open(p.fs, p.options)
	if err != nil {
		require.ErrorIs(p.t, err, errFull)
		set = mustOpen(p.t, p.fs, p.options)
	}
	p.set = set
	p.set.stepPages = 1
	p.set.segmentSize = 500
}

func (p *player) play(op byte) {
	switch op {
	case opMerge:
		p.do(func() error { return p.set.Merge() })
		p.synced = len(p.known)
	case opSync:
		p.do(func() error { return p.set.Sync() })
		p.synced = len(p.known)
	case opReopen:
		if p.set.Close() == nil {
			p.catchUp()
			require.Empty(p.t, p.waiting)
			p.synced = len(p.known)
		}
		p.reopen()
	case opKill, opKill2:
		kill(p.t, p.set)
		p.reopen()
	case opPower, opPower2:
		p.fs = p.fs.Crash(p.random)
		p.reopen()
	case opFail, opFail2, opFail3:
		p.fs.FailAt(p.fs.Steps()+1+p.random.IntN(14), errFull)
	case opTrim:
		below := p.trimmed + p.random.IntN(len(p.known)-p.trimmed+1)
		p.do(func() error { return p.set.Trim(uint64(below)) })
		p.trimmed = below
	case opWalk:
		p.compare()
	default:
		p.add(fmt.Sprint("https://a.test/", op/3), op%3 == 0)
	}
}

func (p *player) add(url string, deferred bool) {
	if deferred {
		p.do(func() error { return p.set.Defer(url, []byte("data of "+url)) })
		p.waiting = append(p.waiting, url)
		return
	}
	p.do(func() error {
		added, err := p.set.Add(url)
		if err == nil {
			require.Equal(p.t, !slices.Contains(p.known, url), added, url)
		}
		if added {
			p.known = append(p.known, url)
		}
		return err
	})
}

// do calls try, and retries it once after an error, since at most one fault is planned. After some
// faults the Set has to be reopened; deferred URLs are then lost.
func (p *player) do(try func() error) {
	err := try()
	p.catchUp()
	if err == nil {
		return
	}
	require.ErrorIs(p.t, err, errFull)
	if errors.Is(err, ErrFailed) {
		require.Error(p.t, p.set.Close())
		p.reopen()
	}
	require.NoError(p.t, try())
	p.catchUp()
}

// catchUp updates the model after merges, including those that failed halfway.
func (p *player) catchUp() {
	for uint64(len(p.known)) < p.set.Stats().URLs {
		require.NotEmpty(p.t, p.waiting)
		if !slices.Contains(p.known, p.waiting[0]) {
			p.known = append(p.known, p.waiting[0])
		}
		p.waiting = p.waiting[1:]
	}
	if p.set.Stats().Deferred == 0 {
		p.waiting = nil
	}
}

// reopen opens the Set and finds the earlier entries, or as many as the disk has kept.
func (p *player) reopen() {
	p.open()
	found := int(p.set.Stats().URLs)
	require.GreaterOrEqual(p.t, found, p.synced)
	if len(p.known) < found { // entries of a merge that failed
		p.known = entriesFromAny(p.t, p.set, p.trimmed, p.known)
	}
	lost, again := p.known[found:], p.waiting
	p.known, p.waiting = p.known[:found:found], nil
	p.trimmed = int(p.set.Stats().Trimmed)
	p.compare()
	p.synced = min(p.synced, found)
	for _, url := range append(slices.Clone(lost), again...) {
		p.add(url, false)
	}
}

// entriesFromAny returns the known URLs, followed by the entries that the Set has after them.
func entriesFromAny(t *testing.T, s *Set, trimmed int, known []string) []string {
	from := max(len(known), trimmed)
	return append(slices.Clone(known), entriesFrom(t, s, from)...)
}

// compare reads the remaining entries, and tries to read a trimmed one.
func (p *player) compare() {
	want, got := p.known[p.trimmed:], entriesFrom(p.t, p.set, p.trimmed)
	require.True(p.t, slices.Equal(want, got), "want %q, got %q", want, got)
	if p.trimmed > 0 {
		for _, err := range p.set.Entries(uint64(p.trimmed - 1)) {
			require.ErrorIs(p.t, err, ErrTrimmed)
		}
	}
	require.EqualValues(p.t, len(p.known), p.set.Stats().URLs)
}
