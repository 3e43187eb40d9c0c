// Package bolt reads [bbolt] files, in which version 1 of an archive kept its index. It only scans
// whole buckets.
//
// [bbolt]: https://github.com/etcd-io/bbolt
package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// ErrCorrupt is wrapped by the error for a file that cannot be read.
var ErrCorrupt = errors.New("bolt: corrupt file")

// File is an open file. It is not safe for concurrent use.
type File struct {
	r        io.ReaderAt
	size     int64
	order    binary.ByteOrder
	pageSize int64
	root     uint64 // page of the bucket of buckets
	pages    int64  // that may still be read, so that a cycle ends
	depth    int    // of the current page
}

// maxDepth is more than any valid file has.
const maxDepth = 32

// Constants of the file format, the same for all page sizes.
const (
	magic       = 0xed0cdaed
	version     = 2
	metaSize    = 64 // without its checksum
	pageHeader  = 16
	elementSize = 16
	bucketSize  = 16
	flagBranch  = 1
	flagLeaf    = 2
	flagBucket  = 1 // of an element
)

// Open finds the last committed state.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	last, found := uint64(0), false
	// The second meta page follows the first one. Only a meta page has the page size, and the first
	// one may be damaged, so all sizes are tried.
	for at := int64(0); at <= 1<<16; at = max(2*at, 1<<9) {
		meta := make([]byte, metaSize+8)
		if _, err := r.ReadAt(meta, at+pageHeader); err != nil {
			continue
		}
		order, ok := checkMeta(meta)
		if txid := order.Uint64(meta[48:]); ok && (!found || txid > last) {
			last, found = txid, true
			f.order, f.pageSize = order, int64(order.Uint32(meta[8:]))
			f.root = order.Uint64(meta[16:])
		}
	}
	if !found || f.pageSize < 1<<9 || f.pageSize > 1<<20 {
		return nil, fmt.Errorf("%w: no valid meta page", ErrCorrupt)
	}
	f.pages = size/f.pageSize + 1
	return f, nil
}

// checkMeta detects the byte order, which is that of the machine that wrote the file.
func checkMeta(meta []byte) (order binary.ByteOrder, ok bool) {
	order = binary.LittleEndian
	if binary.BigEndian.Uint32(meta) == magic {
		order = binary.BigEndian
	}
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:metaSize-8]) // documented never to fail
	return order, order.Uint32(meta) == magic && order.Uint32(meta[4:]) == version &&
		order.Uint64(meta[metaSize-8:]) == sum.Sum64()
}

// Walk visits the pairs of a top-level bucket in key order until visit returns an error. A missing
// bucket counts as empty.
func (f *File) Walk(bucket string, visit func(key, value []byte) error) error {
	var header []byte
	err := f.page(f.root, func(key, value []byte, flags uint32) error {
		if string(key) == bucket && flags&flagBucket != 0 {
			header = append(header, value...)
		}
		return nil
	})
	if err != nil || header == nil {
		return err
	}
	f.pages = f.size/f.pageSize + 1
	if len(header) < bucketSize {
		return fmt.Errorf("%w: bucket %q", ErrCorrupt, bucket)
	}
	pair := func(key, value []byte, _ uint32) error { return visit(key, value) }
	if root := f.order.Uint64(header); root != 0 {
		return f.page(root, pair)
	}
	return f.elements(header[bucketSize:], pair) // a small bucket is stored inline
}

// page visits the elements below a page. It reads at most as many pages as the file has, so a cycle
// ends.
func (f *File) page(id uint64, visit func(key, value []byte, flags uint32) error) error {
	f.depth++
	defer func() { f.depth-- }()
	if f.pages--; f.pages < 0 || f.depth > maxDepth || id > uint64(f.size/f.pageSize) {
		return fmt.Errorf("%w: page %d", ErrCorrupt, id)
	}
	data := make([]byte, f.pageSize)
	if err := f.read(data, int64(id)*f.pageSize); err != nil {
		return err
	}
	if more := int64(f.order.Uint32(data[12:])); more > 0 {
		if more > f.size/f.pageSize {
			return fmt.Errorf("%w: page %d", ErrCorrupt, id)
		}
		data = make([]byte, (more+1)*f.pageSize)
		if err := f.read(data, int64(id)*f.pageSize); err != nil {
			return err
		}
	}
	return f.elements(data, visit)
}

func (f *File) read(data []byte, at int64) error {
	n, err := f.r.ReadAt(data, at)
	switch {
	case n == len(data):
		return nil
	case err == io.EOF:
		return fmt.Errorf("%w: the file is too short", ErrCorrupt)
	}
	return fmt.Errorf("bolt: read: %w", err)
}

// elements visits the elements of a page and of the pages below it.
func (f *File) elements(page []byte, visit func(key, value []byte, flags uint32) error) error {
	broken := fmt.Errorf("%w: invalid page", ErrCorrupt)
	if len(page) < pageHeader {
		return broken
	}
	kind, count := f.order.Uint16(page[8:]), int(f.order.Uint16(page[10:]))
	if len(page) < pageHeader+count*elementSize || kind != flagBranch && kind != flagLeaf {
		return broken
	}
	for i := range count {
		at := pageHeader + i*elementSize
		element := page[at:][:elementSize]
		if kind == flagBranch {
			if err := f.page(f.order.Uint64(element[8:]), visit); err != nil {
				return err
			}
			continue
		}
		start := uint64(at) + uint64(f.order.Uint32(element[4:]))
		middle := start + uint64(f.order.Uint32(element[8:]))
		end := middle + uint64(f.order.Uint32(element[12:]))
		if end > uint64(len(page)) {
			return broken
		}
		if err := visit(page[start:middle], page[middle:end], f.order.Uint32(element)); err != nil {
			return err
		}
	}
	return nil
}
