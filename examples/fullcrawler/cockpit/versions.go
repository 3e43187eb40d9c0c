package cockpit

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/archive/export"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// exports are the forms in which an archive can be written to one file.
var exports = map[string]func(io.Writer, *archive.Archive) error{
	"cdxj": export.CDXJ,
	"wacz": func(w io.Writer, a *archive.Archive) error { return export.WACZ(w, a, export.Options{}) },
}

// exportTo replaces a file, so that an interrupted export leaves the old one. - is standard output.
func exportTo(ctx context.Context, in call) error {
	if len(in.args) != 2 || exports[in.args[0]] == nil {
		return errUsage
	}
	return withArchive(in.dir, func(a *archive.Archive) error {
		var written atomic.Int64
		export := func(w io.Writer) error { return exports[in.args[0]](countedWriter{ctx, w, &written}, a) }
		name, began := in.args[1], time.Now()
		if name == "-" {
			return export(in.out)
		}
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file: - writes to standard output", name)
		}
		done := showWork(in.log, func() string { return name + ": " + Size(written.Load()) + " written" })
		err := stage.ReplaceWith(name, export)
		if done(); err != nil {
			return err
		}
		_, err = fmt.Fprintf(in.out, "%s: %s in %s\n", name, Size(written.Load()),
			spell(time.Since(began).Round(time.Millisecond)))
		return err
	})
}

// querying are the flags that choose versions.
type querying struct {
	at                 string
	host, site, prefix string
	failed             bool
}

func (q *querying) flags(fs *flag.FlagSet) {
	fs.StringVar(&q.at, "at", "", "the `time` to show, such as 2026-01-31 or 2026-01-31T12:00:00Z; "+
		"default: now")
	fs.StringVar(&q.host, "host", "", "only this `host`")
	fs.StringVar(&q.site, "site", "", "only this `domain` and its subdomains")
	fs.StringVar(&q.prefix, "prefix", "", "only URLs that begin with this `URL`")
	fs.BoolVar(&q.failed, "failed", false, "include error responses")
}

func (q *querying) query() (archive.Query, error) {
	query := archive.Query{
		Host: q.host, Site: q.site, Prefix: q.prefix, Failed: q.failed, Relations: validAt,
	}
	if q.at == "" { // and not those of a clock that was ahead
		query.From = time.Now()
		query.To = query.From.Add(time.Microsecond)
		return query, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		at, err := time.ParseInLocation(layout, q.at, time.Local)
		if err != nil {
			continue
		}
		query.From, query.To = at, at.Add(time.Microsecond)
		return query, nil
	}
	return query, fmt.Errorf("%w: -at %q: want a time such as 2026-12-31, "+
		`"2026-12-31 09:30:00" or 2026-12-31T09:30:00Z`, errUsage, q.at)
}

// validAt are the relations of a version that is valid at the beginning of an interval.
const validAt = allen.Overlaps | allen.Starts | allen.Equal | allen.FinishedBy |
	allen.Contains | allen.StartedBy

// A Listing is a line of snapshot, for one version.
type Listing struct {
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

func listingOf(v *archive.Version) Listing {
	return Listing{v.URL, v.Time, v.Until, v.Kind.String(), v.Status, v.Media, v.Digest(),
		v.Content.File, v.Content.Offset}
}

// list writes the versions of a query as lines of JSON.
func (q *querying) list(_ context.Context, in call) error {
	query, err := q.query()
	if err != nil {
		return err
	}
	return withArchive(in.dir, func(a *archive.Archive) error {
		lines := json.NewEncoder(in.out)
		return eachVersion(a, query, func(v *archive.Version) error { return lines.Encode(listingOf(v)) })
	})
}

// scanning are the flags of a scan.
type scanning struct {
	querying
	options scan.Options
	filter  bool
}

func (s *scanning) flags(fs *flag.FlagSet) {
	s.querying.flags(fs)
	fs.IntVar(&s.options.Workers, "workers", runtime.NumCPU(), "number of programs to run concurrently")
	fs.IntVar(&s.options.RestartAfter, "restart", 0,
		"restart each program after this many documents; 0: never")
	fs.Var(spanIn(&s.options.Timeout, time.Minute), "timeout", "maximum `duration` per document")
	fs.BoolVar(&s.filter, "filter", false, "run the program once per document, with the text on its standard "+
		"input instead of the protocol of package scan; for example: scan -filter wc -c")
	fs.BoolVar(&s.options.Ordered, "ordered", false, "print results in document order")
}

// scanned is a line of results.
type scanned struct {
	Listing
	Result json.RawMessage `json:"result,omitempty"` // if it is JSON
	Text   string          `json:"text,omitempty"`   // if it is not
	Error  string          `json:"error,omitempty"`
}

func (s *scanning) run(ctx context.Context, in call) error {
	query, err := s.query()
	if err == nil && len(in.args) == 0 {
		err = errUsage
	}
	if err != nil {
		return err
	}
	return withArchive(in.dir, func(a *archive.Archive) (err error) {
		snapshot, err := a.Snapshot(query)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, snapshot.Close()) }()
		var last atomic.Pointer[scan.Stats]
		last.Store(&scan.Stats{})
		s.options.Progress = func(stats scan.Stats) { last.Store(&stats) }
		all := snapshot.Len()
		defer showWork(in.log, func() string {
			stats := last.Load()
			return fmt.Sprintf("%d of %d, %d failed, %d workers died", stats.Results, all, stats.Failed, stats.Deaths)
		})()
		lines := json.NewEncoder(in.out)
		start, duty := scan.Command, "without -filter it must speak the protocol of package archive/scan"
		if s.filter {
			start, duty = scan.Filter, "it must read its standard input, and exit"
		}
		var unanswered silence
		for result, err := range snapshot.Scan(ctx, start(in.args[0], slices.Clone(in.args[1:])...), s.options) {
			if err != nil {
				return err
			}
			if err := lines.Encode(scannedOf(result)); err != nil {
				return err
			}
			if unanswered.heard(result.Err) {
				return fmt.Errorf("no answer from %s: %s: %w", in.args[0], duty, result.Err)
			}
		}
		return nil
	})
}

// silentDocuments is how many documents may fail if a program never answers. A single one could be the cause itself.
const silentDocuments = 2

// A silence counts the documents that a program has not answered; it is -1 once the program has answered one.
type silence int

// heard records a result, and reports whether the program never answers.
func (s *silence) heard(result error) (never bool) {
	switch {
	case *s < 0:
	case result == nil, errors.Is(result, scan.ErrFailed):
		*s = -1
	case errors.Is(result, scan.ErrSkipped):
		*s++
	}
	return *s == silentDocuments
}

func scannedOf(r scan.Result) (line scanned) {
	if v, ok := r.Value.(archive.Version); ok {
		line.Listing = listingOf(&v)
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
