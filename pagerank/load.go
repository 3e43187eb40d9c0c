package pagerank

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
)

var (
	// ErrCorrupt says that what was loaded is not what WriteTo has written. It is wrapped with what is
	// wrong with it.
	ErrCorrupt = errors.New("pagerank: corrupt file")

	// ErrOptions says that a frontier was saved with a Damping, Trusted, KeepLinks or Host that
	// differs from what Load was told, and that the scores would mean nothing with the new ones.
	ErrOptions = errors.New("pagerank: saved with other options")
)

// Load reads what WriteTo has written. Options.Host is asked for the host of each id again, and
// Options.Spill is written anew. Memory is bounded by what is read, whatever the file says. Load
// buffers, and may take more from r than is its own.
func Load(r io.Reader, opts Options) (*Frontier, error) {
	// The sum is checked last, so that a file need not be read twice; until then nothing in it is
	// believed. Whatever is wrong, the decoder goes on with zeros, and all loops ask for its error.
	f := New(opts)
	d := &decoder{in: bufio.NewReaderSize(r, 1<<16), sum: crc32.New(castagnoli)}
	n := f.readHead(d)
	for id := uint64(0); id < n && d.err == nil; id++ {
		f.readNode(d, uint32(id), n)
	}
	f.readQueue(d)
	f.readLots(d)
	d.end()
	if d.err == nil {
		d.err = f.links.err
	}
	if d.err != nil {
		return nil, d.err
	}
	f.tally()
	return f, nil
}

// A decoder reads and sums up. After an error it returns zeros.
type decoder struct {
	in  *bufio.Reader
	sum hash.Hash32
	buf [8]byte
	err error
}

// fail notes what is wrong, if nothing was before.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
}

// bytes returns the next few bytes, at most 8, valid until the next call.
func (d *decoder) bytes(n int) []byte {
	b := d.buf[:n]
	if d.err != nil {
		clear(b)
		return b
	}
	switch _, err := io.ReadFull(d.in, b); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		d.fail("it ends early")
		clear(b)
	case err != nil:
		d.err = fmt.Errorf("pagerank: load: %w", err)
		clear(b)
	}
	d.sum.Write(b)
	return b
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

// end checks the sum.
func (d *decoder) end() {
	want := d.sum.Sum32()
	if got := binary.LittleEndian.Uint32(d.bytes(4)); got != want {
		d.fail("checksum %08x, want %08x", got, want)
	}
}

func (f *Frontier) readHead(d *decoder) (n uint64) {
	if string(d.bytes(4)) != magic {
		d.fail("no frontier")
	}
	if v := d.byte(); v != version {
		d.fail("version %d", v)
	}
	if flags := d.byte(); flags != f.flags() && d.err == nil {
		d.err = fmt.Errorf("%w: flags %03b, now %03b", ErrOptions, flags, f.flags())
	}
	if damping := d.float(); damping != f.opts.Damping && d.err == nil {
		d.err = fmt.Errorf("%w: damping %v, now %v", ErrOptions, damping, f.opts.Damping)
	}
	f.sums.put = d.float()
	f.sums.skew = d.float()
	f.sums.updates = d.uvarint(math.MaxInt64, "updates")
	return d.uvarint(uint64(f.limit), "nodes")
}

// readNode appends a node.
func (f *Frontier) readNode(d *decoder, id uint32, all uint64) {
	state := d.byte()
	// One by one, not all at once: the number of nodes in a broken file may be anything.
	f.cover(id)
	f.follow()
	n := &f.nodes[id]
	if state == 0 {
		return
	}
	if !legal(state, f.opts.KeepLinks) {
		d.fail("node %d has state %#x", id, state)
		return
	}
	n.score = d.float()
	if state&(queued|aside) != 0 {
		b := binary.LittleEndian.Uint16(d.bytes(2))
		if b >= buckets {
			d.fail("node %d is in bucket %d", id, b)
			return
		}
		n.next = lowest + b + 1
	}
	f.meet(id) // asks for the host, which is not in the file: numbers of hosts are the caller's
	n.state = state
	if f.hosts.weights != nil {
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

// legal tells whether a node may be in a state.
func legal(state uint8, links bool) bool {
	places := 0
	for _, in := range []uint8{queued, aside, fetched} {
		if state&in != 0 {
			places++
		}
	}
	return state&^savedStates == 0 && state&known != 0 && places <= 1 &&
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

// claim reads an id that has to be in a state, and to be met once.
func (f *Frontier) claim(d *decoder, state uint8) (id uint32) {
	id = uint32(d.uvarint(uint64(len(f.nodes)), "id"))
	if int(id) >= len(f.nodes) || f.nodes[id].state&(state|marked) != state {
		d.fail("id %d is not where it should be", id)
		return 0
	}
	f.nodes[id].state |= marked // until requireClaimed
	return id
}

func (f *Frontier) readQueue(d *decoder) {
	bucket := uint16(0)
	for n := d.uvarint(uint64(len(f.nodes)), "queued"); n > 0 && d.err == nil; n-- {
		id := f.claim(d, queued)
		if d.err != nil {
			return
		}
		// Only in order of the buckets will another WriteTo give the same file.
		if b := f.nodes[id].bucket(); b < bucket {
			d.fail("the queue is out of order at id %d", id)
		} else {
			bucket = b
		}
		f.queue.add(f.nodes, lowest+bucket, id)
	}
}

func (f *Frontier) readLots(d *decoder) {
	least := uint64(0)
	for n := d.uvarint(maxIDs, "hosts"); n > 0 && d.err == nil; n-- {
		host := d.uvarint(maxIDs, "host")
		if host < least {
			d.fail("host %d comes late", host)
		}
		least = host + 1
		busy := d.byte()
		count := d.uvarint(uint64(len(f.nodes)), "aside")
		if busy > 1 || busy == 0 && count == 0 {
			d.fail("host %d is %d with %d ids", host, busy, count)
		}
		if d.err != nil {
			return
		}
		l := f.hosts.close(uint32(host))
		l.busy = busy == 1
		for ; count > 0; count-- {
			id := f.claim(d, aside)
			if d.err != nil {
				return
			}
			if f.nodes[id].host != uint32(host) {
				d.fail("id %d is not on host %d", id, host)
				return
			}
			f.hosts.park(f.nodes, l, id)
		}
	}
	f.requireClaimed(d)
}

// requireClaimed checks that no id was forgotten.
func (f *Frontier) requireClaimed(d *decoder) {
	for id := range f.nodes {
		n := &f.nodes[id]
		if n.state&(queued|aside) != 0 && n.state&marked == 0 {
			d.fail("id %d is nowhere", id)
		}
		n.state &^= marked
	}
}

// tally works out what the file does not say.
func (f *Frontier) tally() {
	// Sums that were kept up to date and those that are formed anew differ by rounding, as little as
	// one crawl from another on another machine.
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
			f.sums.book(0, n.score-f.passed[id])
		}
		f.rate(n.host)
	}
	f.calmAll()
	f.sums.total = all - f.sums.put
	if !f.opts.KeepLinks && f.sums.damping > 0 {
		// All fetched pages with links have put in what they had: what was passed on is known.
		f.sums.open = max(0, f.sums.held-f.sums.dangling-f.sums.total/f.sums.damping)
	}
	if f.opts.Cutoff == Push {
		f.step = age(f.fetched)
		f.stretch = stretch(f.fetched)
	}
}
