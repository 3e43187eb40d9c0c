package cockpit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// LedgerName is the file next to the archive that records the fate of each visit.
const LedgerName = "fates.jsonl"

// maxWaiting is how many bytes of lines may be buffered until the next Flush.
const maxWaiting = 64 << 10

// A Ledger has a line of JSON for each completed visit, see [Line]. A crawl in a directory with a
// ledger appends to it. Its methods are safe for concurrent use.
//
// A visit has one line, and the line is in the file before the visit is committed. If the process
// is killed between the two, the visit is repeated and has a second line; but no committed visit
// lacks its line. A power failure may lose the lines of the last seconds.
type Ledger struct {
	mu      sync.Mutex
	f       *os.File
	size    int64  // of the file
	most    int64  // size at which a new file is started; 0 is never
	waiting []byte // whole lines
	failed  error  // of the first write that failed, for later calls
}

// A Line is the ledger's record of one visit.
type Line struct {
	Time time.Time  `json:"time"`
	URL  string     `json:"url"`
	Fate stage.Fate `json:"fate"` // a code
	Says string     `json:"says"` // the same in words

	// Signals are the site's statements on the use of the page, such as "train-ai=n".
	Signals string    `json:"signals,omitempty"`
	Why     string    `json:"why,omitempty"`
	Next    time.Time `json:"next,omitzero"` // when it is due again, by the pages' clock
}

// OpenLedger opens the ledger of a directory, or creates one. When the file has that many bytes, it
// is renamed to include the time, and a new one is started; 0 is never.
func OpenLedger(dir string, most int64) (*Ledger, error) {
	name := filepath.Join(dir, LedgerName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := cutTail(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	size, err := f.Seek(0, io.SeekEnd)
	return &Ledger{f: f, size: size, most: most}, err
}

// cutTail removes an incomplete last line, which a full disk or a power failure can leave.
func cutTail(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	const step = 64 << 10
	for block := make([]byte, step); size > 0; {
		n := min(size, step)
		if _, err := f.ReadAt(block[:n], size-n); err != nil {
			return err
		}
		if end := bytes.LastIndexByte(block[:n], '\n'); end >= 0 {
			return f.Truncate(size - n + int64(end) + 1)
		}
		size -= n
	}
	return f.Truncate(0)
}

// lastLine returns the last line about a URL in the ledger of a directory, or the zero Line. It reads
// all of the latest file.
func lastLine(dir, url string) (last Line, err error) {
	field := appendString([]byte(`"url":`), url)
	files, err := ledgers(dir)
	for _, file := range slices.Backward(files) {
		if err != nil || last.URL != "" {
			break
		}
		err = eachText(file, func(text []byte) error {
			var line Line
			if bytes.Contains(text, field) && json.Unmarshal(text, &line) == nil && line.URL == url {
				last = line
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) { // a crawl has just renamed it
			err = nil
		}
	}
	return last, err
}

// ledgers returns the files of the ledger of a directory, the latest one last.
func ledgers(dir string) (files []string, err error) {
	files, err = filepath.Glob(filepath.Join(dir, "fates-*.jsonl")) // sorted
	if name := filepath.Join(dir, LedgerName); err == nil {
		if _, missing := os.Lstat(name); missing == nil {
			files = append(files, name)
		}
	}
	return files, err
}

// eachText passes the lines of a file to use, each with its end.
func eachText(name string, use func(text []byte) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewReader(f); err == nil; {
		var text []byte
		if text, err = lines.ReadBytes('\n'); len(text) > 0 && (err == nil || err == io.EOF) {
			err = cmp.Or(use(text), err)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return err
}

// Write appends the line of a visit. The line is in the file after the next Flush. Once a write has failed,
// every call returns that error.
func (l *Ledger) Write(url string, fate stage.Fate, why, signals string, next time.Time) error {
	line := Line{
		Time: time.Now().UTC().Truncate(time.Millisecond),
		URL:  url, Fate: fate, Says: fate.String(), Signals: signals, Why: why, Next: next,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(line.appendJSON(l.waiting), '\n')
	if len(l.waiting) >= maxWaiting {
		return l.writeOut()
	}
	return l.failed
}

// Flush writes the buffered lines.
func (l *Ledger) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeOut()
}

// writeOut writes whole lines in one call, so that a kill leaves no incomplete ones. It requires
// that l.mu is held.
func (l *Ledger) writeOut() error {
	if l.failed == nil && len(l.waiting) > 0 {
		_, l.failed = l.f.Write(l.waiting)
		l.size += int64(len(l.waiting))
	}
	l.waiting = l.waiting[:0]
	if l.failed == nil && l.most > 0 && l.size >= l.most {
		l.failed = l.rotate()
	}
	return l.failed
}

// rotate renames the file and starts a new one. If it is interrupted, no line is lost. It requires
// that l.mu is held.
func (l *Ledger) rotate() error {
	name, aside := l.f.Name(), ""
	for at := time.Now().UTC(); ; at = at.Add(time.Millisecond) { // an earlier file may have the name
		aside = strings.TrimSuffix(name, ".jsonl") + at.Format("-20060102T150405.000") + ".jsonl"
		if _, err := os.Lstat(aside); err != nil {
			break // of other errors, renaming will tell
		}
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	if err := vfs.RenameDir(name, aside); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	err = l.f.Close()
	l.f, l.size = f, 0
	return err
}

// Close writes the buffered lines and closes the file.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.writeOut(), l.f.Close())
}
