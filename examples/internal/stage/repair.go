package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spinneret-go/spinneret/dedupe/exact"
	"github.com/spinneret-go/spinneret/satstore"
)

// RepairPages makes what can be read of a crawl's pages usable again: damage to the store costs the
// pages that it hits, damage to the set of URLs costs nothing, since the set is made anew from the
// store. Where not even the store's checkpoint can be read, there are no pages left. Nobody may have
// the pages open.
func RepairPages(dir string, o PagesOptions) (done satstore.Repaired, err error) {
	for _, name := range []string{PagesDir, URLsDir} {
		if err := finishReplace(dir, name); err != nil {
			return done, err
		}
	}
	o = o.withDefaults()
	if done, err = repairStore(dir, o); err != nil {
		return done, err
	}
	store, err := satstore.Open(filepath.Join(dir, PagesDir), o.store())
	if err != nil {
		return done, fmt.Errorf("repair the pages: %w", err)
	}
	salvageEntries(dir, o, store)
	done.Records = store.Stats().Records
	if err := errors.Join(rebuildSet(dir, o, store), store.Close()); err != nil {
		return done, fmt.Errorf("repair the set of URLs: %w", err)
	}
	return done, replace(dir, URLsDir)
}

// repairStore replaces the store unless it is sound.
func repairStore(dir string, o PagesOptions) (done satstore.Repaired, err error) {
	at := filepath.Join(dir, PagesDir)
	store, err := satstore.Open(at, o.store())
	if err == nil {
		if err = errors.Join(store.Check(), store.Close()); err == nil {
			return done, nil
		}
	}
	if errors.Is(err, satstore.ErrLocked) {
		return done, err
	}
	done, err = satstore.Repair(at, at+freshDir)
	if err == nil {
		return done, replace(dir, PagesDir)
	}
	done.Findings = append(done.Findings, err)
	if err := os.RemoveAll(at + freshDir); err != nil {
		return done, err
	}
	return done, discard(dir, PagesDir)
}

// salvageEntries adds the pages that the old set was about to hand to the store, as far as they can
// be read.
func salvageEntries(dir string, o PagesOptions, store *satstore.Store) {
	set, err := exact.Open(filepath.Join(dir, URLsDir), exact.Options{Memory: o.Memory / 2})
	if err != nil {
		return // then the pages that link to them are due again, too
	}
	for entry, err := range set.Entries(set.Stats().Trimmed) {
		if err != nil {
			break
		}
		if _, err := store.Add(entry.URL, store.Now(), entry.Data); err != nil {
			break
		}
	}
	_ = set.Close() // it is about to be replaced
}

// rebuildSet makes a set of the URLs of all pages.
func rebuildSet(dir string, o PagesOptions, store *satstore.Store) error {
	at := filepath.Join(dir, URLsDir)
	set, err := exact.Open(at+freshDir, exact.Options{Memory: o.Memory / 2})
	if err != nil {
		return err
	}
	for record, err := range store.Scan() {
		if err == nil {
			err = set.Defer(record.ID, nil)
		}
		if err != nil {
			return errors.Join(err, set.Close())
		}
	}
	if err := set.Merge(); err != nil {
		return errors.Join(err, set.Close())
	}
	return errors.Join(set.Trim(set.Stats().URLs), set.Close())
}
