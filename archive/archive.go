package archive

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// ErrClosed is returned by every method that writes, once the archive is closed.
var ErrClosed = errors.New("archive: closed")

// ErrInvalid is wrapped by the error for a [Capture] that cannot be written as a valid record.
// Appending the same capture again cannot help.
var ErrInvalid = errors.New("archive: invalid capture")

// What zero means in [Options].
const (
	DefaultMaxFile   = 1 << 30
	DefaultPrefix    = "spinneret"
	DefaultLevel     = 6
	DefaultSyncEvery = 64 << 20
)

// Options says how an [Archive] writes. The zero Options is the recommendation.
type Options struct {
	// MaxFile is the size in bytes from which on a file takes no more captures; a record is
	// never split. 0 means 1 GiB, which the standard recommends, and which is small enough to
	// copy or repair one at a time and large enough that a year of crawling is a short list.
	// Negative means one file without limit.
	MaxFile int64

	// Prefix begins the file names: letters, digits, dots, hyphens and underscores.
	// "" means "spinneret".
	Prefix string

	// Level is the effort of gzip, from 1 to 9. 0 means 6. Negative means no compression, still
	// as gzip.
	Level int

	// Info holds named fields for the warcinfo record of each file, such as operator, robots,
	// description or http-header-user-agent. nil means software, format and conformsTo alone;
	// these are there in any case, unless Info has another value, or "" to leave one out.
	Info map[string]string

	// SyncEvery is the number of bytes in files after which they are forced to disk: more than
	// that is not lost in a power cut. It counts bytes and not seconds, since a system left alone
	// writes out what is half a minute old. 1 makes every single Append wait for the disk.
	// 0 means 64 MiB, which is about a second of a disk's time. Negative means only when a file
	// is finished, and when Sync is called.
	SyncEvery int64

	// Compressors is how many captures may be compressed at one time; more callers wait. It bounds
	// the memory of the archive, see Limits in the package comment. 0 means one for each core
	// that Go may use, and so does a negative number.
	Compressors int
}

// Archive is a directory of WARC files that grows. Its methods are safe for concurrent use.
type Archive struct {
	encoders chan *encoder // those at rest, out of as many as may work
	buffered int           // up to which size a capture is compressed outside of the lock

	mu     sync.Mutex // guards what follows
	out    output
	stats  Stats
	closed bool
}

// Location tells where the response record of a capture lies.
type Location struct {
	// File is the name of the file in the directory. As long as the file is being written, and
	// for ever if its writer died, the name on disk has ".open" after it.
	File string

	// Offset and Length delimit one gzip member, which holds the record and nothing else.
	Offset, Length int64
}

// Stats counts what an [Archive] has done since it was opened.
type Stats struct {
	Files    int64 // begun
	Captures int64 // appended
	Failed   int64 // captures that were valid but could not be written
	Records  int64 // of the captures
	RawBytes int64 // of these records
	Bytes    int64 // of these records, compressed
}

// Open makes the directory if it is missing and checks that files can be made in it. It begins no
// file yet, and leaves those that are there alone.
func Open(dir string, opts Options) (*Archive, error) {
	d, err := makeDir(dir)
	if err != nil {
		return nil, openError(err)
	}
	return open(d, opts)
}

// openError adds what to do. The cause names the path.
func openError(err error) error {
	return fmt.Errorf("archive: open: %w: give a directory in which this process may make files",
		err)
}

// open looks at all options before it touches the disk, so that a refusal leaves no trace.
func open(dir directory, opts Options) (*Archive, error) {
	level, err := gzipLevel(opts.Level)
	if err != nil {
		return nil, err
	}
	prefix := cmp.Or(opts.Prefix, DefaultPrefix)
	if !isFileName(prefix) {
		return nil, fmt.Errorf("archive: open: Prefix %.100q cannot begin a file name", prefix)
	}
	info, err := infoBlock(opts.Info)
	if err != nil {
		return nil, err
	}
	n := opts.Compressors
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	a := &Archive{encoders: make(chan *encoder, n), buffered: maxBuffered, out: output{
		dir: dir, prefix: prefix, info: info, encoder: newEncoder(level),
		maxFile:   cmp.Or(opts.MaxFile, DefaultMaxFile),
		syncEvery: cmp.Or(opts.SyncEvery, DefaultSyncEvery),
	}}
	if err := a.out.probe(); err != nil {
		return nil, openError(err)
	}
	for range n {
		a.encoders <- newEncoder(level) // small until it is used
	}
	return a, nil
}

// Append writes the records of one capture and returns where its response is. When it returns nil
// the records have been handed to the operating system.
//
// After an error the capture is not in the archive, unless the disk refused even to cut a file
// back, which then keeps its name that ends in ".open". The error wraps [ErrInvalid], [ErrClosed]
// or the cause, such as syscall.ENOSPC; in the last case the same capture can be appended again as
// soon as the cause is mended.
func (a *Archive) Append(c Capture) (Location, error) {
	if err := c.check(); err != nil {
		return Location{}, err
	}
	// Waiting here is what bounds memory: each goroutine that got past holds a compressor.
	e := <-a.encoders
	defer func() { a.encoders <- e }()
	if c.size() > a.buffered {
		return a.write(e, &c)
	}
	if err := e.capture(&c, nil); err != nil {
		return Location{}, fmt.Errorf("archive: compress: %w", err)
	}
	return a.write(e, nil)
}

// write brings a capture into a file: c, or what e has in its buffer if c is nil. Only here
// captures get their order, which is that of the lock and not that of their times.
func (a *Archive) write(e *encoder, c *Capture) (Location, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return Location{}, ErrClosed
	}
	err := a.out.begin()
	start := a.out.whole
	if err == nil {
		err = a.out.transact(e, c)
	}
	if err != nil {
		a.stats.Failed++
		return Location{}, fmt.Errorf(
			"archive: append: %w: not kept; mend the cause and append it again", err)
	}
	a.stats.Captures++
	a.stats.Records += e.records
	a.stats.RawBytes += e.raw
	a.stats.Bytes += e.n
	return Location{File: a.out.name, Offset: start + e.last, Length: e.n - e.last}, nil
}

// Sync forces to disk what was appended, for a caller who is about to note elsewhere that these
// captures are kept. Appends wait meanwhile.
//
// An error means that captures appended since the last Sync that returned nil may be lost in a
// power cut, for good: no later Sync makes up for them. It is told once.
func (a *Archive) Sync() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	if err := a.out.checkpoint(); err != nil {
		return fmt.Errorf("archive: sync: %w: append again what came after the last sync", err)
	}
	return nil
}

// Stats returns the counts as of now. They fit together: none is ahead of another.
func (a *Archive) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	stats := a.stats
	stats.Files = int64(a.out.serial)
	return stats
}

// Files returns the sorted names of all WARC files in the directory, whoever wrote them, as they
// are on disk now: the current file and those of dead writers end in ".open". Files of one prefix
// sort by the time at which they were begun.
func (a *Archive) Files() ([]string, error) {
	a.mu.Lock() // no file is renamed meanwhile, and so none is missed
	defer a.mu.Unlock()
	names, err := a.out.dir.list()
	if err != nil {
		return nil, fmt.Errorf("archive: list files: %w", err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasSuffix(strings.TrimSuffix(name, unfinished), finished)
	}), nil
}

// Close finishes the current file. Even if it fails the file is closed and holds every capture
// that was acknowledged, but keeps the name that ends in ".open". Closing again does nothing.
func (a *Archive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.out.file == nil {
		return nil
	}
	if err := a.out.finish(); err != nil {
		return fmt.Errorf("archive: close: %w: the last file may not be safe from a power cut", err)
	}
	return nil
}
