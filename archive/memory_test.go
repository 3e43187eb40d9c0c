package archive

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// store is the WARC side of an archive, without an index.
type store struct{ *files }

func open(dir vfs.FS, opts Options) (*store, error) {
	s, err := opts.validate()
	if err != nil {
		return nil, err
	}
	f, err := newFiles(dir, s)
	return &store{f}, err
}

func (s *store) Append(c Capture) (Location, error) {
	if err := c.check(); err != nil {
		return Location{}, err
	}
	return s.append(&c, unindexed{})
}

// unindexed is an indexer that finds no repeats.
type unindexed struct{}

func (unindexed) repeats(*[sha1.Size]byte) (o original, err error)           { return o, nil }
func (unindexed) written(original, *[sha1.Size]byte, int64, Location, int64) {}

func (s *store) Sync() error {
	if s.isClosed() {
		return ErrClosed
	}
	return s.force()
}

func (s *store) Files() ([]string, error) { return s.list() }
func (s *store) Close() error             { return s.close() }

func (s *store) Stats() (stats Stats) {
	s.count(func(s *Stats) { stats = *s })
	return stats
}

// out returns the output, which must be idle.
func (s *store) out() *output {
	return s.files.out
}

// testEncoder compresses with gzip at a level as in Options.
func testEncoder(level int) *encoder { return newEncoder(warc.EncoderOptions{Level: level}) }

// memory is a directory that can fail. Its methods are safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	files map[string]*memFile
	room  int              // bytes that can still be written; negative: no limit
	fail  map[string]error // by operation, as in log
	log   []string         // operations done, without repetition
}

func newMemory() *memory {
	return &memory{files: map[string]*memFile{}, room: -1, fail: map[string]error{}}
}

// step logs an operation and returns its error. It requires that m.mu is held.
func (m *memory) step(op string) error {
	if len(m.log) == 0 || m.log[len(m.log)-1] != op {
		m.log = append(m.log, op)
	}
	return m.fail[op]
}

func (m *memory) Create(name string) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("create"); err != nil {
		return nil, err
	}
	if _, taken := m.files[name]; taken {
		return nil, fs.ErrExist
	}
	f := &memFile{dir: m}
	m.files[name] = f
	return f, nil
}

func (m *memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("rename"); err != nil {
		return err
	}
	if _, taken := m.files[to]; taken || m.files[from] == nil {
		return errors.New("rename over a file, or of none")
	}
	m.files[to] = m.files[from]
	delete(m.files, from)
	return nil
}

func (m *memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("remove"); err != nil {
		return err
	}
	delete(m.files, name)
	return nil
}

func (m *memory) List() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.files)), m.step("list")
}

func (m *memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.step("sync names")
}

// set changes what fails from now on.
func (m *memory) set(room int, fail map[string]error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.room, m.fail = room, fail
}

// contents returns the bytes of all files.
func (m *memory) contents() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	contents := map[string][]byte{}
	for name, f := range m.files {
		contents[name] = slices.Clone(f.data)
	}
	return contents
}

type memFile struct {
	dir    *memory
	data   []byte
	closed bool
}

// WriteAt writes as much as there is room for, like a real disk that becomes full.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	if f.closed {
		return 0, fs.ErrClosed
	}
	n, err := len(p), f.dir.step("write")
	if room := f.dir.room; room >= 0 && n > room {
		n, err = room, syscall.ENOSPC
	}
	if f.dir.room >= 0 {
		f.dir.room -= n
	}
	if grow := int(off) + n - len(f.data); grow > 0 {
		f.data = append(f.data, make([]byte, grow)...)
	}
	copy(f.data[off:], p[:n])
	return n, err
}

// Open returns the file itself.
func (m *memory) Open(name string) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[name]; f != nil {
		return f, nil
	}
	return nil, fs.ErrNotExist
}

func (m *memory) Map(string, int) (*vfs.Map, error) { return nil, errors.ErrUnsupported }
func (m *memory) Lock(string) (io.Closer, error)    { return io.NopCloser(nil), nil }

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, off)
}

func (f *memFile) Size() (int64, error) { return int64(len(f.data)), nil }
func (f *memFile) Start(int64, int64)   {}
func (f *memFile) Random()              {}

func (f *memFile) Truncate(size int64) error {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	if err := f.dir.step("truncate"); err != nil {
		return err
	}
	f.data = f.data[:size]
	return nil
}

func (f *memFile) Sync() error {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	return f.dir.step("sync")
}

func (f *memFile) Close() error {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	f.closed = true
	return f.dir.step("close")
}
