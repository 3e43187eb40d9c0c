package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/table"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// The manifest names the version of all files. It is on disk: do not change it; add a version.
const (
	magic       = "SPNINDX3"
	magicBefore = "SPININX2"
	metaMagic   = "SPNMETA1"
)

// The names of the files: all begin with Name, those of runs with Name and a hyphen. Each commit replaces Manifest.
const (
	Name     = "index"
	Manifest = Name + ".manifest"
	metaName = Name + ".meta"
)

// maxMemory bounds the memory of indexes and filters of runs, of which an entry takes two bytes.
const maxMemory = 96 << 20

// Options configure a [Tree].
type Options struct {
	// Prefix returns the length of the part of a key that lookups know. nil means the whole key.
	Prefix func(key []byte) int

	// New starts with an empty tree. The first commit replaces the one on disk. false means to open
	// that one.
	New bool

	// ReadOnly opens a tree that another process may write. Nothing may be committed or merged. false
	// means that this process alone has it open.
	ReadOnly bool

	// Segment is the number of pairs at which a merge begins the next file. 0 means a million.
	Segment int64
}

// Tree is a sorted map from keys to values, none of them empty. Its methods are safe for concurrent
// use. Only one goroutine at a time may commit and merge.
type Tree struct {
	fs    vfs.FS
	opts  Options
	table *table.Table
	meta  []byte // of the last commit; only commits use it
	saved bool   // the manifest has the state of the table

	mu     sync.RWMutex
	active *memtable
	frozen *memtable // nil if nothing is frozen
}

// Open returns a tree and the meta of the last commit. Only one process may have it open. It
// removes files that a crash left behind, and makes the copy of the meta anew if it is damaged.
func Open(files vfs.FS, opts Options) (t *Tree, meta []byte, err error) {
	if opts.Segment == 0 {
		opts.Segment = 1 << 20
	}
	t = &Tree{fs: files, opts: opts, active: &memtable{}, saved: true}
	st := table.State{}
	if !opts.New {
		if st, t.meta, err = readManifest(files); err != nil {
			return nil, nil, err
		}
	}
	t.table, err = table.Open(files, table.Options{
		Name: Name + "-", Block: 4 << 10, FilterBits: 10, FullBits: 10, Prefix: opts.Prefix,
		Segment: opts.Segment, Steps: mergeStep, Memory: maxMemory,
	}, st)
	if err != nil {
		return nil, nil, fmt.Errorf("lsm: %w", err)
	}
	if !opts.New && !opts.ReadOnly { // a new tree does not touch the old one until it replaces it
		err := t.table.Sweep()
		copied, unread := readMeta(files)
		if err == nil && len(t.meta) > 0 && (unread != nil || !bytes.Equal(copied, t.meta)) {
			err = t.copyMeta(t.meta)
		}
		if err != nil {
			t.table.Close()
			return nil, nil, fmt.Errorf("lsm: %w", err)
		}
	}
	return t, t.meta, nil
}

// Meta returns the meta of a tree that may be damaged, as far as it is known: it is in the manifest and
// in a file of its own, so that one of them may be damaged.
func Meta(files vfs.FS) []byte {
	if _, meta, err := readManifest(files); err == nil && meta != nil {
		return meta
	}
	meta, _ := readMeta(files)
	return meta
}

// readMeta reads the copy of the meta.
func readMeta(files vfs.FS) ([]byte, error) {
	data, err := durable.ReadFile(files, metaName)
	if err != nil {
		return nil, err
	}
	return durable.Unseal(metaName, 0, metaMagic, data)
}

// copyMeta replaces the copy of the meta.
func (t *Tree) copyMeta(meta []byte) error {
	return durable.Replace(t.fs, metaName, durable.Seal(metaMagic, meta))
}

// readManifest returns the zero State if there is no manifest, and never was one.
func readManifest(files vfs.FS) (st table.State, meta []byte, err error) {
	data, err := durable.ReadFile(files, Manifest)
	if errors.Is(err, fs.ErrNotExist) {
		if meta, err := readMeta(files); err == nil && len(meta) > 0 {
			return st, nil, fmt.Errorf("lsm: %w", durable.Corrupt(Manifest, 0, "the file is missing"))
		}
		return st, nil, nil
	}
	if err == nil {
		data, err = durable.Unseal(Manifest, 0, magic, data, magicBefore)
	}
	if err == nil {
		st, meta, err = table.TakeState(data, Manifest)
	}
	if err != nil {
		return st, nil, fmt.Errorf("lsm: %w", err)
	}
	return st, meta, nil
}

// writeManifest makes the state of the table, and meta, the current ones.
func (t *Tree) writeManifest(meta []byte) error {
	st := t.table.State()
	data := durable.Seal(magic, append(st.Append(nil), meta...))
	if err := durable.Replace(t.fs, Manifest, data); err != nil {
		return fmt.Errorf("lsm: write manifest: %w", err)
	}
	t.meta, t.saved = meta, true
	t.table.Saved(st)
	if t.opts.New { // the files of the tree before are not needed any more
		t.opts.New = false
		t.removeBefore(st)
	}
	return nil
}

// removeBefore removes the runs of the tree before, of whatever version. Those that cannot be
// removed do no harm.
func (t *Tree) removeBefore(st table.State) {
	names, _ := t.fs.List()
	kept := st.Names(Name + "-")
	for _, name := range names {
		if strings.HasPrefix(name, Name+"-") && !slices.Contains(kept, name) {
			_ = t.fs.Remove(name)
		}
	}
}

// Put sets the value of a key. It takes ownership of both.
func (t *Tree) Put(key, value []byte) {
	t.mu.RLock() // the table must stay the active one
	defer t.mu.RUnlock()
	t.active.put(key, value)
}

// Load adds sorted pairs, which belong to the next commit. It must not be called after Put.
func (t *Tree) Load(pairs iter.Seq2[Pair, error]) error {
	next, stop := iter.Pull2(pairs)
	defer stop()
	for s := (&loading{next: next}); !s.ended; {
		s.left = t.opts.Segment
		if err := t.table.Write(s); err != nil {
			return fmt.Errorf("lsm: load: %w", err)
		}
	}
	return nil
}

// loading is a source of the next pairs. It is not safe for concurrent use.
type loading struct {
	next  func() (Pair, error, bool)
	left  int64 // of the run
	ended bool
}

// Next implements table.Source.
func (s *loading) Next() (key, value []byte, err error) {
	if s.left == 0 {
		return nil, nil, nil
	}
	s.left--
	p, err, more := s.next()
	s.ended = !more || err != nil
	return p.Key, p.Value, err
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
	frozen := t.frozenNow()
	if frozen == nil {
		return nil
	}
	if frozen.count > 0 && !frozen.written {
		if err := t.table.Write(newMemScan(frozen, nil)); err != nil {
			return fmt.Errorf("lsm: %w", err)
		}
		frozen.written = true
	}
	if err := t.writeManifest(frozen.meta); err != nil {
		return err
	}
	// The copy comes last: where there is one, there was a manifest.
	if err := t.copyMeta(frozen.meta); err != nil {
		return fmt.Errorf("lsm: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = nil
	return nil
}

// Frozen reports whether frozen pairs are not committed yet.
func (t *Tree) Frozen() bool { return t.frozenNow() != nil }

func (t *Tree) frozenNow() *memtable {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.frozen
}

// mergeStep is the number of pairs between two calls of pause, which takes milliseconds.
const mergeStep = 4096

// Merge merges runs until none is shorter than all newer ones together, so that they stay few. It
// often calls pause, unless that is nil; pause may commit. An error from pause ends the merge,
// which the next Merge continues.
func (t *Tree) Merge(pause func() error) error {
	for {
		more, err := t.table.Step()
		if err != nil {
			return fmt.Errorf("lsm: merge: %w", err)
		}
		t.saved = t.saved && !more
		if t.table.Garbage() > 0 || !more && !t.saved {
			if err := t.publish(); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		if pause != nil {
			if err := pause(); err != nil {
				return err
			}
		}
	}
}

// publish makes the state of the table the current one. If a Commit has written a run, but failed
// then, that run belongs to its meta, not to the one before.
func (t *Tree) publish() error {
	if frozen := t.frozenNow(); frozen != nil && frozen.written {
		return t.Commit()
	}
	return t.writeManifest(t.meta)
}

// Around finds the neighbors of a key. Its prefix has that length, see [Options].
func (t *Tree) Around(n *Neighbors, key []byte, prefix int) error {
	n.Reset(key, prefix)
	// Newest first: of two pairs with the same key, the first one counts.
	for _, m := range t.memtables() {
		if m != nil {
			m.around(n)
		}
	}
	return t.table.Around(n)
}

// memtables returns the tables in memory, the newest first.
func (t *Tree) memtables() [2]*memtable {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return [2]*memtable{t.active, t.frozen}
}

// Scan returns a single-use iterator over the pairs with keys in [low, high), in key order. A pair
// is valid until the next one. An error comes last, with a zero pair. Pairs put before the first
// step are included. Pairs put during the iteration may be.
func (t *Tree) Scan(low, high []byte) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		var sources []table.Source
		for _, m := range t.memtables() {
			if m != nil {
				sources = append(sources, newMemScan(m, low))
			}
		}
		runs, release, err := t.table.Scan(low)
		if err != nil {
			yield(Pair{}, err)
			return
		}
		defer release()
		m, err := table.NewMerger(append(sources, runs...)...)
		for ; err == nil; err = m.Next() {
			key, value := m.Entry()
			if key == nil || bytes.Compare(key, high) >= 0 || !yield(Pair{Key: key, Value: value}, nil) {
				return
			}
		}
		yield(Pair{}, err)
	}
}

// Uncommitted returns the pairs that were put since the last commit, the oldest values first.
func (t *Tree) Uncommitted() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		tables := t.memtables()
		for _, m := range []*memtable{tables[1], tables[0]} {
			if m == nil {
				continue
			}
			for s := newMemScan(m, nil); ; {
				key, value, _ := s.Next() // it cannot fail
				if key == nil {
					break
				}
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

// Close closes the files. Uncommitted pairs are lost.
func (t *Tree) Close() { t.table.Close() }
