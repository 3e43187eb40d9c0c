package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// importsName is the name of the list of imported files. It is not part of the index, since the
// index may have to be rebuilt from the files.
const importsName = "imports.txt"

// Import indexes WARC files of other programs in place: nothing is copied, and they are
// never modified. From then on they belong to the archive, by their absolute paths. To remove one,
// delete its line from imports.txt in the directory of the archive, and open it with
// [Options.Reindex]. Data appended to such a file later is found by the next [Open] for writing, or by
// importing it again.
//
// After damage, only records that provably belong to the file are indexed: [warc.ReaderOptions] reads the others.
// The report lists each damaged part. A member that expands to more than 1,100 times its size is
// damaged, too; only a page of one repeated byte does that, in zstd. If a file disappears or becomes
// shorter, only its own versions are lost: their entries stay, reading them fails, and
// [Archive.Missing], [Archive.Recovered] and [Archive.Verify] report it. A file without any readable
// record is rejected with the offset of the first damage.
//
// An error ends the call. The files before the one that it names have been imported.
func (a *Archive) Import(paths ...string) (found Report, err error) {
	a.imports.adding.Lock()
	defer a.imports.adding.Unlock()
	if a.readOnly {
		return found, ErrReadOnly
	}
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err == nil {
			err = a.importFile(abs, &found)
		}
		if err != nil {
			return found, fmt.Errorf("archive: import %s: %w", path, err)
		}
	}
	if err := a.resolveDeferred(); err != nil {
		return found, fmt.Errorf("archive: import: %w", err)
	}
	return found, a.index.commit()
}

// importFile lists a file before indexing it, and reads it before listing it: a file that is not a
// WARC file must not stay on the list, where every Open would try it again.
func (a *Archive) importFile(path string, found *Report) error {
	switch {
	case a.files.isClosed():
		return ErrClosed
	case a.has(path):
		return errors.New("the file is in the directory of the archive, and belongs to it already")
	case strings.ContainsAny(path, "\r\n"):
		return errors.New("a path with a line break cannot be listed in " + importsName)
	}
	f, err := openImported(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !a.imports.has(path) {
		if err := a.readable(f, path); err != nil {
			return err
		}
		// A reader leaves imports to the index, which has to be there by then.
		if a.index.file(path); !exists(a.fs, lsm.Manifest) {
			if err := a.index.commit(); err != nil {
				return err
			}
		}
		// The list comes first: even after a crash it must name every import in the index.
		if err := a.imports.add(a.fs, path); err != nil {
			return err
		}
	}
	t, err := a.update(f, path, f.size)
	found.count(&t)
	return err
}

// has reports whether a path leads to a file in the directory of the archive.
func (a *Archive) has(path string) bool {
	file, err := filepath.EvalSymlinks(path)
	dir, failed := filepath.EvalSymlinks(a.dir)
	return filepath.Dir(path) == a.dir || err == nil && failed == nil && filepath.Dir(file) == dir
}

// readable checks that a file has a record or is empty. Otherwise it returns the first error.
func (a *Archive) readable(f *source, path string) error {
	var first error
	err := a.walk(f, path, 0, f.size, func(*warc.Record) error { return errEnough },
		func(damage *warc.DamageError) error {
			first = cmp.Or[error](first, damage)
			return nil
		})
	if err == errEnough {
		return nil
	}
	return cmp.Or(err, first)
}

// indexImports brings the index up to date with the imported files. Files that cannot be opened
// are skipped: the archive is useful without them, and Missing reports them.
func (a *Archive) indexImports() error {
	for _, path := range a.imports.list() {
		f, err := openImported(path)
		if err != nil {
			continue
		}
		t, err := a.update(f, path, f.size)
		err = a.unread(&t, path, err)
		a.found.count(&t)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Missing returns the sorted names of the files that the archive should have and that cannot be
// opened now: those of its directory that the index knows, and those that were imported.
func (a *Archive) Missing() (missing []string) {
	a = a.now()
	for name := range a.known() {
		f, err := a.openFile(name)
		if err != nil {
			missing = append(missing, name)
			continue
		}
		_ = f.Close() // it was not written to
	}
	slices.Sort(missing)
	return missing
}

// known returns the indexed length of each file that belongs to the archive. An import that was
// missing when the index was made is not indexed at all. A file of which nothing was ever indexed may be
// one that an abandoned erasure has not made.
func (a *Archive) known() map[string]int64 {
	ends := map[string]int64{}
	for _, path := range a.imports.list() {
		ends[path] = 0
	}
	for name, f := range a.index.indexedFiles() {
		if f.known > 0 {
			ends[name] = f.known
		}
	}
	return ends
}

// imports is the list of imported files. Its methods are safe for concurrent use.
type imports struct {
	adding sync.Mutex // held during an import

	mu    sync.Mutex // guards what follows
	paths []string   // sorted
}

// list returns a copy, since files may be imported concurrently.
func (i *imports) list() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.paths)
}

// has reports whether a path is on the list, in exactly that form.
func (i *imports) has(path string) bool {
	_, found := slices.BinarySearch(i.list(), path)
	return found
}

// load reads the list, if there is one.
func (i *imports) load(files vfs.FS, dir string) error {
	data, err := durable.ReadFile(files, importsName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	paths, err := parseImports(string(data))
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, importsName), err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.paths = paths
	return nil
}

// add puts a path on the list, on disk first.
func (i *imports) add(files vfs.FS, path string) error {
	paths := append(i.list(), path)
	slices.Sort(paths)
	data := []byte(strings.Join(paths, "\n") + "\n")
	if err := durable.Replace(files, importsName, data); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.paths = paths
	return nil
}

// parseImports reads a list that people may have edited: order, blank lines and line endings do not
// matter.
func parseImports(text string) (paths []string, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		path := strings.TrimRight(line, "\r\n")
		if path == "" {
			continue
		}
		if !isImport(path) {
			return nil, fmt.Errorf("line %d: %.200q is not an absolute path", n, path)
		}
		paths = append(paths, filepath.Clean(path))
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}
