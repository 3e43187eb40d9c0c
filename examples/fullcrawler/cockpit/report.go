package cockpit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// Show makes a crawl visible: its log, its live page and its warnings. The crawl must end before
// hide is called.
func (c *Crawl) Show(d *Directory, w io.Writer) (hide func() error, err error) {
	log, file, err := OpenLog(c.Cfg.LogFile)
	if err != nil && c.Reopened {
		c.Warn("%v: nothing is logged until SIGHUP opens it", err)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	c.Log, c.log = log, file
	if c.Cfg.Listen != "" {
		at, err := c.Listen(c.Cfg.Listen)
		if err == nil {
			err = d.Announce(at)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		fmt.Fprintln(w, "live page:", at)
		if exposed(c.Cfg.Listen) {
			fmt.Fprintf(w, "from other machines: %s?token=%s\n", at, c.liveToken)
			c.Warn("-listen %s lets other machines reach the live page, without encryption", c.Cfg.Listen)
		}
	}
	for _, warning := range c.Warnings {
		fmt.Fprintln(w, "warning:", warning)
		c.Log.Warn(warning)
	}
	return file.Close, nil
}

// TellTrouble reports trouble of this machine on the terminal and in the log; "" means that it is
// over.
func (c *Crawl) TellTrouble(trouble string) {
	if trouble == "" {
		c.Log.Info("trouble over")
		c.Say("online again: the crawl continues")
		return
	}
	c.Log.Error("trouble", "what", trouble)
	c.Say("this machine seems to be offline; the crawl waits and retries: " + trouble)
}

// Progress is the state of the crawl in one line.
func (c *Crawl) Progress() string {
	if trouble, since := c.Uplink.State(); trouble != "" {
		return fmt.Sprintf("waiting since %s: %s", since.Format(time.TimeOnly), trouble)
	}
	s, queue := c.Tally.Sum(), c.Polite.Queue.Stats()
	store := c.Pages.Stats()
	got := fmt.Sprintf("%d pages  %s  %.1f/s", s.Pages, Size(s.Bytes), s.rate())
	if s.Pages+s.Fates[stage.Unchanged] == 0 { // the first delay of each host goes to its rules
		got = counted(s.robots, "robots.txt file") + ", no page yet"
	}
	return fmt.Sprintf("%s  %s  %d hosts (%d wait)  %d due  %d known",
		spell(s.took.Round(time.Second)), got, c.Hosts.Count(), queue.Waiting, store.Due, store.Records)
}

// rate returns the pages per second so far.
func (s summary) rate() float64 {
	return float64(s.Pages) / max(s.took.Seconds(), 1e-9)
}

// Conclude writes the closing summary. It returns the error that made the crawl fail. The user's
// limits and interrupt are not errors. A machine without room is one: nobody has asked the crawl to
// end, so a supervisor must start it again.
func (c *Crawl) Conclude(w io.Writer, ended error) error {
	s, queue, known := c.Tally.Sum(), c.Polite.Queue.Stats(), c.Pages.Stats()
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-22s"+format+"\n", append([]any{name}, args...)...)
	}
	line("ended", "%s", Reason(ended))
	if ended == nil && s.Pages+s.Fates[stage.Unchanged] == 0 && known.Records > 0 {
		line("", "no page is due: -fresh starts over, and -forever waits")
	}
	line("pages", "%d in %s, %.1f per second", s.Pages, s.took.Round(time.Millisecond), s.rate())
	line("bytes", "%s of bodies as sent", Size(s.Bytes))
	line("hosts", "%d known; in this run %d addresses and %d robots.txt have answered", c.Hosts.Count(), s.addrs, s.robots)
	line("names", "%d looked up", c.Resolver.Stats().Loads)
	line("politeness", "%d waits, %s in all", queue.Waits, queue.Waited.Round(time.Millisecond))
	files, err := c.files()
	if len(files) == 0 {
		files = []string{"nothing yet"}
	}
	line("archive", "%s", strings.Join(files, "\n"+strings.Repeat(" ", 22)))
	line("fates", "%s", filepath.Join(c.Cfg.Out, LedgerName))
	line("known", "%s, %d due now", counted(known.Records, "page"), known.Due)
	if coming := c.coming(known.Records, known.Due); coming != "" {
		line("due next", "%s", coming)
	}
	if left := c.retriesLeft(); left != "" {
		line("retries", "%s", left)
	}

	if f, found := c.Tally.reason(ended != nil); found && s.Pages+s.Fates[stage.Unchanged] == 0 {
		line("failed", "%s: %s", f.URL, f.Why)
	}
	if visits := total(s.Fates); visits > 0 {
		table(w, "fates of "+counted(visits, "visit"), s.Fates)
	}
	if again := s.links - known.Added; again > 0 {
		s.Skipped[stage.Duplicate] = again
	}
	if len(s.Skipped) > 0 {
		table(w, "links not followed", s.Skipped)
	}

	if Paused(ended) && !errors.Is(ended, ErrDiskLimit) && !errors.Is(ended, ErrMemoryLimit) {
		return err
	}
	return errors.Join(ended, err)
}

// files returns the names of the archive's files.
func (c *Crawl) files() (files []string, err error) {
	if c.Store == nil {
		return []string{"none"}, nil
	}
	files, err = c.Store.Files()
	for i, name := range files {
		files[i] = filepath.Join(c.Cfg.Out, name)
	}
	return files, err
}

// Reason describes why a crawl ended.
func Reason(err error) string {
	switch {
	case err == nil:
		return "nothing left to fetch for now"
	case Paused(err):
		return err.Error() + "; the same command resumes the crawl"
	}
	return "failed; everything fetched so far is in the archive"
}

// counted returns a number with its noun.
func counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// table writes counts, the largest first.
func table[K ~string](w io.Writer, title string, counts map[K]int64) {
	fmt.Fprintf(w, "\n%s\n", title)
	for _, key := range byCount(counts) {
		fmt.Fprintf(w, "  %8d  %v\n", counts[key], key)
	}
}

// byCount returns the keys of counts, that of the largest first.
func byCount[K ~string](counts map[K]int64) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

func total(counts map[stage.Fate]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// Size formats a number of bytes for people.
func Size(bytes int64) string {
	for _, unit := range units {
		if binary := strings.Contains(unit.name, "i"); !binary && unit.bytes > 1 && float64(bytes) >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(bytes)/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d B", bytes)
}

// spans are the periods for which the summary counts due pages.
var spans = []struct {
	name string
	time time.Duration
}{{"within an hour", time.Hour}, {"more within a day", 24 * time.Hour}, {"more within a week", 7 * 24 * time.Hour}}

// coming describes how many pages will be due when, in real time. It returns "" if none will.
func (c *Crawl) coming(known, before int64) string {
	if known <= before {
		return ""
	}
	times := make([]time.Time, len(spans))
	for i, span := range spans {
		times[i] = c.Clock.Now().Add(c.Clock.Shown(span.time))
	}
	text := ""
	for i, until := range c.Pages.Upcoming(times...) {
		text += fmt.Sprintf("%d %s, ", max(until-before, 0), spans[i].name)
		before = max(until, before)
	}
	return text + fmt.Sprintf("%d later", max(known-before, 0))
}

// retriesLeft describes how many retries are outstanding, or returns "".
func (c *Crawl) retriesLeft() string {
	n, first, _ := c.Retries.Expected(c.Clock.Now().Add(stage.RetryWithin))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d, from %s on: run the same command again then", n, moment(c.Clock.Real(first)))
}
