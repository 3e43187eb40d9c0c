package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore"
)

// A PagesRepair is what RepairPages did.
type PagesRepair struct {
	satstore.Repaired
	Aside string // where the damaged store is now; "" if it was sound
}

// RepairPages repairs the pages of a crawl: damage loses the pages that it hits. If even the
// store's checkpoint is unreadable, all pages are lost. The damaged store is set aside. The pages
// must not be open.
func RepairPages(dir string, o satstore.Options) (done PagesRepair, err error) {
	if err := FinishRewrite(dir); err != nil {
		return done, err
	}
	if done, err = repairStore(dir, o); err != nil {
		return done, err
	}
	store, err := satstore.Open(filepath.Join(dir, PagesDir), o)
	if err != nil {
		return done, fmt.Errorf("repair the pages: %w", err)
	}
	done.Records = store.Stats().Records
	return done, store.Close()
}

// repairStore replaces the store unless it is intact.
func repairStore(dir string, o satstore.Options) (done PagesRepair, err error) {
	at := filepath.Join(dir, PagesDir)
	store, err := satstore.Open(at, o)
	if err == nil {
		if err = errors.Join(store.Check(), store.Close()); err == nil {
			return done, nil
		}
	}
	if errors.Is(err, satstore.ErrLocked) || errors.Is(err, satstore.ErrVersion) {
		return done, err
	}
	done.Repaired, err = satstore.Repair(at, at+freshDir)
	if err == nil {
		if done.Aside, err = SetAside(at); err != nil {
			return done, err
		}
		return done, vfs.RenameDir(at+freshDir, at)
	}
	done.Findings = append(done.Findings, err)
	if err := os.RemoveAll(at + freshDir); err != nil {
		return done, err
	}
	if !errors.Is(err, satstore.ErrCorrupt) && !errors.Is(err, fs.ErrNotExist) {
		return done, fmt.Errorf("repair the pages: %w", err) // such as a full disk: nothing is lost
	}
	if done.Aside, err = SetAside(at); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return done, err
}
