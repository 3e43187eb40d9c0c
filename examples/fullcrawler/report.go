package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// How often the progress line is renewed: on a terminal, and where lines pile up in a file.
const (
	progressOnTerminal = 250 * time.Millisecond
	progressInFile     = 10 * time.Second
)

// showProgress keeps one line up to date on w until the returned function is called.
func (c *crawler) showProgress(w io.Writer) (done func()) {
	every, start, end := progressInFile, "", "\n"
	if isTerminal(w) {
		every, start, end = progressOnTerminal, "\r\x1b[K", ""
	}
	quit, finished := make(chan struct{}), make(chan struct{})
	said := make(chan string, 1)
	c.say = func(text string) {
		select {
		case said <- text:
		case <-quit:
		}
	}
	go func() {
		defer close(finished)
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				fmt.Fprint(w, start, c.progress(), end)
			case text := <-said:
				fmt.Fprint(w, start, text, "\n")
			case <-quit:
				fmt.Fprint(w, start)
				return
			}
		}
	}()
	return func() { close(quit); <-finished }
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// tellTrouble says on the terminal and in the log that the machine is in trouble; "" means that it
// is over.
func (c *crawler) tellTrouble(trouble string) {
	if trouble == "" {
		c.log.Info("trouble over")
		c.say("answers come in again: the crawl goes on")
		return
	}
	c.log.Error("trouble", "what", trouble)
	c.say("this machine seems to be offline; the crawl waits and tries again: " + trouble)
}

// progress is the state of the crawl in one line.
func (c *crawler) progress() string {
	if trouble, since := c.uplink.State(); trouble != "" {
		return fmt.Sprintf("waiting since %s: %s", since.Format(time.TimeOnly), trouble)
	}
	s, queue := c.tally.sum(), c.queue.Stats()
	store, _ := c.pages.Stats()
	return fmt.Sprintf("%s  %d pages  %s  %.1f pages/s  %d hosts  "+
		"%d due (%d hosts wait for their delay)  %d known",
		s.took.Round(time.Second), s.pages, size(s.bytes), s.rate(), c.hosts.Count(),
		store.Due, queue.Waiting, store.Records)
}

// rate returns the pages per second so far.
func (s summary) rate() float64 {
	return float64(s.pages) / max(s.took.Seconds(), 1e-9)
}

// conclude writes the closing summary. It returns the error that made the crawl fail; limits and
// the user's wish to stop are none.
func (c *crawler) conclude(w io.Writer, ended error) error {
	s, queue := c.tally.sum(), c.queue.Stats()
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-22s"+format+"\n", append([]any{name}, args...)...)
	}
	line("ended", "%s", reason(ended))
	if ended == nil && total(s.fates) == 0 && c.known.Records > 0 {
		line("", "no page is due: -fresh begins anew, and -forever waits")
	}
	line("pages", "%d in %s, %.1f per second", s.pages, s.took.Round(time.Millisecond), s.rate())
	line("bytes", "%s of bodies as sent", size(s.bytes))
	line("hosts", "%d on %d addresses, %d robots.txt", c.hosts.Count(), s.addrs, s.robots)
	line("names", "%d looked up", c.resolver.Stats().Loads)
	line("politeness", "%d waits, %s in all", queue.Waits, queue.Waited.Round(time.Millisecond))
	files, err := c.files()
	line("archive", "%s", strings.Join(files, "\n"+strings.Repeat(" ", 22)))
	line("fates", "%s", filepath.Join(c.cfg.out, ledgerName))
	line("known", "%d pages, of which %d are due now", c.known.Records, c.known.Due)
	if left := c.retriesLeft(); left != "" {
		line("to come", "%s", left)
	}

	fmt.Fprintf(w, "\nwhat became of %d visits\n", total(s.fates))
	table(w, s.fates)
	fmt.Fprintf(w, "\nlinks not followed\n")
	if again := s.sights - c.known.Added; again > 0 {
		s.skipped[stage.Duplicate] = again
	}
	table(w, s.skipped)

	if paused(ended) {
		return err
	}
	return errors.Join(ended, err)
}

// files returns the names of the archive's files.
func (c *crawler) files() (files []string, err error) {
	if c.store == nil {
		return []string{"none"}, nil
	}
	files, err = c.store.Files()
	for i, name := range files {
		files[i] = filepath.Join(c.cfg.out, name)
	}
	return files, err
}

// reason says in words why a crawl ended.
func reason(err error) string {
	switch {
	case err == nil:
		return "nothing left to fetch for now"
	case paused(err):
		return err.Error() + "; the same command goes on from here"
	}
	return "failed; what was fetched before is in the archive"
}

// table writes counts, the largest first.
func table[K ~string](w io.Writer, counts map[K]int64) {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for _, key := range keys {
		fmt.Fprintf(w, "  %8d  %s\n", counts[key], key)
	}
}

func total(counts map[stage.Fate]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// size renders bytes for people.
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, larger := range []string{"KB", "MB", "GB", "TB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// retriesLeft says how many retries are still to come, or "".
func (c *crawler) retriesLeft() string {
	n, first, _ := c.retries.Expected(c.clock.Now().Add(stage.RetryWithin))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d retries, the first at %s: the same command makes them then",
		n, moment(first))
}
