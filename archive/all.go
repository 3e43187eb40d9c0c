package archive

import (
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
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
		for l, err := range a.index.scan(urlkey.All) {
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

// ValidAt returns the version of each URL that was valid at a time, in the order of the index, for
// URLs with a SURT such as "org,example,www)/path" that is at least low and less than high. An empty
// high has no limit, and the zero Time means the last versions. URLs that were first found later are
// left out. A content that the archive does not have is zero.
//
// It takes two lookups for each URL, however many versions there are. Each step sees what was
// appended before it.
func (a *Archive) ValidAt(t time.Time, low, high string) iter.Seq2[Version, error] {
	if high == "" {
		high = urlkey.All.High
	}
	return func(yield func(Version, error) bool) {
		for at := low; ; {
			key, err := a.index.seekURL(at, high)
			if err != nil {
				yield(Version{}, err)
				return
			}
			if key == "" {
				return
			}
			v, found, err := a.validAt(key, t)
			if err != nil {
				yield(Version{}, err)
				return
			}
			if found && !yield(v, nil) {
				return
			}
			at = key + "\x01" // less than any key after those of the URL
		}
	}
}

// validAt returns the version of a key that was valid at a time.
func (a *Archive) validAt(key string, t time.Time) (v Version, found bool, err error) {
	e, found, until, err := a.index.floor(key, instant(t))
	if err != nil || !found {
		return v, false, err
	}
	v = a.describe(key, &e, until)
	if known, err := a.elsewhere(key, v); err == nil {
		v = known // otherwise there is nothing to read, as for a snapshot
	}
	return v, true, nil
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
