package hattrie

import (
	"math"
	"reflect"
	"slices"
	"unsafe"
)

const (
	// maxInline bounds the values that are stored beside their keys. Bigger ones would make a leaf
	// of a few kilobytes burst early.
	maxInline = 128

	// Values that are kept apart lie in chunks of about this many bytes.
	valueChunk  = 4 << 10
	numberBytes = 4
)

// values stores the values of a trie. Small ones without pointers are stored in the tree, as their
// bytes in memory. For all others the tree has a number, and they are in chunks, which the
// collector scans if they have pointers.
type values[V any] struct {
	inline bool
	per    int // values in a chunk
	piece  int // bytes of a chunk
	chunks []chunk[V]
	used   uint32 // numbers given out so far
	count  int    // values that are there
	free   uint32 // 1 + the number of a deleted value, 0 if there is none
}

type chunk[V any] struct {
	values []V
	next   []uint32 // of a deleted value: what free was before
}

func newValues[V any]() values[V] {
	flat := pointerFree(reflect.TypeFor[V]())
	size := max(bytesPer[V](), 1)
	s := values[V]{inline: bytesPer[V]() <= maxInline && flat}
	header := 0
	if !flat {
		header = heapHeader
	}
	// As many as fit into what the heap gives for the chunk.
	s.per = max((heapSize(max(valueChunk, size)+header)-header)/size, 1)
	s.piece = heapSize(s.per*size+header) + heapSize(s.per*numberBytes) + int(unsafe.Sizeof(chunk[V]{}))
	return s
}

// heapHeader is what the Go heap adds to an object with pointers.
const heapHeader = 8

// heapSize returns the bytes that the Go heap takes for so many.
func heapSize(bytes int) int { return cap(append([]byte(nil), make([]byte, bytes)...)) }

func bytesPer[V any]() int {
	var v V
	return int(unsafe.Sizeof(v))
}

func pointerFree(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() == 0 || pointerFree(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !pointerFree(t.Field(i).Type) {
				return false
			}
		}
		return true
	default:
		return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
	}
}

// width returns the bytes that a value takes in the tree.
func (s *values[V]) width() int {
	if s.inline {
		return bytesPer[V]()
	}
	return numberBytes
}

// memory returns the bytes in use and held outside of the tree, without what values point to.
func (s *values[V]) memory() (used, reserved int) {
	return s.count * (bytesPer[V]() + numberBytes), len(s.chunks) * s.piece
}

// needs returns the bytes that the next new value takes beyond what is held.
func (s *values[V]) needs() int {
	if s.inline || s.free > 0 || int(s.used) < len(s.chunks)*s.per {
		return 0
	}
	return s.piece
}

// load returns the value that the tree holds as b.
func (s *values[V]) load(b []byte) (v V) {
	if s.inline {
		copy(bytesOf(&v), b)
		return v
	}
	c, i := s.at(le.Uint32(b))
	return c.values[i]
}

// save writes a value to the bytes that the tree has for it.
func (s *values[V]) save(b []byte, v V, added bool) {
	if s.inline {
		copy(b, bytesOf(&v))
		return
	}
	if added {
		le.PutUint32(b, s.alloc())
	}
	c, i := s.at(le.Uint32(b))
	c.values[i] = v
}

// drop must be called before the tree forgets b.
func (s *values[V]) drop(b []byte) {
	if s.inline {
		return
	}
	var zero V
	number := le.Uint32(b)
	c, i := s.at(number)
	c.values[i], c.next[i] = zero, s.free // it keeps nothing alive
	s.free = number + 1
	if s.count--; s.count == 0 {
		// Keep one chunk. Otherwise a trie at the boundary would allocate and free one over and
		// over.
		*s = values[V]{per: s.per, piece: s.piece, chunks: slices.Clone(s.chunks[:1])}
	}
}

func (s *values[V]) at(number uint32) (c *chunk[V], i int) {
	return &s.chunks[int(number)/s.per], int(number) % s.per
}

func (s *values[V]) alloc() (number uint32) {
	s.count++
	if s.free > 0 {
		number = s.free - 1
		c, i := s.at(number)
		s.free = c.next[i]
		return number
	}
	if s.used == math.MaxUint32 {
		panic("hattrie: more than four billion values in one trie")
	}
	if s.needs() > 0 {
		s.chunks = append(s.chunks, chunk[V]{make([]V, s.per), make([]uint32, s.per)})
	}
	s.used++
	return s.used - 1
}

// bytesOf returns the memory of a value without pointers. Values in the tree are not aligned, so
// they are copied to and from there and never pointed at.
func bytesOf[V any](v *V) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// keyOf returns the bytes of a string, which must not be written to.
func keyOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
