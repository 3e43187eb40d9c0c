package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// ledgerName is the file, beside the archive, that says what became of each URL.
const ledgerName = "fates.jsonl"

// maxUnwritten is how long a line may wait for others before it is written to the file. Whatever
// kills the program, lines older than that are there; whatever kills the machine is another matter.
const maxUnwritten = time.Second

// A ledger has a line of JSON for each visit of a URL and for each one that was not made: see line.
// A crawl in a directory that has a ledger goes on with it. Its methods are safe for concurrent use.
type ledger struct {
	mu     sync.Mutex
	f      *os.File
	buf    *bufio.Writer // keeps its first error for the calls that follow
	timer  *time.Timer   // calls flush; nil until there is something to flush
	timing bool          // the timer runs
}

// A line is what the ledger says of one visit.
type line struct {
	Time time.Time  `json:"time"`
	URL  string     `json:"url"`
	Fate stage.Fate `json:"fate"`
	Why  string     `json:"why,omitempty"`
	Next time.Time  `json:"next,omitzero"` // when it is due again, as the pages' clock shows it
}

func openLedger(dir string) (*ledger, error) {
	name := filepath.Join(dir, ledgerName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := endLine(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &ledger{f: f, buf: bufio.NewWriterSize(f, 64<<10)}, nil
}

// endLine ends a line that a killed program has left half written.
func endLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = f.Write([]byte{'\n'})
	return err
}

func (l *ledger) write(url string, fate stage.Fate, why string, next time.Time) error {
	text, err := json.Marshal(line{
		Time: time.Now().UTC().Truncate(time.Millisecond), URL: url, Fate: fate, Why: why, Next: next,
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timer == nil:
		l.timer = time.AfterFunc(maxUnwritten, l.flush)
	case !l.timing:
		l.timer.Reset(maxUnwritten)
	}
	l.timing = true
	_, err = l.buf.Write(append(text, '\n'))
	return err
}

// flush writes what has piled up. An error comes out of the next write or of close.
func (l *ledger) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timing = false
	_ = l.buf.Flush()
}

func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	return errors.Join(l.buf.Flush(), l.f.Close())
}
