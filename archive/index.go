package archive

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The index file, its buckets and its keys. They are on disk: do not change them.
var (
	entriesBucket = []byte("entries")
	filesBucket   = []byte("files")
	metaBucket    = []byte("meta")
	versionKey    = []byte("version")
	version1      = []byte("1")
)

// indexName is the name of the index in the directory of an archive.
const indexName = "index.bolt"

// maxPending is the number of entries that wait in memory for the next commit. A commit rewrites
// every page that it touches, so that many at once, in the order of the keys, cost little: with
// half as many, a third more time goes into writing the same pages again. With more, those who ask
// or append meanwhile would have to wait for seconds.
const maxPending = 1 << 17

// maxLong is the number of bytes for which URLs may wait that have no room in their keys. Few have
// any; strangers may choose to give all of them one of 64 KiB.
const maxLong = 16 << 20

// index finds versions by URL and time. Entries are gathered in memory and committed many at once;
// those that a crash takes are in the WARC files, and are indexed again when the archive is opened.
// Its methods are safe for concurrent use.
type index struct {
	db     *bbolt.DB
	limit  int // of entries that wait
	part   int // of entries in a transaction, and those of one URL beyond
	closed atomic.Bool

	mu      sync.RWMutex
	pending map[string][]entry // by the key of the URL, sorted by time
	count   int                // of them
	long    int                // bytes of URLs in them
	files   map[string]*indexed

	idle txPool // transactions at rest, which are used and ended with mu held

	naming sync.RWMutex // never held while bbolt is asked for something
	names  []string     // of WARC files, by number
}

// indexed is a WARC file that the index knows.
type indexed struct {
	number uint32
	end    int64 // up to which its records are indexed
	kept   int64 // the end that is committed
	dirty  bool  // end is not, or the file itself
}

// openIndex opens or creates the file, and reads the names of the WARC files.
func openIndex(path string, wait time.Duration) (*index, error) {
	// bbolt does not always close the file when it fails, and a lock that stays keeps Repair out.
	var f *os.File
	open := func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		f, err = os.OpenFile(name, flag, mode)
		return f, err
	}
	x, err := tryIndex(path, &bbolt.Options{Timeout: wait, OpenFile: open,
		FreelistType: bbolt.FreelistMapType, NoStatistics: true})
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = ErrLocked
	}
	if err != nil && f != nil {
		unlock(f) // should bbolt have panicked before it came to that
		_ = f.Close()
	}
	return x, err
}

// tryIndex does without statistics, which nobody reads and for which readers wait for one another.
// It leaves the list of free pages on disk: without one bbolt panics in a goroutine of its own
// where it meets a broken page.
func tryIndex(path string, o *bbolt.Options) (x *index, err error) {
	before := guard()
	defer func() { mended(before, recover(), &err) }()
	db, err := bbolt.Open(path, 0o644, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIndex, err)
	}
	x = &index{db: db, limit: maxPending, part: maxPart, pending: map[string][]entry{},
		files: map[string]*indexed{}}
	if err := x.load(path); err != nil {
		_ = db.Close()
		return nil, err
	}
	return x, nil
}

// guard is what a function begins with that uses the B-tree, and its deferred part ends with
// mended:
//
//	before := guard()
//	defer func() { mended(before, recover(), &err) }()
//
// They turn what bbolt does about broken pages into an error: it panics, or follows a pointer out
// of its file.
func guard() (before bool) { return debug.SetPanicOnFault(true) }

// mended is the end of guard. It takes what recover has returned, as that only works in the
// deferred function itself.
func mended(before bool, panicked any, err *error) {
	debug.SetPanicOnFault(before)
	if panicked != nil {
		*err = fmt.Errorf("%w: %v", ErrIndex, panicked)
	}
}

// load makes what is missing in a new file, and refuses one of another version: a later version may
// mean something else by the same bytes. Repair can always make one of this version.
func (x *index) load(path string) error {
	if err := x.whole(path); err != nil {
		return err
	}
	return x.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{entriesBucket, filesBucket, metaBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(metaBucket)
		switch v := meta.Get(versionKey); {
		case v == nil:
			if err := meta.Put(versionKey, version1); err != nil {
				return err
			}
		case !bytes.Equal(v, version1):
			return fmt.Errorf("%w: it has version %.20s", ErrIndex, v)
		}
		return tx.Bucket(filesBucket).ForEach(x.loadFile)
	})
}

// whole makes sure that the file has all pages: what is missing would be a fault of memory.
func (x *index) whole(path string) error {
	return x.db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err == nil && info.Size() < tx.Size() {
			err = fmt.Errorf("%w: it was cut off", ErrIndex)
		}
		return err
	})
}

// loadFile reads what is known of a WARC file: its number is the key; up to where it is indexed and
// its name are the value.
func (x *index) loadFile(key, value []byte) error {
	if len(key) != fileSize || len(value) < 8 ||
		binary.BigEndian.Uint32(key) != uint32(len(x.names)) {
		return fmt.Errorf("%w: broken list of files", ErrIndex)
	}
	name := string(value[8:])
	end := int64(binary.BigEndian.Uint64(value))
	x.files[name] = &indexed{number: uint32(len(x.names)), end: end, kept: end}
	x.names = append(x.names, name)
	return nil
}

// close waits for who reads.
func (x *index) close() error {
	x.closed.Store(true)
	x.mu.Lock()
	x.idle.end()
	x.mu.Unlock()
	return x.db.Close()
}

// file returns the number of a WARC file and up to where it is indexed. A new one gets a number.
func (x *index) file(name string) (number uint32, end int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.fileLocked(name)
	return f.number, f.end
}

// fileLocked requires that x.mu is held.
func (x *index) fileLocked(name string) *indexed {
	f := x.files[name]
	if f == nil {
		f = &indexed{number: uint32(len(x.names)), dirty: true}
		x.files[name] = f
		x.naming.Lock()
		defer x.naming.Unlock()
		x.names = append(x.names, name)
	}
	return f
}

// end returns up to where a WARC file is indexed, if it is known.
func (x *index) end(name string) (int64, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	f := x.files[name]
	if f == nil {
		return 0, false
	}
	return f.end, true
}

// name returns the name of a WARC file by its number.
func (x *index) name(number uint32) string {
	x.naming.RLock()
	defer x.naming.RUnlock()
	if uint64(number) >= uint64(len(x.names)) { // which an int of 32 bits could not tell
		return ""
	}
	return x.names[number]
}

// add notes that the file is indexed up to end, and the entry of a URL if there is one.
func (x *index) add(file, url string, e *entry, end int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.fileLocked(file)
	f.end, f.dirty = end, true
	if e == nil {
		return
	}
	e.file = f.number
	list := x.pending[url]
	at, found := slices.BinarySearchFunc(list, *e, compareEntries)
	if found { // a record that is indexed again, after a crash, has the same key
		list[at] = *e
		return
	}
	x.pending[url] = slices.Insert(list, at, *e)
	x.count++
	x.long += len(e.url)
}

// waiting returns the number of entries that the next commit will write.
func (x *index) waiting() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.count
}

// full tells whether so many entries wait that they should be committed.
func (x *index) full() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.count >= x.limit || x.long >= maxLong
}

// compareEntries orders the entries of one URL as their keys are.
func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.file, b.file),
		cmp.Compare(a.offset, b.offset))
}

// view reads the B-tree and what waits, none of which changes meanwhile. In read, no other method
// of the index may be called but name: who commits may wait for read, and others for who commits.
func (x *index) view(read func(c *bbolt.Cursor) error) (err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.closed.Load() {
		return ErrClosed
	}
	before := guard()
	defer func() { mended(before, recover(), &err) }()
	t, err := x.idle.take(x.db)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	sound := false // unless read panics
	defer func() { x.idle.put(t, sound) }()
	err = read(t.cursor)
	sound = true
	return err
}

// seekURL returns the first URL at or behind a key among those that are committed, or "".
func (x *index) seekURL(at string) (url string, err error) {
	err = x.view(func(c *bbolt.Cursor) error {
		key, _ := c.Seek([]byte(at))
		if key == nil {
			return nil
		}
		var e entry
		found, err := e.cutKey(key)
		url = string(found)
		return err
	})
	return url, err
}

// back visits the entries of a URL from the last one that is not later than t on backwards, until
// visit returns false. It returns the time of the entry after t, or never.
func (x *index) back(url string, t int64, visit func(*entry) bool) (until int64, err error) {
	until = never
	err = x.view(func(c *bbolt.Cursor) error {
		waiting := x.pending[url]
		at, _ := slices.BinarySearchFunc(waiting, t, func(e entry, t int64) int {
			if e.time <= t {
				return -1
			}
			return 1
		})
		if at < len(waiting) {
			until = waiting[at].time
		}
		var buf [longKey + 32]byte // has room for nearly all keys, and for the time behind them
		prefix := append(append(buf[:0], url...), 0)
		next := seekBehind(c, prefix, t)
		if time, ok := timeOf(prefix, next); ok {
			until = min(until, time)
		}
		key, value := previous(c, next)
		return merge(prefix, key, value, c, waiting[:at], visit)
	})
	return until, err
}

// never is the time at which the validity of the last version of a URL ends.
const never = math.MaxInt64

// seekBehind goes to the first key behind the entries of a URL that are not later than t.
// It is nil if there is none.
func seekBehind(c *bbolt.Cursor, prefix []byte, t int64) (key []byte) {
	if t == never {
		at := append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, tailSize+1)...)
		key, _ = c.Seek(at)
	} else {
		key, _ = c.Seek(appendTime(prefix, t+1)) // behind prefix, which stays as it is
	}
	return key
}

// previous goes back from a key that was sought, or from the end if nothing was found.
func previous(c *bbolt.Cursor, sought []byte) (key, value []byte) {
	if sought == nil {
		return c.Last()
	}
	return c.Prev()
}

// timeOf returns the time in a key if it is one of the URL.
func timeOf(prefix, key []byte) (int64, bool) {
	var e entry
	if len(key) != len(prefix)+tailSize || !bytes.HasPrefix(key, prefix) {
		return 0, false
	}
	_, err := e.cutKey(key)
	return e.time, err == nil
}

// merge walks two sorted lists backwards.
func merge(prefix, key, value []byte, c *bbolt.Cursor, waiting []entry,
	visit func(*entry) bool) error {
	var e entry
	for {
		stored := len(key) == len(prefix)+tailSize && bytes.HasPrefix(key, prefix)
		if stored {
			if _, err := e.cutKey(key); err != nil {
				return err
			}
		}
		last := len(waiting) - 1
		switch {
		case last >= 0 && (!stored || compareEntries(waiting[last], e) >= 0):
			if stored && compareEntries(waiting[last], e) == 0 {
				key, value = c.Prev() // written over
			}
			if !visit(&waiting[last]) {
				return nil
			}
			waiting = waiting[:last]
		case stored:
			if err := e.cutValue(value); err != nil {
				return err
			}
			if !visit(&e) {
				return nil
			}
			key, value = c.Prev()
		default:
			return nil
		}
	}
}

// drop removes the entries of a file, so that it can be indexed from its beginning. With them it
// removes from disk up to where it was indexed: after a crash nobody else would know.
func (x *index) drop(name string) (err error) {
	before := guard()
	defer func() { mended(before, recover(), &err) }()
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.fileLocked(name)
	f.end, f.kept, f.dirty = 0, 0, true
	x.dropPending(f.number)
	x.idle.end()
	return x.db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket(entriesBucket).Cursor()
		var stale [][]byte // deleted afterwards: a cursor may not go on behind what it has deleted
		for key, _ := c.First(); key != nil; key, _ = c.Next() {
			var e entry
			if _, err := e.cutKey(key); err != nil {
				return err
			}
			if e.file == f.number {
				stale = append(stale, bytes.Clone(key))
			}
		}
		for _, key := range stale {
			if err := tx.Bucket(entriesBucket).Delete(key); err != nil {
				return err
			}
		}
		return x.writeFiles(tx, false)
	})
}

// dropPending is drop for what waits. It requires that x.mu is held.
func (x *index) dropPending(number uint32) {
	for url, list := range x.pending {
		kept := list[:0]
		for i := range list {
			if list[i].file != number {
				kept = append(kept, list[i])
				continue
			}
			x.count--
			x.long -= len(list[i].url)
		}
		if x.pending[url] = kept; len(kept) == 0 {
			delete(x.pending, url)
		}
	}
}

// read reads the B-tree as it is now. What waits is not in it. What holds for view holds here.
func (x *index) read(read func(c *bbolt.Cursor) error) (err error) {
	if x.closed.Load() {
		return ErrClosed
	}
	before := guard()
	defer func() { mended(before, recover(), &err) }()
	err = x.db.View(func(tx *bbolt.Tx) error { return read(tx.Bucket(entriesBucket).Cursor()) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		err = ErrClosed // since it was asked
	}
	return err
}
