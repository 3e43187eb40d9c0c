package cockpit

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// How often the progress line is updated: on a terminal, and in a file, where lines accumulate.
const (
	progressOnTerminal = 250 * time.Millisecond
	progressInFile     = 10 * time.Second
)

// columns is the width of a terminal that does not tell it. A longer line would scroll at each update.
const columns = 80

// ShowProgress keeps one line up to date on w until the returned function is called.
func (c *Crawl) ShowProgress(w io.Writer) (done func()) {
	c.Say, done = keepLine(w, c.Progress)
	return done
}

// keepLine shows what text returns in one line, until done is called. say prints another line.
func keepLine(w io.Writer, text func() string) (say func(string), done func()) {
	every, start, end := progressInFile, "", "\n"
	line := text
	if isTerminal(w) {
		every, start, end = progressOnTerminal, "\r\x1b[K", ""
		line = func() string { return narrow(text(), widthOf(w)) }
	}
	quit, finished := make(chan struct{}), make(chan struct{})
	messages := make(chan string, 1)
	go func() {
		defer close(finished)
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				fmt.Fprint(w, start, line(), end)
			case text := <-messages:
				fmt.Fprint(w, start, text, "\n")
			case <-quit:
				fmt.Fprint(w, start)
				return
			}
		}
	}()
	say = func(text string) {
		select {
		case messages <- text:
		case <-quit:
		}
	}
	return say, func() { close(quit); <-finished }
}

// showWork shows on a terminal what a command does and for how long, until done is called.
func showWork(w io.Writer, what func() string) (done func()) {
	if !isTerminal(w) {
		return func() {}
	}
	began := time.Now()
	_, done = keepLine(w, func() string {
		return fmt.Sprintf("%s  %s", spell(time.Since(began).Round(time.Second)), what())
	})
	return done
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// widthOf returns the width of a terminal.
func widthOf(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if width := terminalWidth(file); width > 0 {
			return width
		}
	}
	return columns
}

// narrow truncates a line to less than the width of a terminal.
func narrow(line string, width int) string {
	if letters := []rune(line); len(letters) >= width {
		return string(letters[:max(width-2, 0)]) + "…"
	}
	return line
}

// A countedWriter counts what it writes, and fails once its context has ended. It is as safe for
// concurrent use as its Writer.
type countedWriter struct {
	ctx context.Context
	io.Writer
	n *atomic.Int64
}

func (w countedWriter) Write(p []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	n, err := w.Writer.Write(p)
	w.n.Add(int64(n))
	return n, err
}
