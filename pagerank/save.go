package pagerank

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// These constants are on disk, see FORMAT.md. Do not change them; add a version.
const (
	magic   = "SPRF"
	version = 3

	flagLinks = 1 << 0 // links are kept
	flagCash  = 1 << 1 // Push knows hosts

	savedStates   = known | queued | fetched | linked | kept
	savedNewcomer = 1 << 6
)

// flags returns which of the optional fields a file has.
func (f *Frontier) flags() (b byte) {
	if f.opts.KeepLinks {
		b |= flagLinks
	}
	if f.hosts.weights != nil {
		b |= flagCash
	}
	return b
}

// appendList appends the number of ids, the first of them, and the number of ids between each and
// the one before.
func appendList(b []byte, ids []uint32) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	next := uint32(0)
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(id-next))
		next = id + 1
	}
	return b
}

// An encoder writes and computes the checksum.
type encoder struct {
	out   *bufio.Writer
	sum   uint32
	row   []byte
	count int64
	err   error
}

// flush writes the row. After an error it does nothing.
func (e *encoder) flush() {
	if e.err == nil {
		e.sum = durable.SumOn(e.sum, e.row)
		var n int
		n, e.err = e.out.Write(e.row)
		e.count += int64(n)
	}
	e.row = e.row[:0]
}

// longRow is the size above which a part of a row is written: a bucket may hold the whole queue,
// and memory must not grow with it.
const longRow = 1 << 12

func (e *encoder) uvarint(n uint64) {
	if e.row = binary.AppendUvarint(e.row, n); len(e.row) >= longRow {
		e.flush()
	}
}

func (e *encoder) float(v float64)       { e.row = append64(e.row, math.Float64bits(v)) }
func (e *encoder) byte(b byte)           { e.row = append(e.row, b) }
func append64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

// newEncoder returns an encoder that has written a magic and a version, with a checksum of their
// own: a reader of another version has to believe them.
func newEncoder(w io.Writer, magic string, version byte) *encoder {
	e := &encoder{out: bufio.NewWriterSize(w, 1<<16)}
	e.row = append(append(e.row, magic...), version)
	e.row = binary.LittleEndian.AppendUint32(e.row, durable.Sum(e.row))
	return e
}

// end writes the checksum, and returns the number of bytes written.
func (e *encoder) end() (n int64, err error) {
	e.flush()
	e.row = binary.LittleEndian.AppendUint32(e.row, e.sum)
	e.flush()
	if e.err == nil {
		e.err = e.out.Flush()
	}
	return e.count - int64(e.out.Buffered()), e.err
}

// WriteTo saves the frontier: scores, the order of the queue, and the links, with a checksum.
// Which hosts are busy is not saved: their ids that were set aside are saved as queued. FORMAT.md
// describes it. It changes nothing.
func (f *Frontier) WriteTo(w io.Writer) (n int64, err error) {
	e := newEncoder(w, magic, version)
	e.byte(f.flags())
	e.float(f.opts.Damping)
	e.float(f.sums.put)
	e.row = binary.AppendVarint(e.row, f.sums.credit)
	e.uvarint(f.sums.updates)
	e.uvarint(uint64(len(f.nodes)))
	e.flush()
	for id := range f.nodes {
		f.writeNode(e, uint32(id))
		e.flush()
	}
	f.writeQueue(e)
	return e.end()
}

func (f *Frontier) writeNode(e *encoder, id uint32) {
	n := &f.nodes[id]
	state := n.state & savedStates
	if n.state&aside != 0 {
		state |= queued
	}
	if n.isNew() {
		state |= savedNewcomer
	}
	e.byte(state)
	if n.state&known == 0 {
		return
	}
	e.float(n.score)
	if n.state&(queued|aside) != 0 && !n.isNew() {
		// It cannot be recomputed: scores and weights have changed since.
		e.row = binary.LittleEndian.AppendUint16(e.row, n.bucket())
	}
	if f.hosts.weights != nil {
		e.row = binary.LittleEndian.AppendUint32(e.row, math.Float32bits(f.hosts.cash[id]))
	}
	if f.opts.KeepLinks && n.state&linked != 0 {
		e.float(f.passed[id])
	}
	if n.state&kept != 0 {
		f.targets = f.links.read(f.places[id], id, f.targets[:0])
		e.row = appendList(e.row, f.targets)
	}
}

// writeQueue writes the ids in the queue, from the lowest bucket up, in order, and the newcomers. In
// each bucket, those that were set aside come last.
func (f *Frontier) writeQueue(e *encoder) {
	newcomers, parked := f.waitingNewcomers(), f.lots.all(f.nodes)
	e.uvarint(uint64(f.queue.live - len(newcomers) + len(parked)))
	for b := range uint16(buckets) {
		for id := range f.queue.entriesOf(b) {
			if n := &f.nodes[id]; n.state&marked == 0 && n.isIn(b) {
				n.state |= marked // an id that left the bucket and came back has two entries
				e.uvarint(uint64(id))
			}
		}
		for ; len(parked) > 0 && f.nodes[parked[0]].bucket() == b; parked = parked[1:] {
			e.uvarint(uint64(parked[0]))
		}
		e.flush()
	}
	for id := range f.nodes {
		f.nodes[id].state &^= marked
	}
	e.uvarint(uint64(len(newcomers)))
	for _, id := range newcomers {
		e.uvarint(uint64(id))
	}
}
