package exact

// recent is a list of the latest fingerprints in a fixed amount of memory without pointers. It is
// divided into sets of a cache line, each with its own order, and a fingerprint can be in one set
// only. So its order is less exact than that of a linked list with a map, but 14 times as many
// entries fit into the same memory, and a search reads one cache line.
type recent [][setSize]fingerprint // a power of two

const (
	setSize  = 8
	setBytes = setSize * printSize
)

func newRecent(memory int64) recent {
	sets := 1
	for int64(2*sets)*setBytes <= memory {
		sets *= 2
	}
	return make(recent, sets)
}

// of returns the set of a fingerprint, selected by its low bits: the index and the filter use the
// high ones.
func (r recent) of(f fingerprint) *[setSize]fingerprint {
	return &r[uint64(f)&uint64(len(r)-1)]
}

// has reports whether the fingerprint is in the list. If so, it becomes the latest.
func (r recent) has(f fingerprint) bool {
	set := r.of(f)
	for i := range set {
		if set[i] == f {
			copy(set[1:i+1], set[:i])
			set[0] = f
			return true
		}
	}
	return false
}

// add adds a fingerprint that is not in the list, as the latest.
func (r recent) add(f fingerprint) {
	set := r.of(f)
	copy(set[1:], set[:setSize-1])
	set[0] = f
}

// forget removes a fingerprint, if the list has it.
func (r recent) forget(f fingerprint) {
	for r.has(f) { // two calls may have added it
		r.of(f)[0] = 0 // that of none
	}
}
