package exact

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A sweep writes a new index, which merges the old one with new fingerprints. It proceeds in steps,
// so that each Add does a part of the work and none has to wait for all of it.
type sweep struct {
	*index                // the new one
	to     durable.Writer // of the file
	page   []byte         // the last page, partly filled

	from indexReader // of the old index
	next int64       // next page of from
	old  []byte      // fingerprints of the page before next that are not written yet
	news func() (fingerprint, bool)
	head fingerprint // next result of news
	more bool        // head is valid

	done    bool          // everything is written
	syncing chan struct{} // closed at the end of the sync; nil before it
	synced  bool
}

// newSweep starts a sweep of the entries of a table, none of which are in the old index.
func newSweep(fs vfs.FS, number uint64, old *index, frozen *table, bytes *int64) (*sweep, error) {
	x := &index{number: number, count: old.count + int64(frozen.n)}
	f, err := fs.Create(x.name())
	if err != nil {
		return nil, fmt.Errorf("exact: create index: %w", err)
	}
	x.file = &durable.SyncedFile{File: f}
	w := &sweep{
		index: x, to: durable.Writer{To: x.file}, page: make([]byte, 0, pageSize),
		from: newIndexReader(old, maxAhead, bytes), news: frozen.ascending(),
	}
	w.to.Write(x.header())
	w.head, w.more = w.news()
	return w, nil
}

// due reports whether a step is due before the next entry is added to a table. The pace completes
// the sweep well before the table is full. The last step installs the new index, which should wait
// until it is synced.
func (w *sweep) due(fresh *table) bool {
	if w.done {
		return w.synced
	}
	return int64(len(w.firsts))*int64(fresh.limit())*7/8 < w.pages()*int64(fresh.n+1)
}

// drop removes the new index.
func (w *sweep) drop(fs vfs.FS) error { return errors.Join(w.file.Close(), fs.Remove(w.name())) }

// step writes about the given number of pages. Then w.done reports whether the new index is
// complete.
func (w *sweep) step(pages int64) (err error) {
	for target := int64(len(w.firsts)) + pages; int64(len(w.firsts)) < target; {
		switch {
		case len(w.old) == 0 && w.next < w.from.pages():
			if w.old, err = w.from.page(w.next); err != nil {
				return err
			}
			w.next++
		case len(w.old) == 0 && !w.more:
			w.endPage()
			w.done = true
			return w.flush()
		case !w.more:
			w.add(w.old)
			w.old = nil
		default:
			rest := w.old
			if len(rest) > 0 {
				rest = skip(rest, w.head)
				w.add(w.old[:len(w.old)-len(rest)])
			}
			if w.old = rest; len(rest) > 0 || w.next == w.from.pages() {
				w.addNew()
			}
		}
	}
	return w.flush()
}

func (w *sweep) flush() error {
	if err := w.to.Flush(); err != nil {
		return fmt.Errorf("exact: write %s: %w", w.name(), err)
	}
	return nil
}

// addNew adds the head of news.
func (w *sweep) addNew() {
	var b [printSize]byte
	binary.BigEndian.PutUint64(b[:], uint64(w.head))
	w.add(b[:])
	w.head, w.more = w.news()
}

// add adds fingerprints as they are stored.
func (w *sweep) add(prints []byte) {
	for len(prints) > 0 {
		if len(w.page) == 0 {
			w.firsts = append(w.firsts, decode(prints, 0))
		}
		room := perPage*printSize - len(w.page)
		n := min(room, len(prints))
		w.page = append(w.page, prints[:n]...)
		prints = prints[n:]
		if n == room {
			w.endPage()
		}
	}
}

func (w *sweep) endPage() {
	if len(w.page) == 0 {
		return
	}
	used := len(w.page)
	w.page = w.page[:pageSize]
	clear(w.page[used:])
	body := w.page[:pageSize-pageChecksum]
	sum := w.checksum(int64(len(w.firsts))-1, body)
	binary.LittleEndian.PutUint32(w.page[len(body):], sum)
	w.to.Write(w.page)
	w.page = w.page[:0]
}
