package lsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// File names, and the magic number of the manifest. They are on disk: do not change them.
const (
	manifestMagic = "SPININX2"
	manifestEnd   = ".manifest"
	runEnd        = ".run"
)

// Options configure a [Tree].
type Options struct {
	// Name is the prefix of all file names. "" means "index".
	Name string

	// Prefix returns the length of the part of a key that lookups know. nil means the whole key.
	Prefix func(key []byte) int

	// New starts with an empty tree. The first commit replaces the one on disk. false means to open
	// that one.
	New bool
}

// Tree is a sorted map from keys to values, none of them empty. Its methods are safe for concurrent
// use. Only one goroutine at a time may commit and merge.
type Tree struct {
	fs   vfs.FS
	opts Options
	next uint64 // number of the next run; only commits use next and meta
	meta []byte // of the last commit

	mu     sync.RWMutex
	active *memtable
	frozen *memtable // nil if nothing is frozen
	set    *set
	closed bool
}

// Open returns a tree and the meta of the last commit. Only one process may have it open. It
// removes files that a crash left behind.
func Open(files vfs.FS, opts Options) (t *Tree, meta []byte, err error) {
	if opts.Name == "" {
		opts.Name = "index"
	}
	if opts.Prefix == nil {
		opts.Prefix = func(key []byte) int { return len(key) }
	}
	t = &Tree{fs: files, opts: opts, active: &memtable{}}
	var numbers []uint64
	if !opts.New {
		if numbers, meta, err = t.readManifest(); err != nil {
			return nil, nil, err
		}
	}
	var runs []*run
	defer func() {
		for _, r := range runs { // the set has its own references
			_ = r.release(files)
		}
	}()
	for _, number := range numbers {
		r, err := openRun(files, number, t.runName(number))
		if errors.Is(err, fs.ErrNotExist) {
			err = &CorruptError{t.runName(number), 0, "the file is missing"}
		}
		if err != nil {
			return nil, nil, err
		}
		runs = append(runs, r)
	}
	t.set, t.meta = newSet(runs), meta
	return t, meta, t.sweep(numbers)
}

func (t *Tree) runName(number uint64) string {
	return fmt.Sprintf("%s-%08x%s", t.opts.Name, number, runEnd)
}

// sweep removes runs that the manifest does not list, and sets the number of the next one.
func (t *Tree) sweep(listed []uint64) error {
	names, err := t.fs.List()
	if err != nil {
		return fmt.Errorf("lsm: list files: %w", err)
	}
	for _, name := range names {
		digits, found := strings.CutPrefix(strings.TrimSuffix(name, runEnd), t.opts.Name+"-")
		var number uint64
		_, err := fmt.Sscanf(digits, "%x", &number)
		if !found || err != nil || name != t.runName(number) {
			continue
		}
		t.next = max(t.next, number+1)
		// A new tree does not touch the old one until it replaces it.
		if !t.opts.New && !slices.Contains(listed, number) {
			if err := t.fs.Remove(name); err != nil {
				return fmt.Errorf("lsm: remove unused run: %w", err)
			}
		}
	}
	return nil
}

// readManifest returns nil if there is no manifest.
func (t *Tree) readManifest() (numbers []uint64, meta []byte, err error) {
	name := t.opts.Name + manifestEnd
	data, err := durable.ReadFile(t.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("lsm: read manifest: %w", err)
	}
	corrupt := func(reason string) error { return &CorruptError{name, 0, reason} }
	body, magic := len(data)-4, len(manifestMagic)
	if body < magic+4 || string(data[:magic]) != manifestMagic ||
		crc32.Checksum(data[:body], castagnoli) != binary.LittleEndian.Uint32(data[body:]) {
		return nil, nil, corrupt("not a manifest, or checksum mismatch")
	}
	n := uint64(binary.LittleEndian.Uint32(data[magic:]))
	rest := data[magic+4 : body]
	if 8*n > uint64(len(rest)) {
		return nil, nil, corrupt("the list of runs is truncated")
	}
	for range n {
		numbers = append(numbers, binary.LittleEndian.Uint64(rest))
		rest = rest[8:]
	}
	return numbers, rest, nil
}

// writeManifest makes these runs the current ones.
func (t *Tree) writeManifest(runs []*run, meta []byte) error {
	data := binary.LittleEndian.AppendUint32([]byte(manifestMagic), uint32(len(runs)))
	for _, r := range runs {
		data = binary.LittleEndian.AppendUint64(data, r.number)
	}
	data = append(data, meta...)
	data = binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
	return durable.Replace(t.fs, t.opts.Name+manifestEnd, data)
}

// Put sets the value of a key. It takes ownership of both.
func (t *Tree) Put(key, value []byte) {
	t.mu.RLock() // the table must stay the active one
	defer t.mu.RUnlock()
	t.active.put(key, value)
}

// Waiting returns the number of pairs put since the last Freeze, and their approximate size in
// memory.
func (t *Tree) Waiting() (count, bytes int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.active.size()
}

// Freeze makes the pairs put so far the next commit, together with meta. If an earlier one is not
// committed yet, it does nothing and returns false.
func (t *Tree) Freeze(meta []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frozen != nil {
		return false
	}
	t.frozen, t.active = t.active, &memtable{}
	t.frozen.meta = meta
	return true
}

// Commit writes the frozen pairs. After an error it can be called again.
func (t *Tree) Commit() error {
	frozen, set := t.frozenNow(), t.set
	if frozen == nil {
		return nil
	}
	runs := slices.Clone(set.runs)
	if frozen.count > 0 {
		r, err := t.write([]source{newMemScan(frozen, nil)}, int64(frozen.count), nil)
		if err != nil {
			return err
		}
		defer r.release(t.fs)
		runs = append(runs, r)
	}
	return t.publish(runs, frozen.meta, nil)
}

// Frozen reports whether frozen pairs are not committed yet.
func (t *Tree) Frozen() bool { return t.frozenNow() != nil }

func (t *Tree) frozenNow() *memtable {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.frozen
}

// publish writes the manifest and switches readers to runs, which replace the frozen memtable, or
// the stale runs if there are any.
func (t *Tree) publish(runs []*run, meta []byte, stale []*run) error {
	if err := t.writeManifest(runs, meta); err != nil {
		return fmt.Errorf("lsm: write manifest: %w", err)
	}
	t.opts.New, t.meta = false, meta
	for _, r := range stale {
		r.stale.Store(true)
	}
	before, now := t.set, newSet(runs)
	t.mu.Lock()
	t.set = now
	if stale == nil {
		t.frozen = nil
	}
	t.mu.Unlock()
	before.release(t)
	return nil
}

// write makes a run of the pairs of some sources. It often calls pause, unless that is nil.
func (t *Tree) write(from []source, prefixes int64, pause func() error) (r *run, err error) {
	number := t.next
	t.next++
	name := t.runName(number)
	f, err := t.fs.Create(name)
	if err != nil {
		return nil, fmt.Errorf("lsm: create run: %w", err)
	}
	w := newWriter(f, t.opts.Prefix, prefixes)
	err = merge(from, func(p *Pair) (bool, error) {
		if w.count%yieldStep == 0 {
			runtime.Gosched() // a lookup should not wait for the end of our time slice
		}
		if pause != nil && w.count%mergeStep == mergeStep-1 {
			if err := pause(); err != nil {
				return false, err
			}
		}
		return true, w.add(p.Key, p.Value)
	})
	if err == nil {
		err = w.finish()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		r, err = openRun(t.fs, number, name)
	}
	if err != nil {
		_ = t.fs.Remove(name) // the first error is returned
		return nil, fmt.Errorf("lsm: write run: %w", err)
	}
	return r, nil
}

// mergeStep is the number of pairs between two calls of pause, which takes milliseconds. yieldStep
// is the number of pairs between two yields to other goroutines.
const (
	mergeStep = 4096
	yieldStep = 256
)

// Merge merges runs until none is shorter than all newer ones together, so that they stay few. It
// often calls pause, which may commit. An error from pause ends the merge.
func (t *Tree) Merge(pause func() error) error {
	for {
		from := t.due()
		if len(from) == 0 {
			return nil
		}
		sources, err := scanRuns(from, nil)
		if err != nil {
			return err
		}
		prefixes := int64(0)
		for _, r := range from {
			prefixes += r.prefixes
		}
		merged, err := t.write(sources, prefixes, pause)
		if err != nil {
			return err
		}
		// Commits may have added runs after the merged ones.
		at := slices.Index(t.set.runs, from[0])
		runs := slices.Concat(t.set.runs[:at], []*run{merged}, t.set.runs[at+len(from):])
		err = t.publish(runs, t.meta, from)
		_ = merged.release(t.fs) // the set has a reference
		if err != nil {
			return err
		}
	}
}

// due returns the runs to merge, from the oldest one that is shorter than all newer ones together.
func (t *Tree) due() []*run {
	runs := t.set.runs
	first, sum := len(runs), int64(0)
	for i := len(runs) - 1; i >= 0; i-- {
		if i < len(runs)-1 && runs[i].count < sum {
			first = i
		}
		sum += runs[i].count
	}
	return runs[min(first, len(runs)):]
}

// Close closes the files. Uncommitted pairs are lost.
func (t *Tree) Close() {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.closed = true
	t.mu.Unlock()
	t.set.release(t)
}
