package exact

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
)

var errPower = errors.New("the power is gone")

// A memDisk is a disk in memory that can lose its power before any step. What was not synced may
// then be there, or not, or in part, as a random number wants it.
type memDisk struct {
	mu      sync.Mutex
	names   map[string]*memFile
	durable map[string]*memFile // names as of the last sync
	changes []func(map[string]*memFile)
	steps   int
	failAt  int   // step that fails; 0 for none
	failure error // of that step, and if it is errPower, of all later ones
	reads   int
	badRead int // read that fails with failure; 0 for none
}

type memFile struct {
	disk    *memDisk
	data    []byte
	durable []byte // as of the last sync
	writes  []memWrite
}

type memWrite struct {
	at   int64
	data []byte
}

func newMemDisk() *memDisk {
	return &memDisk{names: map[string]*memFile{}, durable: map[string]*memFile{}}
}

// step counts what changes the disk.
func (d *memDisk) step() error {
	d.steps++
	if d.failAt > 0 && (d.steps == d.failAt || d.steps > d.failAt && d.failure == errPower) {
		return d.failure
	}
	return nil
}

// crash returns the disk as it is found when the power is back.
func (d *memDisk) crash(random *rand.Rand) *memDisk {
	found := newMemDisk()
	names := maps.Clone(d.durable)
	// Most directories are journaled: changes last in their order, but not all of them. No standard
	// demands the order, and so here it is kept in every other crash.
	kept, ordered := random.IntN(len(d.changes)+1), random.IntN(2) == 0
	for i, change := range d.changes {
		if ordered && i < kept || !ordered && random.IntN(2) == 0 {
			change(names)
		}
	}
	for name, f := range names {
		data := slices.Clone(f.durable)
		for _, w := range f.writes {
			switch random.IntN(3) {
			case 0: // lost
			case 1:
				data = apply(data, w)
			case 2: // torn
				w.data = w.data[:random.IntN(len(w.data)+1)]
				data = apply(data, w)
			}
		}
		found.names[name] = &memFile{disk: found, data: data, durable: slices.Clone(data)}
	}
	found.durable = maps.Clone(found.names)
	return found
}

func apply(data []byte, w memWrite) []byte {
	if end := int(w.at) + len(w.data); end > len(data) {
		data = append(data, make([]byte, end-len(data))...)
	}
	copy(data[w.at:], w.data)
	return data
}

func (d *memDisk) change(apply func(map[string]*memFile)) {
	apply(d.names)
	d.changes = append(d.changes, apply)
}

func (d *memDisk) create(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	f := &memFile{disk: d}
	d.change(func(names map[string]*memFile) { names[name] = f })
	return f, nil
}

func (d *memDisk) open(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, found := d.names[name]; found {
		return f, nil
	}
	return nil, os.ErrNotExist
}

func (d *memDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.change(func(names map[string]*memFile) {
		if f, found := names[from]; found {
			names[to] = f
			delete(names, from)
		}
	})
	return nil
}

func (d *memDisk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.change(func(names map[string]*memFile) { delete(names, name) })
	return nil
}

func (d *memDisk) list() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

func (d *memDisk) sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.durable, d.changes = maps.Clone(d.names), nil
	return nil
}

func (f *memFile) ReadAt(b []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.reads++; f.disk.reads == f.disk.badRead {
		return 0, f.disk.failure
	}
	if at >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	w := memWrite{at, slices.Clone(b)}
	if err := f.disk.step(); err != nil {
		f.writes = append(f.writes, w) // it may have been under way
		return 0, err
	}
	f.writes = append(f.writes, w)
	f.data = apply(f.data, w)
	return len(b), nil
}

func (f *memFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step(); err != nil {
		return err
	}
	f.durable, f.writes = slices.Clone(f.data), nil
	return nil
}

func (f *memFile) size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f *memFile) Close() error { return nil }
