package cockpit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// The files that name the process that uses a directory: one is locked, the other one is readable.
const lockName, holderName = "crawl.lock", "crawl.holder"

// crawlCommand is what a crawl does with a directory.
const crawlCommand = "crawl"

// archiveLock is locked while an archive is open.
const archiveLock = "lock"

// A Directory is the directory of a crawl, for exclusive use by this process until it is closed.
// The parts of a crawl have locks of their own; this lock is taken before any of them, and names
// the process. It is not safe for concurrent use.
type Directory struct {
	path string
	lock io.Closer
	holder
}

// A holder is the process that uses a directory.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	Page    string    `json:"page,omitempty"` // address of its live page, if it has one
}

// ErrHeld is wrapped by the error for a directory that another process uses.
var ErrHeld = errors.New("another process uses it")

// errNoCrawl is wrapped by the error for a directory that no crawl has made.
var errNoCrawl = errors.New("no crawl here")

// OpenDirectory creates the directory of a crawl if it is missing, and locks it.
func OpenDirectory(path, command string) (*Directory, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("%w: -out must name a directory in which this user may create files", err)
	}
	// Every user can read the lock file, and so find out whether it is locked.
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	lock, err := vfs.OS(path).Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, heldError(path)
	}
	if err != nil {
		return nil, err
	}
	d := &Directory{path, lock, holder{PID: os.Getpid(), Command: command, Since: time.Now()}}
	if err := d.Announce(""); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// Claim opens the directory of a crawl, forgets its pages if the configuration says so, and reads
// what was erased there.
func (c *Config) Claim() (*Directory, error) {
	d, err := OpenDirectory(c.Out, crawlCommand)
	if err != nil {
		return nil, err
	}
	if c.Fresh {
		err = d.Forget()
	}
	if err == nil {
		err = c.readErased()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// existingDirectory opens a directory that a crawl has created.
func existingDirectory(path, command string) (*Directory, error) {
	if !HasCrawl(path) {
		return nil, fmt.Errorf("%s: %w%s", path, errNoCrawl, otherCrawl(path))
	}
	d, err := OpenDirectory(path, command)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return d, err
	}
	if held(path) {
		return nil, heldError(path)
	}
	return nil, fmt.Errorf("%w: run %s as the owner of the crawl, or on a copy of the directory", err, command)
}

// HasCrawl reports whether a crawl was started in a directory.
func HasCrawl(path string) bool {
	for _, name := range []string{BeganName, stage.PagesDir} {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			return true
		}
	}
	return false
}

// otherCrawl suggests the directory that the crawl may be in.
func otherCrawl(path string) string {
	if path != DemoOut && HasCrawl(DemoOut) {
		return fmt.Sprintf(" (that of the built-in web is in %s: use -out %[1]s)", DemoOut)
	}
	return ""
}

// Announce records which process has the directory and the address of its live page.
func (d *Directory) Announce(page string) error {
	d.Page = page
	text, err := json.Marshal(d.holder)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.path, holderName), append(text, '\n'), 0o666)
}

// Close lets others use the directory.
func (d *Directory) Close() error {
	err := os.Remove(filepath.Join(d.path, holderName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, d.lock.Close())
}

// heldError returns an error that names the process that has a directory, and what to do.
func heldError(path string) error {
	var h holder
	text, err := os.ReadFile(filepath.Join(path, holderName))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return fmt.Errorf("%s: %w: wait until it ends, or name another directory with -out", path, ErrHeld)
	}
	instead := "it has no live page (-listen)"
	if h.Page != "" {
		instead = "its live page also explains: " + h.Page
	}
	return fmt.Errorf("%s: %w: process %d (%s, since %s); stop it first, for example with kill %d; %s",
		path, ErrHeld, h.PID, h.Command, moment(h.Since), h.PID, instead)
}

// Forget removes everything known about pages. If it is interrupted, the directory still holds a
// complete crawl or none.
func (d *Directory) Forget() error {
	err := stage.ForgetPages(d.path)
	for _, name := range []string{FiltersName, OrderName, BeganName} {
		if e := os.Remove(filepath.Join(d.path, name)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Files next to the archive that save work when the crawl resumes.
const (
	HostsName  = "hosts.cache"  // addresses
	RulesName  = "robots.cache" // rules of servers
	RhythmName = "rhythm.cache" // when hosts publish, and how reliable their sitemaps are
	OrderName  = "rank.cache"   // scores and links of pages
	StateName  = "politeness.state"
	PausedName = "paused.state" // hosts, by the operator
	BeganName  = "began"
)
