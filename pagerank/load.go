package pagerank

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// The errors of [Read] and [ReadURLs], besides those of the reader, and of Stats.
var (
	ErrCorrupt = durable.ErrCorrupt // every [CorruptError] unwraps to it
	ErrVersion = durable.ErrVersion // sound, but written by another version of this package

	// ErrOptions reports a file that was saved with another Damping or Host than Read was given, or
	// with DL1 instead of another Cutoff: the scores would be meaningless. It also reports one with
	// ids beyond Limit. Read it with the options it was saved with. AR may read what Push has saved:
	// ids in the queue keep the places that Push gave them until their keys change.
	ErrOptions = errors.New("pagerank: saved with other options")

	// ErrFull reports in Stats.Err that no more links can be kept, or read. Pages fetched from then on pass
	// on their scores as with DL1.
	ErrFull = errors.New("pagerank: more than 8 GiB of links")
)

// A CorruptError says where a saved Frontier is damaged. Nothing is loaded: start a new crawl, or
// load an older file. It unwraps to [ErrCorrupt].
type CorruptError struct {
	File   string // "" if the reader has no method Name, as an *os.File has
	Offset int64  // in bytes from where Read started
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string { return (*durable.CorruptError)(e).Error() }

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// Read reads what WriteTo has written, and not a byte more. It calls Options.Host again for each
// id. No host is busy: call NextReady again for those that are. Its memory is at most some hundred
// times the size of the input, whatever that contains. A damaged frontier is rejected with a
// [CorruptError], one of another version with [ErrVersion], one of other options with [ErrOptions].
func Read(r io.Reader, opts Options) (*Frontier, error) {
	f := New(opts)
	d := &decoder{durable.NewStreamReader(r, magic, oldMagic)}
	f.read(d)
	if err := d.end(); err != nil {
		return nil, err
	}
	return f, nil
}

// read reads the nodes and their data into an empty frontier.
func (f *Frontier) read(d *decoder) (n uint64) {
	// The checksums tell damage, not who has written it: so nothing is trusted. After an error the
	// decoder returns zeros, and all loops check for it.
	n = f.readHead(d)
	for id := uint64(0); id < n && d.Err == nil; id++ {
		f.readNode(d, uint32(id), n)
	}
	f.readQueue(d)
	if d.Err == nil {
		f.tally()
	}
	return n
}

// A decoder reads what WriteTo writes.
type decoder struct{ *durable.StreamReader }

// count reads the number of ids or URLs, which must not be beyond Options.Limit.
func (d *decoder) count(limit int) uint64 {
	n := d.Uvarint(maxIDs, "ids")
	if n > uint64(limit) {
		d.Err = fmt.Errorf("%w: %d ids, and the limit is %d", ErrOptions, n, limit)
		return 0
	}
	return n
}

// Bounds of the numbers in a file. They are far beyond those of any crawl, and keep all sums finite.
const (
	mostScore  = 1e60
	mostCash   = 1 << 33 // a seed's for each id
	mostCredit = 1 << 60
)

// score reads a score, or a sum of some.
func (d *decoder) score() float64 {
	v := d.Float()
	if math.Abs(v) > mostScore {
		d.Fail("a score of %v", v)
		return 0
	}
	return v
}

func (d *decoder) end() error {
	if err := d.End(); err != nil {
		return fmt.Errorf("pagerank: read: %w", err)
	}
	return nil
}

func (f *Frontier) readHead(d *decoder) (n uint64) {
	if flags := d.Byte(); flags != f.flags() && d.Err == nil {
		d.Err = fmt.Errorf("%w: flags %03b, now %03b", ErrOptions, flags, f.flags())
	}
	if damping := d.Float(); damping != f.opts.Damping && d.Err == nil {
		d.Err = fmt.Errorf("%w: damping %v, now %v", ErrOptions, damping, f.opts.Damping)
	}
	f.sums.put = d.score()
	zigzag := d.Uvarint(2*mostCredit, "credit")
	f.sums.credit = int64(zigzag>>1) ^ -int64(zigzag&1)
	f.sums.updates = d.Uvarint(math.MaxInt64, "updates")
	return d.count(f.opts.Limit)
}

// readNode reads the next node.
func (f *Frontier) readNode(d *decoder, id uint32, all uint64) {
	state := d.Byte()
	// One by one, not all at once: in a corrupt file, the number of nodes may be anything.
	f.cover(uint64(id) + 1)
	n := &f.nodes[id]
	if state == 0 {
		return
	}
	isNew := state&savedNewcomer != 0
	if state &^= savedNewcomer; !legal(state, f.keeps()) || isNew && state&queued == 0 {
		d.Fail("node %d has state %#x", id, state)
		return
	}
	n.score = d.score()
	if isNew {
		n.next = always
	} else if state&queued != 0 {
		b := d.Uint16()
		if b >= buckets {
			d.Fail("node %d is in bucket %d", id, b)
			return
		}
		n.next = lowest + b + 1
	}
	f.meet(id) // calls Host: the file has no hosts, since the caller numbers them
	n.state = state
	if f.blends() {
		cash := d.Float32()
		if cash < 0 || cash > mostCash {
			d.Fail("node %d has cash %v", id, cash)
			return
		}
		f.hosts.cash[id] = cash
	}
	if f.keeps() && state&linked != 0 {
		f.passed[id] = d.score()
	}
	if state&kept != 0 {
		f.readLinks(d, id, all)
	}
}

// legal reports whether a node's state is possible.
func legal(state uint8, links bool) bool {
	return state&^savedStates == 0 && state&known != 0 && state&(queued|fetched) != queued|fetched &&
		(state&linked == 0 || state&fetched != 0) &&
		(state&kept == 0 || state&linked != 0 && links)
}

func (f *Frontier) readLinks(d *decoder, id uint32, all uint64) {
	f.targets = f.targets[:0]
	count := d.Uvarint(all, "links")
	next := uint64(0)
	for range count {
		to := next + d.Uvarint(all, "gap")
		if to >= all || uint32(to) == id {
			d.Fail("node %d links to %d of %d", id, to, all)
		}
		if d.Err != nil {
			return
		}
		f.targets = append(f.targets, uint32(to))
		next = to + 1
	}
	if len(f.targets) == 0 {
		d.Fail("node %d has no links", id)
		return
	}
	// In the order of ids, lists may take more room than in that of the fetches, in which they had enough.
	if f.places[id] = f.links.put(id, f.targets); f.places[id] == 0 {
		f.nodes[id].state &^= kept
	}
}

// claim reads an id that must be queued and must not have been read before.
func (f *Frontier) claim(d *decoder) (id uint32) {
	id = uint32(d.Uvarint(uint64(len(f.nodes)), "id"))
	if int(id) >= len(f.nodes) || f.nodes[id].state&(queued|marked) != queued {
		d.Fail("id %d is not where it should be", id)
		return 0
	}
	f.nodes[id].state |= marked // until all are read
	return id
}

func (f *Frontier) readQueue(d *decoder) {
	bucket := uint16(0)
	for n := d.Uvarint(uint64(len(f.nodes)), "queued"); n > 0 && d.Err == nil; n-- {
		id := f.claim(d)
		if d.Err != nil {
			return
		}
		// Reading in the order of the buckets makes another WriteTo give the same file.
		node := &f.nodes[id]
		if b := node.bucket(); b < bucket || node.next == always {
			d.Fail("the queue is out of order at id %d", id)
			return
		}
		bucket = node.bucket()
		f.queue.add(f.nodes, lowest+bucket, id)
	}
	for n := d.Uvarint(uint64(len(f.nodes)), "newcomers"); n > 0 && d.Err == nil; n-- {
		id := f.claim(d)
		if d.Err == nil && f.nodes[id].next != always {
			d.Fail("id %d is not a newcomer", id)
		}
		f.queue.live++
		f.newcomers = append(f.newcomers, id)
	}
	for id := range f.nodes {
		n := &f.nodes[id]
		if n.state&(queued|marked) == queued {
			d.Fail("id %d is nowhere", id)
		}
		n.state &^= marked
	}
}

// tally computes what the file does not contain.
func (f *Frontier) tally() {
	// Recomputed sums differ from incremental ones by rounding errors.
	all := 0.0
	for id := range f.nodes {
		n := &f.nodes[id]
		all += n.score
		if n.state&fetched == 0 {
			continue
		}
		f.fetched++
		f.sums.held += n.score
		f.hosts.enter(n.host)
		switch {
		case n.state&linked == 0:
			f.sums.dangling += n.score
			continue
		case f.keeps():
			f.sums.replace(0, n.score-f.passed[id])
		}
	}
	f.calmAll()
	f.sums.total = all - f.sums.put
	if !f.keeps() {
		// All fetched pages with links have passed on their score of that time, so the total is
		// known.
		f.sums.open = max(0, f.sums.held-f.sums.dangling-f.sums.total/f.sums.damping)
	}
	if f.opts.Cutoff == Push {
		f.step = age(f.fetched)
		f.stretch = stretch(f.fetched)
	}
}
