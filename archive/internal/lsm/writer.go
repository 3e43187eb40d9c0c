package lsm

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A run is a file of sorted pairs in data blocks. A key block follows the data blocks that it
// lists, with the first key and the address of each. After the last one come the top block, which
// lists the key blocks, the filter with its checksum, and the footer. An address is offset and
// length, as unsigned varints.
//
// The footer, 52 bytes, little endian. It is on disk: do not change it, add a version.
//
//	offset  size  field
//	     0     8  magic, "SPINRUN2"
//	     8     8  number of pairs
//	    16     8  number of prefixes, or more
//	    24     8  offset of the top block
//	    32     8  offset of the filter
//	    40     8  end of the filter, and offset of its checksum
//	    48     4  CRC-32C of the footer up to here
const (
	runMagic   = "SPINRUN2"
	footerSize = 52
)

// writeSize is the size of a write. After startSize bytes, the system is told to write them to
// disk.
const (
	writeSize = 256 << 10
	startSize = 4 << 20
)

// writer writes a run. It is not safe for concurrent use.
type writer struct {
	file    vfs.File
	prefix  func(key []byte) int
	buf     []byte // not written yet
	at      int64  // where buf goes
	started int64

	pairs    blockWriter
	keys     blockWriter // the next key block
	top      blockWriter
	filter   filter
	last     []byte // prefix
	count    int64
	prefixes int64
	address  []byte
	err      error
}

// newWriter sizes the filter for that many prefixes, an upper bound.
func newWriter(file vfs.File, prefix func([]byte) int, prefixes int64) *writer {
	return &writer{file: file, prefix: prefix, filter: newFilter(prefixes),
		keys: blockWriter{bits: keysBit}, top: blockWriter{bits: keysBit}}
}

// add must be called in key order.
func (w *writer) add(key, value []byte) error {
	w.count++
	if p := key[:w.prefix(key)]; !bytes.Equal(p, w.last) || w.prefixes == 0 {
		w.filter.add(hashOf(p))
		w.last = append(w.last[:0], p...)
		w.prefixes++
	}
	w.pairs.add(key, value)
	if len(w.pairs.entries) >= blockSize {
		w.endBlock()
	}
	return w.err
}

// endBlock writes the data block, and the key block if it is full.
func (w *writer) endBlock() {
	if w.pairs.count > 0 {
		w.keys.add(w.pairs.first, w.put(&w.pairs))
	}
	if len(w.keys.entries) >= blockSize {
		w.top.add(w.keys.first, w.put(&w.keys))
	}
}

// put writes a block and returns its address.
func (w *writer) put(b *blockWriter) []byte {
	start := w.at + int64(len(w.buf))
	w.buf = b.finish(w.buf)
	w.address = binary.AppendUvarint(w.address[:0], uint64(start))
	w.address = binary.AppendUvarint(w.address, uint64(w.at+int64(len(w.buf))-start))
	if len(w.buf) >= writeSize {
		w.flush()
	}
	return w.address
}

func (w *writer) flush() {
	if w.err == nil {
		_, w.err = w.file.WriteAt(w.buf, w.at)
	}
	w.at += int64(len(w.buf))
	w.buf = w.buf[:0]
	if w.at-w.started >= startSize {
		w.file.Start(w.started, w.at-w.started)
		w.started = w.at
	}
}

// finish writes the rest and syncs the file. The run must not be empty.
func (w *writer) finish() error {
	w.endBlock()
	if w.keys.count > 0 {
		w.top.add(w.keys.first, w.put(&w.keys))
	}
	end := func() uint64 { return uint64(w.at) + uint64(len(w.buf)) }
	fields := []uint64{uint64(w.count), uint64(w.prefixes), end()}
	w.put(&w.top)
	fields = append(fields, end())
	w.buf = append(w.buf, w.filter...)
	fields = append(fields, end())
	w.buf = append(w.buf, w.filter.sum()...)
	footer := []byte(runMagic)
	for _, n := range fields {
		footer = binary.LittleEndian.AppendUint64(footer, n)
	}
	footer = binary.LittleEndian.AppendUint32(footer, crc32.Checksum(footer, castagnoli))
	w.buf = append(w.buf, footer...)
	w.flush()
	if w.err == nil {
		w.err = w.file.Sync()
	}
	return w.err
}
