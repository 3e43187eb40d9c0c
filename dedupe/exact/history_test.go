package exact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzHistory plays one history on Sets of several kinds: what is added, when it is merged, trimmed
// and walked, when the Set is closed and opened again, when a step of the disk fails and when the
// power does. All must show the same as the model, which knows what a merge has acknowledged.
//
// Each byte is an operation: the ones from opMerge on are listed below, others add a URL.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{1, 2, 1, opMerge, 3, 1, opReopen, 3, 4, opPower, 1, 4, opMerge, opTrim, 5, opFail, 6})
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
		for _, o := range []Options{{Memory: small}, {Memory: small, Wide: true}} {
			for _, cramped := range []bool{false, true} {
				p := newPlayer(t, o, cramped, uint64(len(history)))
				for _, op := range history[:min(len(history), 300)] {
					p.play(op)
				}
				p.merge()
				p.compare()
			}
		}
	})
}

const (
	opMerge  = 248 + iota
	opReopen // close and open
	opPower  // fails; what was not merged is added again
	opFail   // the next step of the disk, once
	opTrim
	opWalk
)

var errFull = errors.New("disk full")

// A player does to a Set what the model does to two lists.
type player struct {
	t       *testing.T
	options Options
	cramped bool
	random  *rand.Rand
	disk    *memDisk
	set     *Set
	known   []string // in the order of their first sight, as far as merges were acknowledged
	waiting []string // added since
	trimmed int
}

func newPlayer(t *testing.T, o Options, cramped bool, seed uint64) *player {
	p := &player{
		t: t, options: o, cramped: cramped, disk: newMemDisk(), random: rand.New(rand.NewPCG(seed, 0)),
	}
	p.open()
	return p
}

func (p *player) open() {
	set, err := open(p.disk, p.options)
	if err != nil {
		require.ErrorIs(p.t, err, errFull)
		set = mustOpen(p.t, p.disk, p.options)
	}
	p.set = set
	if p.cramped {
		shrink(p.set)
		p.set.segmentSize = 500
	}
}

func (p *player) play(op byte) {
	switch op {
	case opMerge:
		p.merge()
	case opReopen:
		if p.set.Close() != nil { // as after a crash
			p.open()
			p.addAgain()
			return
		}
		p.acknowledge()
		p.open()
	case opPower:
		p.disk = p.disk.crash(p.random)
		p.open()
		p.addAgain()
	case opFail:
		p.disk.failAt, p.disk.failure = p.disk.steps+1+p.random.IntN(12), errFull
	case opTrim:
		p.merge()
		p.trim()
	case opWalk:
		p.merge()
		p.compare()
	default:
		p.add(fmt.Sprint("https://a.test/", op))
	}
}

// add tries again after a failure, as no more than one is planned.
func (p *player) add(url string) {
	data := []byte("data of " + url)
	if err := p.set.Add(url, data); err != nil {
		require.ErrorIs(p.t, err, errFull)
		require.NoError(p.t, p.set.Add(url, data))
	}
	p.waiting = append(p.waiting, url)
}

// addAgain is what a caller does whose Set was lost. Merges by Add may have come through, and a
// trim that was refused, too.
func (p *player) addAgain() {
	p.trimmed = max(p.trimmed, int(p.set.disked.trimmed))
	again := p.waiting
	p.waiting = nil
	for _, url := range again {
		p.add(url)
	}
}

func (p *player) merge() {
	if err := p.set.Merge(); err != nil {
		require.ErrorIs(p.t, err, errFull)
		require.NoError(p.t, p.set.Merge())
	}
	p.acknowledge()
}

func (p *player) acknowledge() {
	for _, url := range p.waiting {
		if !slices.Contains(p.known, url) {
			p.known = append(p.known, url)
		}
	}
	p.waiting = nil
}

func (p *player) trim() {
	below := p.trimmed + p.random.IntN(len(p.known)-p.trimmed+1)
	if err := p.set.Trim(uint64(below)); err != nil {
		require.ErrorIs(p.t, err, errFull)
		require.NoError(p.t, p.set.Trim(uint64(below)))
	}
	p.trimmed = below
}

// compare walks through the entries that are left, and asks for one that is not.
func (p *player) compare() {
	want := p.known[p.trimmed:]
	var got []string
	for entry, err := range p.set.Entries(uint64(p.trimmed)) {
		require.NoError(p.t, err)
		require.EqualValues(p.t, p.trimmed+len(got), entry.Seq)
		require.Equal(p.t, "data of "+entry.URL, string(entry.Data))
		got = append(got, entry.URL)
	}
	require.True(p.t, slices.Equal(want, got), "want %q, got %q", want, got)
	if p.trimmed > 0 {
		for _, err := range p.set.Entries(uint64(p.trimmed - 1)) {
			require.ErrorIs(p.t, err, ErrTrimmed)
		}
	}
	require.EqualValues(p.t, len(p.known), p.set.Stats().URLs)
}
