package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/export"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/satstore"
)

// A subcommand does something with what crawls have left in a directory. out is for results, log
// for the rest.
type subcommand struct {
	summary string
	args    string
	run     func(ctx context.Context, dir string, fs *flag.FlagSet, out, log io.Writer) error
	flags   func(fs *flag.FlagSet)
}

// subcommands by name.
func subcommands() map[string]subcommand {
	var q querying
	var s scanning
	var v serving
	return map[string]subcommand{
		"check":    {summary: "compare all files with their checksums and with each other", run: check},
		"explain":  {summary: "tell what is known of URLs", args: "URL ...", run: explain},
		"export":   {summary: "write the archive as CDXJ or WACZ to a file", args: "cdxj|wacz FILE", run: exportTo},
		"serve":    {summary: "show the archive to web browsers, as of any time", flags: v.flags, run: v.run},
		"snapshot": {summary: "list the versions of a time as lines of JSON", flags: q.flags, run: q.list},
		"scan": {
			summary: "let a program read every version of a time: see package archive/scan for how",
			args:    "PROGRAM ARGUMENTS ...", flags: s.flags, run: s.run,
		},
	}
}

// errUsage is for arguments that make no sense.
var errUsage = errors.New("wrong arguments; -h tells the right ones")

// runSubcommand runs one and returns the exit status.
func runSubcommand(
	ctx context.Context, name string, s subcommand, args []string, out, log io.Writer,
) int {
	fs := flag.NewFlagSet("fullcrawler "+name, flag.ContinueOnError)
	fs.SetOutput(log)
	dir := fs.String("out", "crawl", "`directory` of the crawl")
	if s.flags != nil {
		s.flags(fs)
	}
	fs.Usage = func() {
		fmt.Fprintf(log, "fullcrawler %s [flags] %s\n\n\t%s\n\n", name, s.args, s.summary)
		fs.PrintDefaults()
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	err := s.run(ctx, *dir, fs, out, log)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, satstore.ErrLocked), errors.Is(err, archive.ErrLocked):
		err = fmt.Errorf("%w: a crawl runs in %s; end it first, or ask its live page (-listen)", err, *dir)
	}
	fmt.Fprintln(log, "fullcrawler:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// existing refuses a directory without a crawl, where opening would begin one.
func existing(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("no crawl: %w", err)
	}
	return nil
}

// withPages opens the pages of a crawl for use.
func withPages(dir string, use func(p *stage.Pages, c clock) error) error {
	if err := existing(dir); err != nil {
		return err
	}
	p, c, err := openPages(config{out: dir})
	if err != nil {
		return err
	}
	return errors.Join(use(p, c), p.Close())
}

func withArchive(dir string, use func(a *archive.Archive) error) error {
	if err := existing(dir); err != nil {
		return err
	}
	a, err := archive.Open(dir, archive.Options{})
	if err != nil {
		return err
	}
	return errors.Join(use(a), a.Close())
}

// errFaults is returned by check if it has found some.
var errFaults = errors.New("the check found faults")

func check(ctx context.Context, dir string, _ *flag.FlagSet, out, _ io.Writer) error {
	err := withPages(dir, func(p *stage.Pages, _ clock) error {
		if err := p.Check(); err != nil {
			return err
		}
		store, _ := p.Stats()
		fmt.Fprintf(out, "pages    %d, all sound\n", store.Records)
		return nil
	})
	return errors.Join(err, withArchive(dir, func(a *archive.Archive) error {
		checked, err := a.Verify(ctx, func(f archive.Fault) {
			fmt.Fprintf(out, "%s:%d: %s: %v\n", f.File, f.Offset, f.URL, f.Err)
		})
		fmt.Fprintf(out, "archive  %d files, %d records, %d versions, %d faults\n",
			checked.Files, checked.Records, checked.Entries, checked.Faults)
		if err == nil && checked.Faults > 0 {
			err = errFaults
		}
		return err
	}))
}

func explain(_ context.Context, dir string, fs *flag.FlagSet, out, _ io.Writer) error {
	if fs.NArg() == 0 {
		return errUsage
	}
	return withPages(dir, func(p *stage.Pages, c clock) error {
		return withArchive(dir, func(a *archive.Archive) error {
			for _, arg := range fs.Args() {
				url, err := stage.Seed(arg)
				if err != nil {
					return err
				}
				for _, f := range append(aboutPage(p, c, url), aboutVersions(a, url)...) {
					fmt.Fprintf(out, "%-14s %s\n", f.Name, f.Text)
				}
			}
			return nil
		})
	})
}

// A fact is one thing that is known of a page or a host.
type fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// aboutPage tells what is on record of a page.
func aboutPage(p *stage.Pages, c clock, url string) []fact {
	facts := []fact{{"page", url}}
	known, err := p.Find(url)
	if err != nil {
		return append(facts, fact{"known", err.Error()})
	}
	s := known.State
	facts = append(facts, fact{"links away", fmt.Sprint(known.Item.Depth, " from a seed")})
	if last := s.History.Last(); !last.IsZero() {
		visits, changes := s.History.Visits()
		facts = append(facts, fact{"last visit", moment(last)},
			fact{"visits", fmt.Sprintf("%d after the first, %d of them found a change", visits, changes)})
	}
	if s.Failures > 0 {
		facts = append(facts, fact{"failures", fmt.Sprint(s.Failures, " in a row")})
	}
	due := "now"
	if at := time.Unix(s.Due, 0); at.After(c.now()) {
		due = moment(at)
	}
	if s.Booked > 0 {
		due += fmt.Sprintf(", %v after the visit before", seconds(s.Booked))
	}
	return append(facts, fact{"due", due})
}

// aboutVersions tells what the archive has of a page.
func aboutVersions(a *archive.Archive, url string) (facts []fact) {
	versions, err := a.Versions(url)
	if err != nil {
		return []fact{{"versions", err.Error()}}
	}
	const most = 20
	facts = append(facts, fact{"versions", fmt.Sprint(len(versions))})
	for _, v := range versions[max(0, len(versions)-most):] {
		facts = append(facts, fact{"", fmt.Sprintf("%s  %d  %s  %s:%d",
			moment(v.Time), v.Status, v.Kind, v.Location.File, v.Location.Offset)})
	}
	return facts
}

func moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func exportTo(_ context.Context, dir string, fs *flag.FlagSet, _, _ io.Writer) error {
	forms := map[string]func(io.Writer, *archive.Archive) error{
		"cdxj": export.CDXJ,
		"wacz": func(w io.Writer, a *archive.Archive) error { return export.WACZ(w, a, export.Options{}) },
	}
	write, known := forms[fs.Arg(0)]
	if !known || fs.NArg() != 2 {
		return errUsage
	}
	return withArchive(dir, func(a *archive.Archive) error {
		f, err := os.Create(fs.Arg(1))
		if err != nil {
			return err
		}
		return errors.Join(write(f, a), f.Close())
	})
}

// querying are the flags that choose versions.
type querying struct {
	at                 string
	host, site, prefix string
	failed             bool
}

func (q *querying) flags(fs *flag.FlagSet) {
	fs.StringVar(&q.at, "at", "", "the `time` to show, such as 2026-01-31 or 2026-01-31T12:00:00Z; default: the last versions")
	fs.StringVar(&q.host, "host", "", "only this `host`")
	fs.StringVar(&q.site, "site", "", "only this `domain` and all below it")
	fs.StringVar(&q.prefix, "prefix", "", "only URLs that begin like this `URL`")
	fs.BoolVar(&q.failed, "failed", false, "error responses too")
}

func (q *querying) query() (archive.Query, error) {
	query := archive.Query{Host: q.host, Site: q.site, Prefix: q.prefix, Failed: q.failed}
	if q.at == "" {
		return query, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		at, err := time.ParseInLocation(layout, q.at, time.Local)
		if err != nil {
			continue
		}
		query.From, query.To = at, at.Add(time.Microsecond)
		query.Relations = validAt
		return query, nil
	}
	return query, fmt.Errorf("%w: -at %q is no time", errUsage, q.at)
}

// validAt are the relations of what is valid at the beginning of an interval.
const validAt = archive.Overlaps | archive.Starts | archive.Equal | archive.FinishedBy |
	archive.Contains | archive.StartedBy

// A listing is what snapshot says of a version.
type listing struct {
	URL    string    `json:"url"`
	Time   time.Time `json:"time"`
	Until  time.Time `json:"until,omitzero"`
	Kind   string    `json:"kind"`
	Status int       `json:"status"`
	Media  string    `json:"media,omitempty"`
	Digest string    `json:"digest,omitempty"`
	File   string    `json:"file"`
	Offset int64     `json:"offset"`
}

func listingOf(v *archive.Version) listing {
	return listing{v.URL, v.Time, v.Until, v.Kind.String(), v.Status, v.Media, v.Digest.String(),
		v.Content.File, v.Content.Offset}
}

func (q *querying) list(_ context.Context, dir string, _ *flag.FlagSet, out, _ io.Writer) error {
	query, err := q.query()
	if err != nil {
		return err
	}
	return withArchive(dir, func(a *archive.Archive) (err error) {
		snapshot, err := a.Snapshot(query)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, snapshot.Close()) }()
		lines := json.NewEncoder(out)
		for v, err := range snapshot.Versions() {
			if err != nil {
				return err
			}
			if err := lines.Encode(listingOf(&v)); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanning are the flags of a scan.
type scanning struct {
	querying
	options scan.Options
}

func (s *scanning) flags(fs *flag.FlagSet) {
	s.querying.flags(fs)
	fs.IntVar(&s.options.Workers, "workers", 0, "how many programs to run at one time; 0: one for each core")
	fs.IntVar(&s.options.RestartAfter, "restart", 0, "begin each program anew after so many documents; 0: never")
	fs.DurationVar(&s.options.Timeout, "timeout", time.Minute, "longest a document may take")
	fs.BoolVar(&s.options.Ordered, "ordered", false, "results in the order of the documents")
}

// scanned is a line of results.
type scanned struct {
	listing
	Result json.RawMessage `json:"result,omitempty"` // if it is JSON
	Text   string          `json:"text,omitempty"`   // if it is not
	Error  string          `json:"error,omitempty"`
}

func (s *scanning) run(ctx context.Context, dir string, fs *flag.FlagSet, out, log io.Writer) error {
	query, err := s.query()
	if err == nil && fs.NArg() == 0 {
		err = errUsage
	}
	if err != nil {
		return err
	}
	return withArchive(dir, func(a *archive.Archive) (err error) {
		snapshot, err := a.Snapshot(query)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, snapshot.Close()) }()
		s.options.Progress = progressOf(log, snapshot.Len())
		lines := json.NewEncoder(out)
		start := scan.Command(fs.Arg(0), slices.Clone(fs.Args()[1:])...)
		for result, err := range snapshot.Scan(ctx, start, s.options) {
			if err != nil {
				return err
			}
			if err := lines.Encode(scannedOf(result)); err != nil {
				return err
			}
		}
		return nil
	})
}

func scannedOf(r scan.Result) (line scanned) {
	if v, ok := r.Value.(archive.Version); ok {
		line.listing = listingOf(&v)
	}
	switch {
	case r.Err != nil:
		line.Error = r.Err.Error()
	case json.Valid(r.Out):
		line.Result = r.Out
	default:
		line.Text = strings.ToValidUTF8(string(r.Out), "\uFFFD")
	}
	return line
}

// progressOf returns what keeps one line on a terminal up to date.
func progressOf(log io.Writer, all int) func(scan.Stats) {
	if !isTerminal(log) {
		return nil
	}
	var last time.Time
	return func(s scan.Stats) {
		if time.Since(last) < progressOnTerminal && s.Results < int64(all) {
			return
		}
		last = time.Now()
		fmt.Fprintf(log, "\r\x1b[K%d of %d, %d failed, %d workers died", s.Results, all, s.Failed, s.Deaths)
		if s.Results == int64(all) {
			fmt.Fprintln(log)
		}
	}
}
