package exact

// recent is a list of the latest fingerprints in a fixed memory without pointers. It is cut into
// sets, and each fingerprint can be in one of them only. A set fills a cache line, in which the one
// that was met last comes first and the last one is pushed out. So it is a little less exact about
// who is the latest than a linked list and a map, but eight times as many fit into the same memory,
// and a look-up takes one access to it.
type recent struct {
	sets [][setSize]fingerprint // a power of two
}

const (
	setSize  = 4
	setBytes = setSize * 16
)

func newRecent(memory int64) recent {
	sets := 1
	for int64(2*sets)*setBytes <= memory {
		sets *= 2
	}
	return recent{make([][setSize]fingerprint, sets)}
}

// meet reports whether the fingerprint is in the list, and makes it the latest in any case. It takes
// the low bits to choose the set, as runs and filters go by the high ones.
func (r recent) meet(f fingerprint) (found bool) {
	set := &r.sets[f[0]&uint64(len(r.sets)-1)]
	moved := f
	for i := range set {
		moved, set[i] = set[i], moved
		if moved == f {
			return true
		}
	}
	return false
}

// forget takes a fingerprint out again.
func (r recent) forget(f fingerprint) {
	set := &r.sets[f[0]&uint64(len(r.sets)-1)]
	for i := range set {
		if set[i] == f {
			set[i] = fingerprint{} // stands for no URL
		}
	}
}
