package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore"
)

// The directory of the store, and its suffixes during a replacement.
const (
	PagesDir = "pages"

	freshDir = ".new"  // incomplete while the old one exists
	goneDir  = ".gone" // to be removed
)

// ForgetPages removes the pages of a crawl. It renames the directory first, so that an interruption
// leaves either all pages or none.
func ForgetPages(dir string) error {
	at := filepath.Join(dir, PagesDir)
	if err := os.RemoveAll(at + goneDir); err != nil {
		return err
	}
	err := vfs.RenameDir(at, at+goneDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil: // the old name may come back, so nothing is removed
		return err
	}
	return os.RemoveAll(at + goneDir)
}

// FinishRewrite completes or undoes a rewrite of the pages that was interrupted.
func FinishRewrite(dir string) error {
	at := filepath.Join(dir, PagesDir)
	_, err := os.Stat(at)
	if errors.Is(err, fs.ErrNotExist) { // so the new one is complete
		if err = vfs.RenameDir(at+freshDir, at); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil { // what would be removed may be the only one
		return err
	}
	return errors.Join(os.RemoveAll(at+freshDir), os.RemoveAll(at+goneDir))
}

// A Rewrite is what RewritePages does with a page.
type Rewrite int

// The kinds of rewrites.
const (
	KeepDue Rewrite = iota // the page is due at the Due of its State
	DueNow
	Remove
)

// RewritePages passes every page of a crawl to change, which may change the state, and writes the
// results to a new store that begins at o.Start and replaces the old one. No file has anything of a
// page that was removed. It takes one pass over the store. The pages must not be open.
func RewritePages(dir string, o satstore.Options, change func(Item, *State) Rewrite) error {
	if err := FinishRewrite(dir); err != nil {
		return err
	}
	at := filepath.Join(dir, PagesDir)
	old, err := satstore.Open(at, o)
	if err != nil {
		return fmt.Errorf("open the pages: %w", err)
	}
	fresh, err := satstore.Open(at+freshDir, o)
	if err != nil {
		return errors.Join(fmt.Errorf("rewrite the pages: %w", err), old.Close())
	}
	err = rewrite(old, fresh, change)
	if err = errors.Join(err, fresh.Close(), old.Close()); err != nil {
		return fmt.Errorf("rewrite the pages: %w", errors.Join(err, os.RemoveAll(at+freshDir)))
	}
	if err := ForgetPages(dir); err != nil {
		return err
	}
	return vfs.RenameDir(at+freshDir, at)
}

func rewrite(old, fresh *satstore.Store, change func(Item, *State) Rewrite) error {
	const most = 4096
	batch := make([]satstore.Item, 0, most)
	flush := func() error {
		_, err := fresh.AddBatch(batch)
		batch = batch[:0]
		return err
	}
	for record, err := range old.Scan() {
		if err != nil {
			return err
		}
		it, state, err := ReadRecord(record.ID, record.Data)
		if err != nil {
			return fmt.Errorf("%w: %q", err, record.ID)
		}
		what := change(it, &state)
		if what == Remove {
			continue
		}
		item := satstore.Item{ID: record.ID, Data: AppendRecord(nil, it, state)}
		if what == KeepDue && (!state.Relink || state.Failures > 0) { // the store has it due now, until it is reread
			item.At = time.Unix(state.Due, 0)
		}
		batch = append(batch, item)
		if len(batch) == most {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
