package extent

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Name is the data file.
const Name = "buckets"

// FileHeader is the beginning of the data file. It is on disk: do not change it, add a version.
const FileHeader = "SATBKT2\n"

// A File is the data file. Its methods are safe for concurrent use.
//
// After a crash, the last checkpoint may need space that has been released. So released space is
// reused only after the next checkpoint, and not while a reader that began before is still reading.
type File struct {
	file    vfs.File
	writers chan []byte // memory for the extents being written

	mu       sync.Mutex
	space    space
	released []Span   // since the last Cut
	parked   []Cut    // not needed by a checkpoint, but perhaps by readers
	pins     []uint64 // numbers of the readers, in order
	lastPin  uint64

	size    atomic.Int64 // of the file; written with mu
	garbage atomic.Int64 // grains in released, to be read without mu
}

// Create makes an empty data file.
func Create(fs vfs.FS, writers int) (*File, error) {
	file, err := fs.Create(Name)
	if err != nil {
		return nil, fmt.Errorf("satstore: create %s: %w", Name, err)
	}
	f := newFile(file, writers)
	f.space.end = 1
	f.size.Store(int64(len(FileHeader)))
	if _, err := file.WriteAt([]byte(FileHeader), 0); err != nil {
		durable.Discard(fs, Name, file)
		return nil, fmt.Errorf("satstore: write %s: %w", Name, err)
	}
	return f, nil
}

func newFile(file vfs.File, writers int) *File {
	f := &File{file: file, writers: make(chan []byte, writers)}
	for range writers {
		f.writers <- nil
	}
	file.Random() // extents are read whole
	return f
}

// A Cut is space that was released before a moment.
type Cut struct {
	spans []Span
	pin   uint64 // readers up to this number began before, and may need the space
}

// OpenFile opens a data file in which the given spans are used.
func OpenFile(fs vfs.FS, used []Span, writers int) (*File, error) {
	file, err := fs.Open(Name)
	if err != nil {
		return nil, fmt.Errorf("satstore: open: %w", durable.Required(Name, err))
	}
	f := newFile(file, writers)
	var size int64
	if err = f.CheckHeader(); err == nil {
		size, err = file.Size()
		f.size.Store(size)
	}
	var overlap int64
	if f.space, overlap = newSpace(used); err == nil && overlap >= 0 {
		err = durable.Corrupt(Name, overlap, "two buckets overlap")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// CheckHeader reads the beginning of the file.
func (f *File) CheckHeader() error {
	head := make([]byte, len(FileHeader))
	err := readFull(f.file, head, 0)
	if err == nil && string(head) != FileHeader {
		err = durable.Corrupt(Name, 0, "not a file of buckets, or of another version")
	}
	return err
}

// OpenDamaged opens a data file in which the given spans are used, without any check. It only reads that
// file. New extents go to another one, which the caller closes.
func OpenDamaged(fs vfs.FS, used []Span, more vfs.File) (*File, error) {
	file, err := fs.Open(Name)
	if err != nil {
		return nil, fmt.Errorf("satstore: open: %w", durable.Required(Name, err))
	}
	size, err := file.Size()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	end := int64(1)
	for _, u := range used {
		end = max(end, int64(u.End()))
	}
	end = min(max(end, (size+grain-1)/grain), MaxGrains)
	f := newFile(continued{File: file, end: end * grain, more: more}, 1)
	f.space.end = uint32(end)
	f.size.Store(end * grain)
	return f, nil
}

// continued is a file that is only read, continued by another one from an offset on.
type continued struct {
	vfs.File
	end  int64
	more vfs.File
}

func (f continued) ReadAt(b []byte, at int64) (int, error) {
	if at < f.end {
		return f.File.ReadAt(b, at)
	}
	return f.more.ReadAt(b, at-f.end)
}

func (f continued) WriteAt(b []byte, at int64) (int, error) { return f.more.WriteAt(b, at-f.end) }

func (f continued) Start(at, n int64) { f.more.Start(at-f.end, n) }

// errFull means that an offset would not fit in 32 bits.
var errFull = errors.New("the file has its maximum size of 16 TiB")

func (f *File) take(n uint32) (at uint32, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, fits := f.space.take(n)
	if !fits {
		return 0, errFull
	}
	return at, nil
}

// Write writes groups, several at a time. For each one, a goroutine calls done, which must adopt
// it. After an error, Write may be called again with the same groups.
func (f *File) Write(groups []*Group, done func(*Group, Extent)) error {
	var writes sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, g := range groups {
		if g.done {
			continue
		}
		mu.Lock()
		stop := failed != nil
		mu.Unlock()
		if stop {
			break
		}
		image := g.image((<-f.writers)[:0]) // while others are being written
		writes.Go(func() {
			e := g.Extent
			err := f.place(&e, image)
			if err == nil {
				done(g, e)
			} else {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
			f.writers <- image
		})
	}
	writes.Wait()
	return failed
}

// image appends the blocks of a group.
func (g *Group) image(dst []byte) []byte {
	first := g.Extent.First
	for _, b := range g.buffers {
		for i := range b.cuts {
			start, count := len(dst), 0
			dst = append(dst, make([]byte, Header)...)
			dst, count = b.block(i, dst)
			h := Block{Magic: g.Magic, Bucket: g.Bucket, First: first, Count: uint32(count)}
			h.Seal(dst, start)
			first += uint64(count)
		}
	}
	return dst
}

// Put writes a block that belongs to no Part, and returns its extent.
func (f *File) Put(b Block, generation uint32) (Extent, error) {
	image := append(append((<-f.writers)[:0], make([]byte, Header)...), b.Raw...)
	defer func() { f.writers <- image }()
	b.Seal(image, 0)
	e := Extent{Generation: generation}
	if err := f.place(&e, image); err != nil {
		return Extent{}, err
	}
	return e, nil
}

// place finds space for an extent and writes it there.
func (f *File) place(e *Extent, image []byte) error {
	n := grains(len(image))
	at, err := f.take(n)
	if err == nil {
		e.At, e.Size = at, uint32(len(image))
		if err = f.writeAt(*e, image); err != nil {
			f.giveBack(e.Span())
		}
	}
	if err != nil {
		return fmt.Errorf("satstore: write %s: %w", Name, err)
	}
	return nil
}

// writeAt writes an extent, padded to whole grains.
func (f *File) writeAt(e Extent, image []byte) error {
	size := int(e.Span().N) * grain
	image = append(image, make([]byte, size-len(image))...)
	_, err := f.file.WriteAt(image, e.Offset())
	f.file.Start(e.Offset(), int64(size))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size.Store(max(f.size.Load(), e.Offset()+int64(size))) // even after a partial write
	return err
}

// giveBack frees space that was never referred to.
func (f *File) giveBack(s Span) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space.give([]Span{s})
}

// ErrClosed is satstore's error of this name.
var ErrClosed = errors.New("satstore: store is closed")

// readFull knows that Store.Close may close a file during a walk.
func readFull(f vfs.File, b []byte, at int64) error {
	err := durable.ReadFull(f, Name, b, at)
	if errors.Is(err, fs.ErrClosed) {
		return ErrClosed
	}
	return err
}

// Read fills b, which must have the size of the extent. If the disk cannot read some sectors, the error
// wraps EIO, and those are zeros, so that the checksums of blocks say which are lost.
func (f *File) Read(b []byte, e Extent) error {
	err := readFull(f.file, b, e.Offset())
	if errors.Is(err, syscall.EIO) {
		if other := readFull(durable.SalvageFile(f.file), b, e.Offset()); other != nil {
			return other
		}
	}
	return err
}

// Release frees space after the next checkpoint.
func (f *File) Release(s Span) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, s)
	f.garbage.Add(int64(s.N))
}

// Wasteful reports whether more than a number of bytes, and more than half of the file, would become free
// with a checkpoint.
func (f *File) Wasteful(bytes int64) bool {
	garbage := f.garbage.Load() * grain
	return garbage > bytes && garbage > f.size.Load()/2
}

// Cut returns the space released so far, for Free or Keep.
func (f *File) Cut() Cut {
	f.mu.Lock()
	defer f.mu.Unlock()
	cut := Cut{f.released, f.lastPin}
	f.released = nil
	f.garbage.Store(0)
	return cut
}

// Keep takes back a Cut after its checkpoint has failed.
func (f *File) Keep(cut Cut) {
	for _, s := range cut.spans {
		f.Release(s)
	}
}

// Free frees the space of a Cut once its checkpoint is on disk, and truncates the file if its end
// is free. Space that a reader may need waits for a later Free. A reader that began after the Cut
// needs none of it, so that space is reused even if there is a reader at every moment.
func (f *File) Free(cut Cut) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parked = append(f.parked, cut)
	f.parked = slices.DeleteFunc(f.parked, func(c Cut) bool {
		if len(f.pins) > 0 && f.pins[0] <= c.pin {
			return false
		}
		f.space.give(c.spans)
		return true
	})
	end := int64(f.space.end) * grain
	if f.size.Load() <= end {
		return nil
	}
	if err := f.file.Truncate(end); err != nil {
		return fmt.Errorf("satstore: shorten %s: %w", Name, err)
	}
	f.size.Store(end)
	return nil
}

// Pin prevents the reuse of all space in use now, until Unpin with the number that it returns.
func (f *File) Pin() (pin uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastPin++
	f.pins = append(f.pins, f.lastPin)
	return f.lastPin
}

// Unpin ends a Pin.
func (f *File) Unpin(pin uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pins = slices.DeleteFunc(f.pins, func(p uint64) bool { return p == pin })
}

// Size returns the size of the file, and how much of it is free or about to be.
func (f *File) Size() (bytes, free int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	free = f.space.freeGrains()
	for _, c := range append(slices.Clip(f.parked), Cut{spans: f.released}) {
		for _, s := range c.spans {
			free += int64(s.N)
		}
	}
	return f.size.Load(), free * grain
}

// Sync returns once everything written is on disk.
func (f *File) Sync() error {
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("satstore: sync %s: %w", Name, err)
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
