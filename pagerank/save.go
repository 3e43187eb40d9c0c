package pagerank

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// These constants are on disk, see FORMAT.md. Do not change them; add a version.
const (
	magic     = "SPNRANK4"
	urlsMagic = "SPNURLS3"

	flagLinks = 1 << 0 // links are kept
	flagCash  = 1 << 1 // Push knows hosts

	savedStates   = known | queued | fetched | linked | kept
	savedNewcomer = 1 << 6
)

// The magics before, without their versions.
const oldMagic, oldURLsMagic = "SPRF", "SPRU"

// flags returns which of the optional fields a file has.
func (f *Frontier) flags() (b byte) {
	if f.keeps() {
		b |= flagLinks
	}
	if f.hosts.weights != nil {
		b |= flagCash
	}
	return b
}

// WriteTo saves the frontier: scores, the order of the queue, and the links, with checksums.
// Which hosts are busy is not saved: their ids that were set aside are saved as queued. An id that Next
// has returned is not queued in the file either: if its page was not fetched yet, pass it to Discover after
// Read, or it will never be. FORMAT.md describes it. It changes nothing.
func (f *Frontier) WriteTo(w io.Writer) (n int64, err error) {
	out := durable.NewStreamWriter(w, magic)
	f.write(out)
	return out.Close()
}

// WriteFile replaces a file by what WriteTo writes. After a power failure, the old or the new file is
// there.
func (f *Frontier) WriteFile(name string) error { return writeFile(name, f) }

func writeFile(name string, from io.WriterTo) error {
	if err := durable.WriteFile(name, from); err != nil {
		return fmt.Errorf("pagerank: %w", err)
	}
	return nil
}

func (f *Frontier) write(w *durable.StreamWriter) {
	w.Buf = append(w.Buf, f.flags())
	w.Words(math.Float64bits(f.opts.Damping), math.Float64bits(f.sums.put))
	w.Buf = binary.AppendVarint(w.Buf, f.sums.credit)
	w.Uvarint(f.sums.updates)
	w.Uvarint(uint64(len(f.nodes)))
	for id := range f.nodes {
		f.writeNode(w, uint32(id))
		w.Flush()
	}
	f.writeQueue(w)
}

func (f *Frontier) writeNode(w *durable.StreamWriter, id uint32) {
	n := &f.nodes[id]
	state := n.state & savedStates
	if n.state&aside != 0 {
		state |= queued
	}
	if n.isNew() {
		state |= savedNewcomer
	}
	w.Buf = append(w.Buf, state)
	if n.state&known == 0 {
		return
	}
	w.Words(math.Float64bits(n.score))
	if n.state&(queued|aside) != 0 && !n.isNew() {
		// It cannot be recomputed: scores and weights have changed since.
		w.Buf = binary.LittleEndian.AppendUint16(w.Buf, n.bucket())
	}
	if f.hosts.weights != nil {
		w.Buf = binary.LittleEndian.AppendUint32(w.Buf, math.Float32bits(f.hosts.cash[id]))
	}
	if f.keeps() && n.state&linked != 0 {
		w.Words(math.Float64bits(f.passed[id]))
	}
	if n.state&kept != 0 {
		f.targets = f.links.read(f.places[id], id, f.targets[:0])
		w.Uvarint(uint64(len(f.targets)))
		next := uint32(0) // one more than the id before
		for _, to := range f.targets {
			w.Uvarint(uint64(to - next))
			next = to + 1
		}
	}
}

// writeQueue writes the ids in the queue, from the lowest bucket up, in order, and the newcomers. In
// each bucket, those that were set aside come last.
func (f *Frontier) writeQueue(w *durable.StreamWriter) {
	isOld := func(id uint32) bool { return !f.nodes[id].isNew() }
	newcomers, parked := slices.DeleteFunc(slices.Clone(f.newcomers), isOld), f.allAside()
	w.Uvarint(uint64(f.queue.live - len(newcomers) + len(parked)))
	for b := range uint16(buckets) {
		for id := range f.queue.entriesOf(b) {
			if n := &f.nodes[id]; n.state&marked == 0 && n.isIn(b) {
				n.state |= marked // an id that left the bucket and came back has two entries
				w.Uvarint(uint64(id))
			}
		}
		for ; len(parked) > 0 && f.nodes[parked[0]].bucket() == b; parked = parked[1:] {
			w.Uvarint(uint64(parked[0]))
		}
	}
	for id := range f.nodes {
		f.nodes[id].state &^= marked
	}
	w.Uvarint(uint64(len(newcomers)))
	for _, id := range newcomers {
		w.Uvarint(uint64(id))
	}
}
