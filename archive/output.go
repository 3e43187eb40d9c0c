package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// unfinished ends the name of a file that is being written, or whose writer crashed. A file without
// it is complete and final, and can be copied or indexed at any time.
const unfinished = ".open"

// output is a sequence of files, of which at most one is open. Its methods require that mu is held.
type output struct {
	mu sync.Mutex
	id atomic.Pointer[warc.ID] // of the warcinfo record of file, or the next one

	dir       vfs.FS
	finished  string // the file name extension
	maxFile   int64  // negative: no limit
	syncEvery int64  // negative: only at the end
	info      []byte
	encoder   *encoder // of the warcinfo records
	clock     *clock

	serial   int                 // of the next file
	file     *durable.SyncedFile // nil if none is open
	name     string              // of file, when it is finished
	captures int64               // in file
	whole    int64               // end of its last complete capture
	end      int64               // of the last write
	synced   int64               // end of the part that is known to be on disk
	started  int64               // end of the part that the system was asked to write
	lost     error               // why captures may not be on disk
	done     []string            // files that were finished, until they are announced
	forcing  bool                // a goroutine forces file to disk
	forces   sync.WaitGroup
}

// begin makes sure that a file with room for one more capture is open. A new file is created here
// and not when the last one is full, so that closing the archive leaves no empty file. An error
// from finishing the full file does not harm its captures, but must be reported: the next append
// returns it. After it no file is open, and the next attempt creates one.
func (o *output) begin() error {
	if o.file != nil && o.maxFile >= 0 && o.whole >= o.maxFile {
		if err := o.finish(); err != nil {
			return err
		}
	}
	if o.file != nil {
		return nil
	}
	return o.create()
}

// renew makes the ID of the next file.
func (o *output) renew() {
	id := warc.NewID()
	o.id.Store(&id)
}

// create creates a file with its warcinfo record. Its name is forced to disk at once, since syncing
// a file is useless if its name is lost.
func (o *output) create() error {
	now := time.Now()
	name := o.newName(now)
	if exists(o.dir, name+unfinished) || exists(o.dir, name) {
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	return o.createAs(name, name+unfinished, now)
}

// createAs creates a file that is called otherwise on disk.
func (o *output) createAs(name, onDisk string, now time.Time) error {
	f, err := o.dir.Create(onDisk)
	if err != nil {
		return err
	}
	o.serial++
	o.file, o.name, o.captures = &durable.SyncedFile{File: f}, name, 0
	o.whole, o.end, o.synced, o.started = 0, 0, 0, 0
	o.encoder.begin(o)
	o.encoder.h = warc.Head{Type: "warcinfo", ID: *o.id.Load(), Date: now, Filename: name,
		ContentType: "application/warc-fields"}
	if err = o.encoder.record(o.info); err == nil {
		err = o.dir.Sync()
	}
	if err != nil {
		o.abandon()
		return err
	}
	o.whole = o.end
	return nil
}

// markSize is the number of bytes of the ID of a file that are in its name. No body can know them.
const markSize = 6

// newName makes a name of a prefix, the time, the serial of the file and the end of its ID. That
// makes it unique among archives with the same prefix and millisecond, whose files may be mixed
// later, and tells the ID of a file whose first record is damaged.
func (o *output) newName(now time.Time) string {
	id := o.id.Load()
	return fmt.Sprintf("spinneret-%017d-%05d-%x%s", o.clock.stamp(now), o.serial,
		id[len(id)-markSize:], o.finished)
}

// clock gives every file a unique time, later than those of all earlier files. Names then sort in
// the order of creation, and records refer only to earlier files. The zero clock is ready to use.
// Its methods are safe for concurrent use.
type clock struct {
	mu   sync.Mutex
	last int64 // the digits of a name
}

// seen records the name of an existing file.
func (c *clock) seen(name string) {
	m := ours.FindStringSubmatch(strings.TrimSuffix(name, unfinished))
	if m != nil && m[1] < "99991232" { // a stranger may have chosen it: 18 digits would not be one of our names
		stamp, _ := strconv.ParseInt(m[1], 10, 64) // of 17 digits
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = max(c.last, stamp)
	}
}

// stamp returns a time in milliseconds as 17 decimal digits, starting with the year.
func (c *clock) stamp(now time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	digits := strings.Replace(now.UTC().Format("20060102150405.000"), ".", "", 1)
	stamp, _ := strconv.ParseInt(digits, 10, 64)
	c.last = max(stamp, c.last+1)
	return c.last
}

// Write appends to the file. It requires that begin was called.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.file.WriteAt(p, o.end)
	o.end += int64(n)
	// A later sync need not wait for bytes that the system has already written.
	if o.syncEvery >= 0 && o.end-o.started >= startEvery {
		o.file.Start(o.started, o.end-o.started)
		o.started = o.end
	}
	return n, err
}

// startEvery is the number of bytes after which the system is asked to write them to disk.
const startEvery = 4 << 20

// transact calls write, which writes to the file. If it returns an error, the file is truncated to
// its last complete capture. It requires that begin was called.
func (o *output) transact(write func() error) error {
	written := false
	defer func() {
		if !written { // a caller's reader has panicked
			_ = o.drop(nil)
		}
	}()
	err := write()
	written = true
	if err != nil {
		return o.drop(err)
	}
	if o.syncEvery >= 0 && o.end-o.synced >= o.syncEvery {
		if err := o.sync(); err != nil {
			return err
		}
	}
	o.captures++
	o.whole = o.end
	o.forceEarly()
	return nil
}

// forceEarly starts forcing the file to disk at half of syncEvery, so that no capture has to wait.
func (o *output) forceEarly() {
	if o.forcing || o.syncEvery < 2*startEvery || o.end-o.synced < o.syncEvery/2 {
		return
	}
	o.forcing = true
	o.forces.Go(func() {
		_ = o.force() // the next one returns it
		o.mu.Lock()
		defer o.mu.Unlock()
		o.forcing = false
	})
}

// drop truncates the file after a failed write. If that fails too, the file is abandoned, and the
// next capture goes to a new one.
func (o *output) drop(cause error) error {
	o.end = o.whole
	if err := o.file.Truncate(o.whole); err != nil {
		o.abandon()
		return fmt.Errorf("%w; then %w", cause, err)
	}
	return cause
}

// sync forces the file to disk. After a failure the file is abandoned, and never gets its final
// name.
func (o *output) sync() error {
	if o.synced == o.end {
		return nil
	}
	if err := o.file.Sync(); err != nil {
		o.fail()
		return err
	}
	o.synced = o.end
	return nil
}

// fail abandons a file that could not be forced to disk.
func (o *output) fail() {
	_ = o.file.Truncate(o.whole) // a capture that is being written is not acknowledged
	o.abandon()
}

// force forces earlier appends to disk. Other goroutines may append during the sync. Once captures
// may be lost it always fails: what is not on disk now will not be later. It locks o.mu.
func (o *output) force() error {
	o.mu.Lock()
	file, end, lost := o.file, o.end, o.lost
	done := file == nil || o.synced == end
	o.mu.Unlock()
	if done || lost != nil {
		return lost
	}
	err := file.Sync()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil && o.file == file:
		o.fail()
	case err != nil:
		o.lost = err // even if finish succeeded
	case o.file == file:
		o.synced = max(o.synced, end)
	}
	return err
}

// finish closes the file and gives it its final name, unless it has no capture. The order matters:
// a power failure between two steps must not leave the final name on an incomplete file.
func (o *output) finish() error {
	if o.captures == 0 {
		o.abandon()
		return nil
	}
	if err := o.sync(); err != nil {
		return err
	}
	f := o.file
	o.file = nil
	o.renew()
	if err := f.Close(); err != nil {
		return err
	}
	if err := o.dir.Rename(o.name+unfinished, o.name); err != nil {
		return err
	}
	o.done = append(o.done, o.name)
	return o.dir.Sync()
}

// abandon closes the file under its unfinished name, or removes it if it has no capture. Captures in
// it are forced to disk, or known to be lost: no later sync will see the file. Other errors are
// ignored: a more specific one is returned already.
func (o *output) abandon() {
	if o.captures > 0 && o.synced < o.whole {
		if err := o.file.Sync(); err != nil {
			o.lost = err
		}
	}
	_ = o.file.Close()
	o.file = nil
	o.renew()
	if o.captures == 0 {
		_ = o.dir.Remove(o.name + unfinished)
	}
}

// probe checks that files can be created, before a crawl has fetched anything.
func (o *output) probe() error {
	name := o.newName(time.Now()) + ".probe"
	f, err := o.dir.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), o.dir.Remove(name))
}
