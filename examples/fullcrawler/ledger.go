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

// A ledger has a line for each URL with a fate: time, fate, URL, and what else there is to say,
// with tabs between them. A crawl in a directory that has a ledger goes on with it. Its methods are
// safe for concurrent use.
type ledger struct {
	mu  sync.Mutex
	f   *os.File
	buf *bufio.Writer
}

func openLedger(dir string) (*ledger, error) {
	name := filepath.Join(dir, ledgerName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &ledger{f: f, buf: bufio.NewWriterSize(f, 64<<10)}, nil
}

// unbroken keeps what servers say from beginning a line or a field of its own.
var unbroken = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

func (l *ledger) write(url string, fate stage.Fate, why string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now().UTC().Format(time.RFC3339)
	_, err := fmt.Fprintf(l.buf, "%s\t%s\t%s\t%s\n", at, fate, url, unbroken.Replace(why))
	return err
}

func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.buf.Flush(), l.f.Close())
}
