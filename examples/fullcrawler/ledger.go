package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// ledgerName is the file, beside the archive, that says what became of each URL.
const ledgerName = "fates.tsv"

// maxUnwritten is how long a line may wait for others before it is written to the file. Whatever
// kills the program, lines older than that are there; whatever kills the machine is another matter.
const maxUnwritten = time.Second

// A ledger has a line for each URL with a fate: time, fate, URL, and what else there is to say,
// with tabs between them. A crawl in a directory that has a ledger goes on with it. Its methods are
// safe for concurrent use.
type ledger struct {
	mu     sync.Mutex
	f      *os.File
	buf    *bufio.Writer // keeps its first error for the calls that follow
	timer  *time.Timer   // calls flush; nil until there is something to flush
	timing bool          // the timer runs
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

// unbroken keeps what servers say from beginning a line or a field of its own.
var unbroken = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

func (l *ledger) write(url string, fate stage.Fate, why string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timer == nil:
		l.timer = time.AfterFunc(maxUnwritten, l.flush)
	case !l.timing:
		l.timer.Reset(maxUnwritten)
	}
	l.timing = true
	at := time.Now().UTC().Format(time.RFC3339)
	_, err := fmt.Fprintf(l.buf, "%s\t%s\t%s\t%s\n", at, fate, url, unbroken.Replace(why))
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
