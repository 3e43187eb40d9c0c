package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// importsName is the name of the list of imported files. It lies beside the index and not in it,
// since the index may have to be made anew from the files alone.
const importsName = "imports.txt"

// Import indexes WARC and ARC files that other programs wrote, where they are: nothing is copied,
// and they are never written to. From then on they belong to the archive, by their absolute paths,
// or by their names if [Options.OpenImport] opens them. To remove one, delete its line from
// imports.txt in the directory of the archive, and open it with
// [Options.Reindex]. What is appended to such a file
// later is found by the next [Open], or by importing it again.
//
// A file is read up to its first damage, and on behind it only as far as its records prove that
// they belong to it; see [Options.Salvage]. The report names each damaged place. A file that is
// gone or has become shorter costs the versions in it and no others: their entries stay, reading
// them fails, and [Archive.Missing], [Archive.Recovered] and [Archive.Verify] tell. A file in which
// nothing can be read is refused with the place of the first damage.
//
// An error ends the call. The files before the one that it names have been imported.
func (a *Archive) Import(paths ...string) (found Report, err error) {
	a.imports.adding.Lock()
	defer a.imports.adding.Unlock()
	for _, path := range paths {
		abs, err := path, error(nil)
		if !isRemote(path) {
			abs, err = filepath.Abs(path)
		}
		if err == nil {
			err = a.importFile(abs, &found)
		}
		if err != nil {
			return found, fmt.Errorf("archive: import %s: %w", path, err)
		}
	}
	if err := a.resolveLate(); err != nil {
		return found, fmt.Errorf("archive: import: %w", err)
	}
	return found, a.index.commit()
}

// importFile has a file listed before it is indexed, and read before it is listed. What is no WARC
// file must not stay on the list, where it would be tried again whenever the archive is opened.
func (a *Archive) importFile(path string, found *Report) error {
	switch {
	case a.files.isClosed():
		return ErrClosed
	case a.readOnly:
		return ErrReadOnly
	case filepath.Dir(path) == a.dir:
		return errors.New("it lies in the directory of the archive, and belongs to it already")
	case strings.ContainsAny(path, "\r\n"):
		return errors.New("a line break in a path cannot stand in " + importsName)
	}
	f, err := a.openImported(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !a.imports.has(path) {
		if err := a.readable(f, path); err != nil {
			return err
		}
		// The list comes first: what is in the index has to be in it, also after a crash.
		if err := a.imports.add(a.fs, path); err != nil {
			return err
		}
	}
	t, err := a.update(f, path, f.size)
	found.count(&t)
	return err
}

// readable makes sure that there is a record in a file, or nothing at all. Otherwise it returns why
// the beginning cannot be read.
func (a *Archive) readable(f *source, path string) error {
	r, err := a.reader(path)
	if err != nil {
		return err
	}
	defer r.close()
	r.readAt(f, path, 0, f.size)
	r.warc.SetSalvage(a.salvage)
	var first error
	for {
		_, err := r.warc.Next()
		switch {
		case err == io.EOF:
			return first
		case err == nil || !errors.Is(err, warc.ErrDamaged):
			return err
		case first == nil:
			first = err
		}
	}
}

// recoverImports brings the index up to date with the imported files. One that cannot be opened is
// passed over: the archive is of use without it, and Missing tells.
func (a *Archive) recoverImports() error {
	if err := a.imports.load(a.fs, a.dir); err != nil {
		return err
	}
	for _, path := range a.imports.list() {
		f, err := a.openImported(path)
		if err != nil {
			continue
		}
		t, err := a.update(f, path, f.size)
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

// known returns up to where each file that belongs to the archive is indexed. An import that was
// missing when the index was made is not indexed at all.
func (a *Archive) known() map[string]int64 {
	ends := map[string]int64{}
	for _, path := range a.imports.list() {
		ends[path] = 0
	}
	for name, f := range a.index.indexedFiles() {
		ends[name] = f.end
	}
	return ends
}

// imports is the list of imported files. Its methods are safe for concurrent use.
type imports struct {
	adding sync.Mutex // held during an import

	mu    sync.Mutex // guards what follows
	paths []string   // sorted
}

// list returns a copy, as files are imported while others ask.
func (i *imports) list() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.paths)
}

// has tells whether a path is on the list, in the form in which it was put there.
func (i *imports) has(path string) bool {
	_, found := slices.BinarySearch(i.list(), path)
	return found
}

// load reads the list, if there is one.
func (i *imports) load(files vfs.FS, dir string) error {
	data, err := vfs.ReadFile(files, importsName)
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
	if err := vfs.Replace(files, importsName, []byte(strings.Join(paths, "\n")+"\n")); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.paths = paths
	return nil
}

// parseImports reads a list that people may have edited: the order does not matter, nor do blank
// lines and how lines end.
func parseImports(text string) (paths []string, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		path := strings.TrimRight(line, "\r\n")
		if path == "" {
			continue
		}
		if !isImport(path) {
			return nil, fmt.Errorf("line %d: %.200q is no absolute path", n, path)
		}
		if !isRemote(path) {
			path = filepath.Clean(path)
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}
