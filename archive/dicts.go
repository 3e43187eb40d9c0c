package archive

import (
	"bytes"
	"sync"
)

// Limits of the cached dictionaries of zstd files. Imported files may have one of 16 MiB each.
const (
	maxDictBytes = 32 << 20
	maxDictNames = 256
)

// dicts caches the dictionaries of files by their names; that of a file without one is nil. Beyond
// the limits it begins anew, which costs no more than reading them again. The zero dicts is empty
// and ready to use. Its methods are safe for concurrent use.
type dicts struct {
	mu   sync.Mutex
	of   map[string][]byte
	size int // bytes of all dictionaries, equal ones once
}

// get returns the dictionary of a file, and whether it is known.
func (d *dicts) get(name string) (dict []byte, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dict, known = d.of[name]
	return dict, known
}

// put adds the dictionary of a file. If an equal one is cached, it returns that: thousands of files
// may share one.
func (d *dicts) put(name string, dict []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	added := len(dict)
	for _, known := range d.of {
		if len(dict) > 0 && bytes.Equal(known, dict) {
			dict, added = known, 0
			break
		}
	}
	if len(d.of) == 0 || len(d.of) >= maxDictNames || d.size+added > maxDictBytes {
		d.of, d.size, added = map[string][]byte{}, 0, len(dict)
	}
	d.of[name] = dict
	d.size += added
	return dict
}
