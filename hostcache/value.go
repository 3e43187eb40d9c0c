package hostcache

import (
	"math"
	"reflect"
	"unsafe"
)

// maxInline is how big a value may be to lie beside its key. Bigger ones would make a leaf of a
// few kilobytes burst early.
const maxInline = 128

// A store keeps values of type V for a tree. Those without pointers lie in the tree as the bytes
// that they are in memory. For others, and for big ones, the tree has a number, and the values
// themselves are in chunks, through which the collector has to go if they hold pointers.
type store[V any] struct {
	inline bool
	chunks [][]V
	used   uint32
	free   []uint32
}

const (
	storeChunk  = 256
	numberBytes = 4
)

func newStore[V any]() store[V] {
	return store[V]{inline: isPlain[V]() && sizeOf[V]() <= maxInline}
}

func sizeOf[V any]() int {
	var v V
	return int(unsafe.Sizeof(v))
}

// isPlain says whether values have no pointers in them.
func isPlain[V any]() bool { return pointerFree(reflect.TypeFor[V]()) }

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

// width returns how many bytes of the tree a value takes.
func (s *store[V]) width() int {
	if s.inline {
		return sizeOf[V]()
	}
	return numberBytes
}

// bytes returns how much memory the values take outside of the tree, without what they point to.
func (s *store[V]) bytes() int { return (int(s.used) - len(s.free)) * sizeOf[V]() }

// reserved returns how much memory is held for values.
func (s *store[V]) reserved() int { return len(s.chunks) * storeChunk * sizeOf[V]() }

// load returns the value that is in some bytes of the tree.
func (s *store[V]) load(from []byte) (v V) {
	if s.inline {
		copy(memory(&v), from)
		return v
	}
	return *s.slot(le.Uint32(from))
}

// save writes a value to some bytes of the tree, which hold one already unless they are new.
func (s *store[V]) save(to []byte, v V, isNew bool) {
	if s.inline {
		copy(to, memory(&v))
		return
	}
	if isNew {
		le.PutUint32(to, s.alloc())
	}
	*s.slot(le.Uint32(to)) = v
}

// drop is called before the tree forgets a value.
func (s *store[V]) drop(from []byte) {
	if s.inline {
		return
	}
	var zero V
	number := le.Uint32(from)
	*s.slot(number) = zero // so that it keeps nothing alive
	s.free = append(s.free, number)
	if len(s.free) == int(s.used) && len(s.chunks) > 1 {
		// One chunk is kept, lest a store at the edge of empty ask for memory over and over.
		*s = store[V]{chunks: [][]V{s.chunks[0]}}
	}
}

func (s *store[V]) slot(number uint32) *V {
	return &s.chunks[number/storeChunk][number%storeChunk]
}

func (s *store[V]) alloc() uint32 {
	if k := len(s.free); k > 0 {
		number := s.free[k-1]
		s.free = s.free[:k-1]
		return number
	}
	if s.used == math.MaxUint32 {
		panic("hostcache: more than four billion values in one trie")
	}
	if int(s.used/storeChunk) == len(s.chunks) {
		s.chunks = append(s.chunks, make([]V, storeChunk))
	}
	s.used++
	return s.used - 1
}

// memory returns the bytes of a value without pointers. Values lie anywhere in the tree, so they
// are copied to and from there, never pointed at.
func memory[V any](v *V) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// keyOf returns the bytes of a string, which must not be written to.
func keyOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
