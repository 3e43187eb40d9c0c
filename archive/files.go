package archive

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// files is the WARC side of an archive: a directory of files that grows. Its methods are safe for
// concurrent use.
type files struct {
	encoders chan *encoder // idle ones
	out      *output       // nil if the archive is only read
	buffered int           // maximum size of a capture that is compressed before out is locked
	dir      vfs.FS
	finished func(name string) // nil if nobody wants to know
	another  func() *output    // an output of the same kind

	mu     sync.Mutex // guards what follows
	stats  Stats
	closed bool
}

// newFiles makes the compressors and the output that s asks for, and checks that files can be created.
func newFiles(dir vfs.FS, s settings) (*files, error) {
	f := &files{encoders: make(chan *encoder, s.compressors), buffered: maxBuffered, dir: dir}
	names, err := dir.List()
	if err != nil {
		return nil, openError(err)
	}
	clock := &clock{}
	for _, name := range names {
		clock.seen(name)
	}
	f.another = func() *output {
		return &output{dir: dir, info: s.info,
			encoder: newEncoder(s.encoder), maxFile: s.maxFile, syncEvery: s.syncEvery,
			finished: s.encoder.Compression.Extension(), clock: clock}
	}
	f.out = f.another()
	f.out.renew()
	if err := f.out.probe(); err != nil {
		return nil, openError(err)
	}
	for range s.compressors {
		f.encoders <- newEncoder(s.encoder) // small until it is used
	}
	return f, nil
}

// indexer finds the version whose body a capture repeats, and adds the capture to the index when it
// is written at start and the file is complete up to end. The output is locked then.
type indexer interface {
	repeats(body *[sha1.Size]byte) (original, error)
	written(of original, body *[sha1.Size]byte, start int64, loc Location, end int64)
}

// append writes the records of one checked capture, and returns the location of its response.
func (f *files) append(c *Capture, x indexer) (Location, error) {
	defer f.announce() // without a compressor: it may append, and may take as long as an upload
	// Waiting here bounds memory: each goroutine past this line holds a compressor.
	e := <-f.encoders
	defer func() { f.encoders <- e }()
	// The digest comes first, as it decides what is written: a repeat is not compressed at all.
	var err error
	if e.sum, err = c.sum(); err != nil {
		return Location{}, err
	}
	of, err := x.repeats(&e.sum)
	if err != nil {
		return Location{}, err
	}
	// A large capture is not buffered in memory. It locks the output until it is written.
	if c.size() > int64(f.buffered) {
		return f.write(e, c, of, x, true)
	}
	if err := e.capture(c, of, *f.out.id.Load(), nil); err != nil {
		return Location{}, fmt.Errorf("archive: compress: %w", err)
	}
	return f.write(e, c, of, x, false)
}

// write writes a capture to the file: c itself, or its encoded form in e. The order of captures is
// decided here, not by their times.
func (f *files) write(e *encoder, c *Capture, of original, x indexer, direct bool) (Location, error) {
	o := f.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.isClosed() {
		return Location{}, ErrClosed
	}
	err := o.begin()
	start := o.whole // where this capture begins, since o is locked
	if err == nil {
		err = o.transact(func() error {
			if direct {
				return e.capture(c, of, *o.id.Load(), o)
			}
			// This happens once per file: it became full after the capture was compressed for it.
			if e.info != *o.id.Load() {
				if err := e.capture(c, of, *o.id.Load(), nil); err != nil {
					return err
				}
			}
			_, err := o.Write(e.buf)
			return err
		})
	}
	if err != nil {
		return Location{}, fmt.Errorf(
			"archive: append: %w: not stored; fix the cause and append it again", err)
	}
	f.count(func(s *Stats) {
		s.Captures++
		s.Bytes += e.n
		if of.profile != "" {
			s.Revisits++
		}
	})
	loc := Location{File: o.name, Offset: start + e.last, Length: e.n - e.last}
	x.written(of, &e.sum, start, loc, o.whole)
	return loc, nil
}

// announce tells which files were finished.
func (f *files) announce() {
	if f.finished == nil {
		return
	}
	f.out.mu.Lock()
	done := f.out.done
	f.out.done = nil
	f.out.mu.Unlock()
	for _, name := range done {
		f.finished(name)
	}
}

// isClosed requires that out is locked, or its answer may be old. Closing locks it too, so it waits
// for a write that began before.
func (f *files) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// count changes or reads the statistics. They have a lock of their own, since Stats must not wait
// for a disk.
func (f *files) count(change func(*Stats)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.stats)
}

// force forces earlier appends to disk.
func (f *files) force() error {
	if err := f.out.force(); err != nil {
		return fmt.Errorf("archive: sync: %w: open the archive again, and append again all captures "+
			"since the last sync", err)
	}
	return nil
}

// list returns the sorted names of all WARC files in the directory.
func (f *files) list() (names []string, err error) {
	if f.out != nil { // exclude renames during the listing, so that no file is missed
		f.out.mu.Lock()
		defer f.out.mu.Unlock()
	}
	if names, err = f.dir.List(); err != nil {
		return nil, fmt.Errorf("archive: list files: %w", err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !isWARC(name) }), nil
}

// isWARC reports whether a name is that of a WARC file, finished or not.
func isWARC(name string) bool {
	name = strings.TrimSuffix(name, unfinished)
	for _, c := range []warc.Compression{warc.Gzip, warc.Zstd, warc.None} {
		if strings.HasSuffix(name, c.Extension()) {
			return true
		}
	}
	return false
}

// finish finishes the current file, if there is one.
func (f *files) finish() error {
	f.out.mu.Lock()
	defer f.out.mu.Unlock()
	if f.out.file == nil {
		return nil
	}
	return f.out.finish()
}

// close finishes the current file.
func (f *files) close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	if f.out == nil {
		return nil
	}
	err := f.finish()
	f.out.forces.Wait()
	f.announce()
	if err != nil {
		err = fmt.Errorf("archive: close: %w: a power failure may lose part of the last file", err)
	}
	return err
}
