package vfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

// ErrPower is returned by every change and every Sync after the power of a [Mem] failed. Reads
// still work, so that a test can see what was written.
var ErrPower = errors.New("vfs: power failure")

// A Mem is a directory in memory whose hardware fails on request. The zero Mem is not usable; use
// [NewMem]. Its methods are safe for concurrent use.
type Mem struct {
	mu      sync.Mutex
	names   map[string]*memFile
	durable map[string]*memFile // as of the last Sync
	changes []memChange
	locks   map[string]bool
	steps   int
	failAt  int
	failing []error // of steps from failAt on; after ErrPower, of all later ones too
	space   int64   // maximum bytes of all files; -1 for unlimited
}

type memFile struct {
	mem     *Mem
	data    []byte
	durable []byte // as of the last Sync
	writes  []memWrite
	mapped  bool // data may change at any time
	flipped bool // data has changed other than by writes
}

// A memChange is a creation if there is no from, a removal if there is no file, or else a rename.
type memChange struct {
	from, to string
	file     *memFile
}

func (c memChange) apply(names map[string]*memFile) {
	if c.file == nil || names[c.from] == c.file { // else a crash has lost the creation of what is renamed
		delete(names, c.from)
	}
	if c.file != nil {
		names[c.to] = c.file
	}
}

type memWrite struct {
	at     int64
	data   []byte
	failed bool // not in the file, but may appear after a crash
	unsure bool // in the file, but a Sync failed: no later one makes it durable
	synced bool // durable, after a write that is unsure
	cut    bool // a truncation at this offset, not a write
}

var _ FS = (*Mem)(nil)

// NewMem returns an empty Mem without faults.
func NewMem() *Mem {
	return &Mem{
		names: map[string]*memFile{}, durable: map[string]*memFile{}, locks: map[string]bool{},
		space: -1,
	}
}

// Steps returns the number of changes and syncs so far.
func (m *Mem) Steps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.steps
}

// FailAt makes the n-th step, counted from the start, and those after it, fail with these errors,
// before they have any effect; nil lets a step succeed. A failed write may still appear after a
// crash, since it was in flight. After [ErrPower], all later steps fail as well.
func (m *Mem) FailAt(n int, errs ...error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failAt, m.failing = n, errs
}

// SetSpace limits the total size of all files. A write beyond the limit stores the bytes that fit
// and fails with ENOSPC, like a system call. A negative n removes the limit.
func (m *Mem) SetSpace(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.space = n
}

// Used returns the total size of all files in bytes.
func (m *Mem) Used() (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used()
}

func (m *Mem) used() (n int64) {
	for _, f := range m.names {
		n += int64(len(f.data))
	}
	return n
}

// Data returns a copy of a file's bytes, or nil if there is no such file.
func (m *Mem) Data(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.names[name]; f != nil {
		return append([]byte{}, f.data...)
	}
	return nil
}

// Put creates a durable file with the given data.
func (m *Mem) Put(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &memFile{mem: m, data: slices.Clone(data), durable: slices.Clone(data)}
	m.names[name], m.durable[name] = f, f
}

// Flip inverts one bit of a file, as a failing disk may. Bit 0 is the lowest of a byte.
func (m *Mem) Flip(name string, at int64, bit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	f.data[at] ^= 1 << bit
	f.flipped = true
}

// Clone returns the directory as found after a kill of the process: what it could read is there, and
// what was not synced is as unsure as before. The copy has no faults and no locks.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	copies := map[*memFile]*memFile{nil: nil}
	clone := func(f *memFile) *memFile {
		if _, done := copies[f]; !done {
			own := *f
			own.mem, own.data, own.durable = c, slices.Clone(f.data), slices.Clone(f.durable)
			own.writes = slices.Clone(f.writes)
			copies[f] = &own
		}
		return copies[f]
	}
	for name, f := range m.names {
		c.names[name] = clone(f)
	}
	for name, f := range m.durable {
		c.durable[name] = clone(f)
	}
	for _, change := range m.changes {
		change.file = clone(change.file)
		c.changes = append(c.changes, change)
	}
	return c
}

// Crash returns the directory as found after a power failure. Each change of a name since the last
// Sync survives or is lost at random, whatever happens to those before it: journals may reorder
// them. A rename is atomic. Each write since its file's last Sync is kept, torn or lost at random.
func (m *Mem) Crash(random *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := NewMem()
	names := maps.Clone(m.durable)
	lost := random.Float64() // so that all of many changes survive as often as none
	for _, change := range m.changes {
		if random.Float64() >= lost {
			change.apply(names)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) { // one seed, one outcome
		f := names[name]
		data := slices.Clone(f.durable)
		if f.mapped {
			data = f.sectors(random)
		}
		for _, w := range f.writes {
			if w.synced {
				data = apply(data, w)
				continue
			}
			switch random.IntN(3) {
			case 0: // lost
			case 1:
				data = apply(data, w)
			case 2:
				if w.cut {
					continue // a truncation is atomic
				}
				w.data = w.data[:random.IntN(len(w.data)+1)]
				data = apply(data, w)
			}
		}
		found.names[name] = &memFile{mem: found, data: data, durable: slices.Clone(data)}
	}
	found.durable = maps.Clone(found.names)
	return found
}

// sector is the number of bytes that a disk writes atomically.
const sector = 512

// sectors returns what a power failure may leave of a mapped file: each sector has its durable or
// its current contents.
func (f *memFile) sectors(random *rand.Rand) []byte {
	data := make([]byte, len(f.data))
	copy(data, f.durable)
	for at := 0; at < len(data); at += sector {
		if random.IntN(2) == 0 {
			end := min(at+sector, len(data))
			copy(data[at:end], f.data[at:end])
		}
	}
	return data
}

func apply(data []byte, w memWrite) []byte {
	if w.cut {
		return data[:min(w.at, int64(len(data)))]
	}
	if end := int(w.at) + len(w.data); end > len(data) {
		data = append(data, make([]byte, end-len(data))...)
	}
	copy(data[w.at:], w.data)
	return data
}

// step counts a change, and returns the planned failure if it is due. It requires that m.mu is
// held.
func (m *Mem) step() error {
	m.steps++
	for i, err := range m.failing {
		if at := m.failAt + i; m.failAt > 0 && (at == m.steps || at < m.steps && err == ErrPower) {
			return err
		}
	}
	return nil
}

// change applies a change of names, which a crash may undo.
func (m *Mem) change(c memChange) error {
	if err := m.step(); err != nil {
		return err
	}
	c.apply(m.names)
	m.changes = append(m.changes, c)
	return nil
}

// Create creates an empty file.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &memFile{mem: m}
	if err := m.change(memChange{to: name, file: f}); err != nil {
		return nil, err
	}
	return f, nil
}

// Open opens an existing file.
func (m *Mem) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, found := m.names[name]; found {
		return f, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Map opens or creates a memory-mapped file. Its size must not change while it is mapped.
func (m *Mem) Map(name string, size int) (*Map, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	if f == nil || len(f.data) < minMapSize {
		if m.space >= 0 && int64(size) > m.space-m.used() {
			return nil, syscall.ENOSPC
		}
		f = &memFile{mem: m, data: make([]byte, size)}
		if err := m.change(memChange{to: name, file: f}); err != nil {
			return nil, err
		}
	}
	f.mapped = true
	return &Map{f.data, func() error { return nil }}, nil
}

// Rename replaces an existing file.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[from]
	if f == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	return m.change(memChange{from, to, f})
}

// Remove removes a file.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	return m.change(memChange{from: name})
}

// List returns the names of all files, in order.
func (m *Mem) List() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.names)), nil
}

// Sync makes creations, renames and removals durable.
func (m *Mem) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(); err != nil {
		return err
	}
	m.durable, m.changes = maps.Clone(m.names), nil
	return nil
}

// Lock does not create a file.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[name] {
		return nil, ErrLocked
	}
	m.locks[name] = true
	return unlocker(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.locks, name)
	}), nil
}

type unlocker func()

func (u unlocker) Close() error {
	u()
	return nil
}

func (f *memFile) ReadAt(b []byte, at int64) (int, error) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
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
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	w := memWrite{at: at, data: slices.Clone(b)}
	if err := f.mem.step(); err != nil {
		w.failed = true
		f.writes = append(f.writes, w)
		return 0, err
	}
	if grows := at + int64(len(b)) - int64(len(f.data)); f.mem.space >= 0 && grows > 0 {
		if free := f.mem.space - f.mem.used(); grows > free {
			w.data = w.data[:max(0, int64(len(b))-grows+max(free, 0))]
			f.write(w)
			return len(w.data), syscall.ENOSPC
		}
	}
	f.write(w)
	return len(b), nil
}

func (f *memFile) write(w memWrite) {
	if len(w.data) > 0 {
		f.writes = append(f.writes, w)
		f.data = apply(f.data, w)
	}
}

// Truncate truncates the file. It counts as a step.
func (f *memFile) Truncate(size int64) error {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if size > int64(len(f.data)) {
		return &fs.PathError{Op: "truncate", Path: "mem", Err: syscall.EINVAL}
	}
	w := memWrite{at: size, cut: true}
	if err := f.mem.step(); err != nil {
		w.failed = true
		f.writes = append(f.writes, w)
		return err
	}
	f.writes = append(f.writes, w)
	f.data = f.data[:size:size] // later writes must not change older copies
	return nil
}

func (f *memFile) Sync() error {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	// Systems drop what they could not write, so it is unsure for ever.
	if err := f.mem.step(); err != nil {
		for i := range f.writes {
			f.writes[i].unsure = !f.writes[i].synced
		}
		return err
	}
	writes := f.writes
	f.writes = nil
	for _, w := range writes {
		switch {
		case w.unsure:
			f.writes = append(f.writes, w)
		case w.failed:
		case len(f.writes) > 0:
			w.synced = true
			f.writes = append(f.writes, w)
		default: // cheaper than a copy: large files are synced after every few writes
			f.durable = apply(f.durable, w)
		}
	}
	if len(f.writes) == 0 && (f.mapped || f.flipped) {
		f.durable = slices.Clone(f.data)
		f.flipped = false
	}
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f *memFile) Start(int64, int64) {}
func (f *memFile) Random()            {}
func (f *memFile) Close() error       { return nil }
