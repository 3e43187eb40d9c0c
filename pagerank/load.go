package pagerank

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spinneret-go/spinneret/internal/durable"
)

var (
	// ErrCorrupt reports a file that WriteTo did not write. It is wrapped with the offset and the
	// reason. Nothing is loaded: start a new crawl, or load an older file.
	ErrCorrupt = durable.ErrCorrupt

	// ErrVersion reports a file of another version of WriteTo.
	ErrVersion = durable.ErrVersion

	// ErrOptions reports a file that was saved with another Damping, KeepLinks or Host than Read was
	// given. The scores would be meaningless. Read it with the options it was saved with.
	ErrOptions = errors.New("pagerank: saved with other options")

	// ErrFull reports in Stats.Err that no more links can be kept. Pages fetched from then on pass
	// on their scores as with DL1.
	ErrFull = errors.New("pagerank: more than 8 GiB of links")
)

// Read reads what WriteTo has written. It calls Options.Host again for each id. No host is busy:
// call NextReady again for those that are. Its memory is bounded by the size of the input, whatever
// that contains. Read buffers, and may read beyond the end of the frontier, unless r is a
// *bufio.Reader of 64 KiB or more.
func Read(r io.Reader, opts Options) (*Frontier, error) {
	f := New(opts)
	if _, err := f.read(newDecoder(r)); err != nil {
		return nil, err
	}
	return f, nil
}

// read reads n nodes and their data into an empty frontier.
func (f *Frontier) read(d *decoder) (n uint64, err error) {
	// The checksum is compared at the end, so that a file need not be read twice. Until then
	// nothing is trusted. After an error the decoder returns zeros, and all loops check for it.
	n = f.readHead(d)
	for id := uint64(0); id < n && d.err == nil; id++ {
		f.readNode(d, uint32(id), n)
	}
	f.readQueue(d)
	d.end()
	if d.err == nil {
		d.err = f.links.err
	}
	if d.err == nil {
		f.tally()
	}
	return n, d.err
}

// A decoder reads and computes the checksum. After an error it returns zeros.
type decoder struct {
	in  *bufio.Reader
	sum uint32
	at  int64 // bytes read
	buf [8]byte
	err error
}

func newDecoder(r io.Reader) *decoder {
	return &decoder{in: bufio.NewReaderSize(r, 1<<16)}
}

// fail records the first error and its offset.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("pagerank: %w: before byte %d: "+format, append([]any{ErrCorrupt, d.at}, args...)...)
	}
}

// bytes returns the next few bytes, at most 8, valid until the next call.
func (d *decoder) bytes(n int) []byte {
	d.read(d.buf[:n])
	return d.buf[:n]
}

// read fills b.
func (d *decoder) read(b []byte) {
	if d.err != nil {
		clear(b)
		return
	}
	n, err := io.ReadFull(d.in, b)
	d.at += int64(n)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		d.fail("it ends early")
		clear(b)
	case err != nil:
		d.err = fmt.Errorf("pagerank: read: %w", err)
		clear(b)
	}
	d.sum = durable.SumOn(d.sum, b)
}

// form reads the magic and the version, and their checksum. Versions before the current one had
// none, so an older version is believed unless its byte is all that is wrong.
func (d *decoder) form(magic string, version byte, of string) {
	head := [5]byte(d.bytes(5))
	found, sum := head[4], binary.LittleEndian.Uint32(d.bytes(4))
	right := sum == durable.Sum(head[:])
	head[4] = version
	ours := sum == durable.Sum(head[:])
	switch {
	case d.err != nil:
	case string(head[:4]) == magic && (found > version && right || found > 0 && found < version && !ours):
		d.err = fmt.Errorf("pagerank: %w: %d, not %d", ErrVersion, found, version)
	case string(head[:4]) != magic || found != version || !right:
		d.fail("not written by %s.WriteTo", of)
	}
}

func (d *decoder) byte() byte { return d.bytes(1)[0] }

func (d *decoder) float() float64 {
	v := math.Float64frombits(binary.LittleEndian.Uint64(d.bytes(8)))
	if math.IsNaN(v) || math.IsInf(v, 0) {
		d.fail("a number is %v", v)
		return 0
	}
	return v
}

// uvarint reads a number up to most.
func (d *decoder) uvarint(most uint64, what string) (v uint64) {
	for shift := 0; shift < 63; shift += 7 { // no number has more bits
		b := d.byte()
		v |= uint64(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if v > most {
			d.fail("%s %d of %d", what, v, most)
			return 0
		}
		return v
	}
	d.fail("%s without an end", what)
	return 0
}

// end compares the checksum.
func (d *decoder) end() {
	want := d.sum
	if got := binary.LittleEndian.Uint32(d.bytes(4)); got != want {
		d.fail("checksum %08x, want %08x", got, want)
	}
}

func (f *Frontier) readHead(d *decoder) (n uint64) {
	d.form(magic, version, "Frontier")
	if flags := d.byte(); flags != f.flags() && d.err == nil {
		d.err = fmt.Errorf("%w: flags %03b, now %03b", ErrOptions, flags, f.flags())
	}
	if damping := d.float(); damping != f.opts.Damping && d.err == nil {
		d.err = fmt.Errorf("%w: damping %v, now %v", ErrOptions, damping, f.opts.Damping)
	}
	f.sums.put = d.float()
	zigzag := d.uvarint(math.MaxInt64, "credit")
	f.sums.credit = int64(zigzag>>1) ^ -int64(zigzag&1)
	f.sums.updates = d.uvarint(math.MaxInt64, "updates")
	return d.uvarint(uint64(f.opts.Limit), "nodes")
}

// readNode reads the next node.
func (f *Frontier) readNode(d *decoder, id uint32, all uint64) {
	state := d.byte()
	// One by one, not all at once: in a corrupt file, the number of nodes may be anything.
	f.cover(uint64(id) + 1)
	n := &f.nodes[id]
	if state == 0 {
		return
	}
	isNew := state&savedNewcomer != 0
	if state &^= savedNewcomer; !legal(state, f.opts.KeepLinks) || isNew && state&queued == 0 {
		d.fail("node %d has state %#x", id, state)
		return
	}
	n.score = d.float()
	if isNew {
		n.next = always
	} else if state&queued != 0 {
		b := binary.LittleEndian.Uint16(d.bytes(2))
		if b >= buckets {
			d.fail("node %d is in bucket %d", id, b)
			return
		}
		n.next = lowest + b + 1
	}
	f.meet(id) // calls Host: the file has no hosts, since the caller numbers them
	n.state = state
	if f.blends() {
		cash := math.Float32frombits(binary.LittleEndian.Uint32(d.bytes(4)))
		if !(cash >= 0 && cash <= math.MaxFloat32) {
			d.fail("node %d has cash %v", id, cash)
			return
		}
		f.hosts.cash[id] = cash
	}
	if f.opts.KeepLinks && state&linked != 0 {
		f.passed[id] = d.float()
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
	count := d.uvarint(all, "links")
	next := uint64(0)
	for range count {
		to := next + d.uvarint(all, "gap")
		if to >= all || uint32(to) == id {
			d.fail("node %d links to %d of %d", id, to, all)
		}
		if d.err != nil {
			return
		}
		f.targets = append(f.targets, uint32(to))
		next = to + 1
	}
	if len(f.targets) == 0 {
		d.fail("node %d has no links", id)
		return
	}
	f.places[id] = f.links.put(id, f.targets)
}

// claim reads an id that must be queued and must not have been read before.
func (f *Frontier) claim(d *decoder) (id uint32) {
	id = uint32(d.uvarint(uint64(len(f.nodes)), "id"))
	if int(id) >= len(f.nodes) || f.nodes[id].state&(queued|marked) != queued {
		d.fail("id %d is not where it should be", id)
		return 0
	}
	f.nodes[id].state |= marked // until requireClaimed
	return id
}

func (f *Frontier) readQueue(d *decoder) {
	bucket := uint16(0)
	for n := d.uvarint(uint64(len(f.nodes)), "queued"); n > 0 && d.err == nil; n-- {
		id := f.claim(d)
		if d.err != nil {
			return
		}
		// Reading in the order of the buckets makes another WriteTo give the same file.
		node := &f.nodes[id]
		if b := node.bucket(); b < bucket || node.next == always {
			d.fail("the queue is out of order at id %d", id)
			return
		}
		bucket = node.bucket()
		f.queue.add(f.nodes, lowest+bucket, id)
	}
	for n := d.uvarint(uint64(len(f.nodes)), "newcomers"); n > 0 && d.err == nil; n-- {
		id := f.claim(d)
		if d.err == nil && f.nodes[id].next != always {
			d.fail("id %d is not a newcomer", id)
		}
		f.queue.live++
		f.newcomers = append(f.newcomers, id)
	}
	f.requireClaimed(d)
}

// requireClaimed checks that no id is missing.
func (f *Frontier) requireClaimed(d *decoder) {
	for id := range f.nodes {
		n := &f.nodes[id]
		if n.state&(queued|marked) == queued {
			d.fail("id %d is nowhere", id)
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
		case f.opts.KeepLinks:
			f.sums.replace(0, n.score-f.passed[id])
		}
	}
	f.calmAll()
	f.sums.total = all - f.sums.put
	if !f.opts.KeepLinks {
		// All fetched pages with links have passed on their score of that time, so the total is
		// known.
		f.sums.open = max(0, f.sums.held-f.sums.dangling-f.sums.total/f.sums.damping)
	}
	if f.opts.Cutoff == Push {
		f.step = age(f.fetched)
		f.stretch = stretch(f.fetched)
	}
}
