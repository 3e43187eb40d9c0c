package cockpit

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/satstore"
)

// CommandLine parses a command line. If it does not crawl, such as a subcommand, CommandLine
// executes it and returns the exit status. For a crawl it returns the configuration.
func CommandLine(
	ctx context.Context, args []string, out, log io.Writer,
) (cfg Config, isCrawl bool, status int) {
	if name, s, rest := findSubcommand(args); name != "" {
		return cfg, false, runSubcommand(ctx, name, s, rest, out, log)
	}
	cfg, err := ParseFlags(args, log)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return cfg, false, Exit(log, Help(out, wordAfterHelp(args)))
	case err != nil:
		Exit(log, err)
		return cfg, false, 2
	case cfg.DryRun:
		return cfg, false, Exit(log, DryRun(cfg, out))
	}
	return cfg, true, 0
}

// Crawls reports whether a command line is that of a crawl.
func Crawls(args []string) bool {
	name, _, _ := findSubcommand(args)
	return name == ""
}

// wordAfterHelp returns what a command line asks to be explained, or "".
func wordAfterHelp(args []string) string {
	for i, arg := range args[:max(len(args)-1, 0)] {
		if name := strings.TrimLeft(arg, "-"); arg != name && (name == "h" || name == "help") {
			return strings.Join(args[i+1:], " ")
		}
	}
	return ""
}

// findSubcommand returns the command in a command line and its arguments, or "". Only flags of the
// command may precede it.
func findSubcommand(args []string) (name string, s subcommand, rest []string) {
	commands := Subcommands()
	for i, arg := range args {
		if strings.TrimLeft(arg, "-") == "version" {
			arg = "version"
		}
		if s, known := commands[arg]; known {
			fs, _ := s.flagSet(arg)
			if fs.Parse(args[:i]) == nil && fs.NArg() == 0 {
				return arg, s, slices.Concat(args[:i], args[i+1:])
			}
		}
	}
	return "", s, nil
}

// flagSet returns the flags of a subcommand, and the value of -out.
func (s subcommand) flagSet(name string) (fs *flag.FlagSet, dir *string) {
	fs = flag.NewFlagSet("fullcrawler "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	dir = fs.String("out", DefaultOut, "`directory` of the crawl")
	if s.flags != nil {
		s.flags(fs)
	}
	return fs, dir
}

// Exit reports an error, if there is one, and returns the exit status.
func Exit(log io.Writer, err error) (status int) {
	if err == nil {
		return 0
	}
	fmt.Fprintln(log, "fullcrawler:", err)
	return 1
}

// A subcommand works on the directory of a crawl.
type subcommand struct {
	summary string
	args    string
	flags   func(fs *flag.FlagSet)
	run     func(ctx context.Context, in call) error
	program bool // the arguments are a program and its arguments, which may look like flags
	beside  bool // it reads only the archive: of any directory, also while a crawl writes it
}

// A call is one use of a subcommand. out is for results, log for the rest.
type call struct {
	dir      string
	args     []string
	out, log io.Writer
}

// Subcommands by name.
func Subcommands() map[string]subcommand {
	var q querying
	var s scanning
	var v serving
	var e erasing
	return map[string]subcommand{
		"help": {
			summary: "explain a flag, a group of flags or all, or list them", args: "[all|FLAG|GROUP]", beside: true,
			run: func(_ context.Context, in call) error { return Help(in.out, strings.Join(in.args, " ")) },
		},
		"version": {summary: "print the version", beside: true, run: func(_ context.Context, in call) error {
			_, err := fmt.Fprintln(in.out, "fullcrawler", Version())
			return err
		}},
		"health": {summary: "tell whether a crawl runs here, and its live page answers", run: health, beside: true},
		"check": {summary: "compare all files with their checksums and with each other; during a crawl, only those of the archive",
			run: check, beside: true},
		"repair": {summary: "repair what check found, as far as possible", run: repair},
		"explain": {
			summary: "print what is known about URLs", args: "URL ...", run: explain,
		},
		"erase": {
			summary: "erase pages from all files, and keep crawls from fetching them again; a HOST includes all hosts under it",
			args:    "URL|PREFIX*|HOST ...", flags: e.flags, run: e.run,
		},
		"export": {
			summary: "write a CDXJ index for pywb, or a WACZ file for ReplayWeb.page", args: "cdxj|wacz FILE", run: exportTo,
			beside: true,
		},
		"import": {
			summary: "add WARC files of other programs to the archive, without copying them",
			args:    "FILE ...", run: importFiles,
		},
		"serve": {
			summary: "serve an archive to browsers, as of any time, also while a crawl writes it", flags: v.flags, run: v.run,
			beside: true,
		},
		"snapshot": {
			summary: "list the versions at a time as lines of JSON", flags: q.flags, run: q.list,
			beside: true,
		},
		"scan": {
			summary: "pass every version at a time to a program, by the protocol of package archive/scan",
			args:    "PROGRAM ARGUMENTS ...", flags: s.flags, run: s.run, program: true,
			beside: true,
		},
	}
}

// errUsage is wrapped by errors for invalid arguments.
var errUsage = errors.New("invalid arguments")

// runSubcommand runs a subcommand and returns the exit status.
func runSubcommand(
	ctx context.Context, name string, s subcommand, args []string, out, log io.Writer,
) int {
	fs, dir := s.flagSet(name)
	in, err := s.parse(fs, args)
	in.out, in.log = out, log
	usage := strings.TrimSpace(fmt.Sprintf("fullcrawler %s [flags] %s", name, s.args))
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(out, "%s\n\n\t%s\n\n", usage, s.summary)
		fs.SetOutput(out)
		fs.PrintDefaults()
		return 0
	}
	if err == nil && s.args == "" && len(in.args) > 0 {
		err = fmt.Errorf("%s takes no arguments: %q (-out DIR names the directory of the crawl)", name, in.args[0])
	}
	if err != nil {
		Exit(log, err)
		return 2
	}
	in.dir = *dir
	results := &checkedWriter{w: out}
	in.out = results
	err = cmp.Or(s.inDirectory(ctx, name, in), results.err)
	status := Exit(log, err)
	if errors.Is(err, errUsage) {
		fmt.Fprintf(log, "usage: %s (-h explains the flags)\n", usage)
		return 2
	}
	return status
}

// A checkedWriter keeps the first error, for those who print line by line.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.err = cmp.Or(c.err, err)
	return n, err
}

func (s subcommand) parse(fs *flag.FlagSet, args []string) (in call, err error) {
	if !s.program {
		in.args, err = parseArgs(fs, args)
		return in, err
	}
	if err := fs.Parse(args); err != nil {
		return in, flagError(fs, err)
	}
	in.args = fs.Args()
	return in, nil
}

// inDirectory runs a subcommand in the directory of the crawl. One that only reads the archive also works
// during a crawl, and without permission to write.
func (s subcommand) inDirectory(ctx context.Context, name string, in call) error {
	if s.beside {
		return s.run(ctx, in)
	}
	d, err := existingDirectory(in.dir, name)
	if err != nil {
		return err
	}
	return errors.Join(s.run(ctx, in), d.Close())
}

// withPages opens the pages of a crawl for use.
func withPages(dir string, use func(p *stage.Pages, c stage.Clock) error) error {
	if _, err := os.Stat(filepath.Join(dir, stage.PagesDir)); err != nil {
		return fmt.Errorf("open the pages: %w", err)
	}
	p, c, err := openPages(Config{Out: dir})
	if err != nil {
		return err
	}
	return errors.Join(use(p, c), p.Close())
}

// errNoArchive is returned for a crawl without an archive.
var errNoArchive = errors.New("no archive here")

// withArchive opens the archive in a directory for reading, also while a crawl writes it.
func withArchive(dir string, use func(a *archive.Archive) error) error {
	return openArchive(dir, archive.Options{ReadOnly: true}, use)
}

// openArchive opens the archive in a directory, if there is one, for use.
func openArchive(dir string, o archive.Options, use func(a *archive.Archive) error) error {
	found := 0
	for _, pattern := range []string{"*.warc*", "index*"} { // an index shows which files are lost
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		found += len(files)
	}
	if found == 0 {
		return fmt.Errorf("%s: %w%s", dir, errNoArchive, otherCrawl(dir))
	}
	a, err := archive.Open(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(use(a), a.Close())
}

func explain(_ context.Context, in call) error {
	if len(in.args) == 0 {
		return errUsage
	}
	for _, arg := range in.args {
		url, err := urlfilter.Seed(arg)
		if err != nil {
			return err
		}
		var facts []Fact
		err = withPages(in.dir, func(p *stage.Pages, c stage.Clock) error {
			url = eitherScheme(p, arg, url)
			facts = aboutPage(in.dir, p, c, url)
			return nil
		})
		if err != nil {
			facts = []Fact{{"page", url}, {"known", err.Error()}}
		}
		err = withArchive(in.dir, func(a *archive.Archive) error {
			facts = append(facts, aboutVersions(a, url)...)
			return nil
		})
		if err != nil && !errors.Is(err, errNoArchive) {
			facts = append(facts, Fact{"versions", err.Error()})
		}
		for _, f := range facts {
			fmt.Fprintf(in.out, "%-14s %s\n", f.Name, printable(f.Text))
		}
	}
	return nil
}

// printable returns a text that may be the words of a server without what would control a terminal.
func printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// A Fact is one known fact about a page, a host or a limit.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// eitherScheme returns the known one of the two URLs that a name without a scheme may mean.
func eitherScheme(p *stage.Pages, typed, url string) string {
	if strings.Contains(typed, "://") {
		return url
	}
	other := strings.Replace(url, "https:", "http:", 1)
	if other == url {
		other = strings.Replace(url, "http:", "https:", 1)
	}
	if _, err := p.Find(url); err != nil {
		if _, err := p.Find(other); err == nil {
			return other
		}
	}
	return url
}

// aboutPage returns what is stored about a page of the crawl in a directory. Its times are real.
func aboutPage(dir string, p *stage.Pages, c stage.Clock, url string) []Fact {
	facts := []Fact{{"page", url}}
	known, err := p.Find(url)
	switch {
	case errors.Is(err, satstore.ErrUnknown) && !errors.Is(err, satstore.ErrCorrupt):
		return append(facts, Fact{"known", "no: neither a seed nor the target of a followed link"})
	case err != nil:
		return append(facts, Fact{"known", err.Error()})
	}
	s := known.State
	facts = append(facts, Fact{"depth", fmt.Sprint(known.Item.Depth, " links from a seed")})
	if last := s.History.Last(); !last.IsZero() {
		visits, changes := s.History.Visits()
		facts = append(facts, Fact{"last visit", moment(c.Real(last))},
			Fact{"visits", fmt.Sprintf("%d after the first, of which %d found a change", visits, changes)})
	}
	if s.Failures > 0 {
		facts = append(facts, Fact{"failures", fmt.Sprint(s.Failures, " in a row")})
		if last, err := lastLine(dir, url); err != nil {
			facts = append(facts, Fact{"latest", err.Error()})
		} else if last.URL != "" {
			facts = append(facts, Fact{"latest", fmt.Sprintf("%s  %s: %s", moment(last.Time), last.Says, last.Why)})
		}
	}
	due := "now"
	if at := time.Unix(s.Due, 0); at.After(c.Now()) {
		due = moment(c.Real(at))
	}
	if s.Interval > 0 {
		due += ", at an interval of " + spell(stage.Seconds(s.Interval))
		if c.Pace != 1 {
			due += fmt.Sprintf(" on a clock that is %g times as fast", c.Pace)
		}
	}
	return append(facts, Fact{"due", due})
}

// aboutVersions returns what the archive has of a page.
func aboutVersions(a *archive.Archive, url string) (facts []Fact) {
	versions, err := a.Versions(url)
	if err != nil {
		return []Fact{{"versions", err.Error()}}
	}
	const most = 20
	facts = append(facts, Fact{"versions", fmt.Sprint(len(versions))})
	for _, v := range versions[max(0, len(versions)-most):] {
		facts = append(facts, Fact{"", fmt.Sprintf("%s  %d  %s  %s:%d",
			moment(v.Time), v.Status, v.Kind, v.Location.File, v.Location.Offset)})
	}
	return facts
}

func moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
