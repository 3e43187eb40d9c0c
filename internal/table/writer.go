package table

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// A segmentWriter writes a file of entries, which come in order. It is not safe for concurrent use.
type segmentWriter struct {
	*segment
	out    durable.Writer
	block  blockWriter
	leaf   blockWriter
	leaves [][]byte // those that are full
	firsts [][]byte // their first keys
	hashes []uint64 // of the prefixes
	prefix []byte   // the last one
	place  []byte   // buffer
}

// create begins the next file. No number is used twice, even if the file cannot be created.
func (t *Table) create(hashes []uint64) (*segmentWriter, error) {
	t.mu.Lock()
	t.last++
	s := &segment{table: t, number: t.last, name: t.fileName(t.last)}
	t.mu.Unlock()
	var err error
	if s.file, err = t.fs.Create(s.name); err != nil {
		return nil, fmt.Errorf("create %s: %w", s.name, err)
	}
	w := &segmentWriter{segment: s, out: durable.Writer{To: s.file}, hashes: hashes[:0]}
	w.block.fixed = t.Key > 0
	return w, nil
}

func (w *segmentWriter) add(key, value []byte) {
	w.count++
	if w.table.Prefix == nil {
		w.hashes = append(w.hashes, hashOf(key))
	} else if p := key[:w.table.Prefix(key)]; w.count == 1 || !bytes.Equal(p, w.prefix) {
		w.hashes = append(w.hashes, hashOf(p))
		w.prefix = append(w.prefix[:0], p...)
	}
	w.block.add(key, value)
	next := len(w.block.body)
	if w.block.fixed {
		next += w.table.Key + w.table.Value - 1 // blocks of fixed entries are at most that large
	}
	if next >= w.table.Block {
		w.endBlock()
	}
}

func (w *segmentWriter) endBlock() {
	if w.block.count == 0 {
		return
	}
	at, size := w.put(w.block.finish())
	w.place = binary.AppendUvarint(w.place[:0], uint64(at))
	w.place = binary.AppendUvarint(w.place, uint64(size))
	w.leaf.add(w.block.first, w.place)
	if len(w.leaf.body) >= leafSize {
		w.endLeaf()
	}
}

func (w *segmentWriter) endLeaf() {
	if w.leaf.count > 0 {
		w.leaves = append(w.leaves, bytes.Clone(w.leaf.finish()))
		w.firsts = append(w.firsts, bytes.Clone(w.leaf.first))
	}
}

// put writes a part and its checksum.
func (w *segmentWriter) put(b []byte) (at int64, size int) {
	at = w.out.End()
	w.out.Write(b)
	var sum [durable.SumSize]byte
	binary.LittleEndian.PutUint32(sum[:], w.sum(at, b))
	w.out.Write(sum[:])
	return at, len(b)
}

// finish writes the index, the filter and the footer, and syncs the file. After an error the file
// is removed.
func (w *segmentWriter) finish() (*segment, error) {
	w.endBlock()
	w.endLeaf()
	f := footer{count: w.count, data: w.out.End()}
	top := blockWriter{}
	for i, leaf := range w.leaves {
		at, size := w.put(leaf)
		w.place = binary.AppendUvarint(w.place[:0], uint64(at))
		top.add(w.firsts[i], binary.AppendUvarint(w.place, uint64(size)))
	}
	f.top = w.out.End()
	w.put(top.finish())
	f.filter = w.out.End()
	bits := w.table.FilterBits
	if w.count >= w.table.Segment {
		bits = w.table.FullBits
	}
	w.put(newFilter(w.hashes, bits))
	w.put(f.append(nil, w.table.Key, w.table.Value))
	err := w.out.Flush()
	if err == nil {
		err = w.file.Sync()
	}
	if err == nil {
		err = w.load()
	}
	if err != nil {
		w.discard()
		return nil, fmt.Errorf("write %s: %w", w.name, err)
	}
	return w.segment, nil
}

// discard removes the file: on a full disk, a failed attempt must not take the space of the next.
func (w *segmentWriter) discard() { durable.Discard(w.table.fs, w.name, w.file) }
