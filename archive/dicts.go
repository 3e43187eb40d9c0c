package archive

import (
	"bytes"
	"slices"
	"sync"
)

// Limits of the cached dictionaries of zstd files. Imported files may have one of 16 MiB each.
const (
	maxDictBytes = 32 << 20
	maxDictNames = 256
)

// dicts caches the dictionaries of the most recently read files. The zero dicts is empty and ready
// to use. Its methods are safe for concurrent use.
type dicts struct {
	mu     sync.Mutex
	recent []dictOf // the least recent one first
}

// dictOf is the dictionary of a file, or nil if it has none.
type dictOf struct {
	name string
	dict []byte
}

// get returns the dictionary of a file, and whether it is known.
func (d *dicts) get(name string) (dict []byte, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := slices.IndexFunc(d.recent, func(of dictOf) bool { return of.name == name })
	if at < 0 {
		return nil, false
	}
	of := d.recent[at]
	d.recent = append(slices.Delete(d.recent, at, at+1), of)
	return of.dict, true
}

// put adds the dictionary of a file. If an equal one is cached, it returns that: thousands of files
// may share one.
func (d *dicts) put(name string, dict []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, of := range d.recent {
		if bytes.Equal(of.dict, dict) {
			dict = of.dict
			break
		}
	}
	d.recent = append(d.recent, dictOf{name, dict})
	for len(d.recent) > 1 && (len(d.recent) > maxDictNames || d.size() > maxDictBytes) {
		d.recent = slices.Delete(d.recent, 0, 1)
	}
	return dict
}

// size returns the bytes of all dictionaries, equal ones once. It requires that d.mu is held.
func (d *dicts) size() (n int) {
	seen := map[*byte]bool{}
	for _, of := range d.recent {
		if len(of.dict) > 0 && !seen[&of.dict[0]] {
			seen[&of.dict[0]] = true
			n += len(of.dict)
		}
	}
	return n
}
