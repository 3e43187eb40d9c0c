package archive

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// All returns every version of every URL in the order of the index: URLs by their SURT, and
// versions by time. After the answers to a GET of the whole page come those to other requests, see
// [Version.Method] and [Version.Range]. Content is zero if the index does not know its address, see [Archive.At].
//
// Captures appended before the call are included. Captures appended during the iteration may be.
func (a *Archive) All() iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		a := a.now()
		err := a.index.valid(urlkey.All, a.describing(yield))
		if err != nil && err != errEnough {
			yield(Version{}, err)
		}
	}
}

// OpenFile opens a WARC file of the archive for reading, up to its last complete capture. The name
// comes from [Archive.Files] or a [Location].
func (a *Archive) OpenFile(name string) (io.ReadCloser, error) {
	if !isImport(name) {
		name = strings.TrimSuffix(name, unfinished)
	}
	state, known := a.now().index.state(name)
	if !known {
		return nil, fmt.Errorf("archive: open %s: %w", name, os.ErrNotExist)
	}
	f, err := a.openFile(name)
	if err != nil {
		return nil, err
	}
	return &part{io.NewSectionReader(f, 0, state.end), f, name}, nil
}

// part is the beginning of a file.
type part struct {
	*io.SectionReader
	io.Closer
	name string
}

// Records returns all records of the named files, or of all files that the archive knows if none is named, in
// order. Each file is read up to its last complete capture when it is opened. A record is valid until the
// next one, and must not be closed. An error that wraps warc.ErrDamaged comes with a nil record, and the
// iteration continues; any other error ends it.
func (a *Archive) Records(files ...string) iter.Seq2[*warc.Record, error] {
	return func(yield func(*warc.Record, error) bool) {
		a := a.now()
		names, err := files, error(nil)
		if len(files) == 0 {
			names, err = a.Files()
			names = slices.DeleteFunc(names, func(name string) bool { // made since
				_, known := a.index.state(strings.TrimSuffix(name, unfinished))
				return !known && !isImport(name)
			})
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, name := range names {
			switch err := a.recordsOf(name, yield); {
			case err == errEnough:
				return
			case err != nil:
				yield(nil, fmt.Errorf("archive: records: %w", err))
				return
			}
		}
	}
}

// errEnough ends a walk whose caller wants no more.
var errEnough = errors.New("archive: enough")

// recordsOf yields the records of a file.
func (a *Archive) recordsOf(name string, yield func(*warc.Record, error) bool) error {
	f, err := a.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	more := func(rec *warc.Record, err error) error {
		if !yield(rec, err) {
			return errEnough
		}
		return nil
	}
	file := f.(*part)
	return a.walk(file, file.name, 0, file.Size(),
		func(rec *warc.Record) error { return more(rec, nil) },
		func(damage *warc.DamageError) error { return more(nil, damage) })
}
