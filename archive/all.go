package archive

import (
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
)

// All returns every version of every URL in the order of the index: URLs by their SURT, and
// versions by time. A content that the index does not know the address of is zero, see
// [Archive.At].
//
// All that was appended before is there. Of what is appended meanwhile, some may be.
func (a *Archive) All() iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		// A version is only known to be valid until the next one when that was met: each is held
		// back for one step.
		var held Version
		var key string // of held
		for l, err := range a.index.scan(everything[0]) {
			if err != nil {
				yield(Version{}, err)
				return
			}
			v := a.describe(l.url, &l.entry, never)
			if key == l.url {
				held.Until = v.Time
			}
			if key != "" && !yield(held, nil) {
				return
			}
			held, key = v, l.url
		}
		if key != "" {
			yield(held, nil)
		}
	}
}

// OpenFile opens a WARC file of the archive for reading, as far as it holds whole captures now. The
// name is one of [Archive.Files] or that of a [Location].
func (a *Archive) OpenFile(name string) (io.ReadCloser, error) {
	if !isImport(name) {
		name = strings.TrimSuffix(name, unfinished)
	}
	end, known := a.index.end(name)
	if !known {
		return nil, fmt.Errorf("archive: open %s: %w", name, os.ErrNotExist)
	}
	f, err := a.openFile(name)
	if err != nil {
		return nil, err
	}
	section := io.NewSectionReader(f, 0, end)
	return &part{section, f, name, section}, nil
}

// part is the beginning of a file.
type part struct {
	io.Reader
	io.Closer
	name    string
	section *io.SectionReader
}
