// Command certify has webtest judge crawlers, and prints a table of them.
//
//	go run ./certify
//	go run ./certify -only wget,colly
//
// Each crawler gets a delay of a second and the best settings that its documentation offers for a
// polite crawl of many hosts; the table is followed by the commands. Those that are not installed are
// left out: wget, wget2 and scrapy come with Debian, katana with go install, colly and fetchbot are
// libraries whose programs are in this directory. Most reach the web through its proxy. fullcrawler
// connects by itself, since a delay for each address needs addresses; that takes the right to use
// port 80.
package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest/certificate"
	"github.com/spinneret-go/spinneret/internal/bench/programs"
)

//go:embed spider.py
var spider []byte

// delay is what the crawlers are told and judged by.
const delay = time.Second

func main() {
	only := flag.String("only", "", "`crawlers` to judge, separated by commas: the first words of their names; empty means all")
	limit := flag.Duration("limit", 4*time.Minute, "time limit for a crawler; what it did until then is judged")
	library := flag.String("library", "", "crawl with a `library`; for internal use")
	flag.Parse()
	var err error
	if *library != "" {
		err = crawlWith(*library, flag.Arg(0), strings.Split(flag.Arg(1), ","))
	} else {
		err = run(*only, *limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "certify:", err)
		os.Exit(1)
	}
}

// A crawler is a row of the table.
type crawler struct {
	name    string
	version []string // the command that prints it, or the module's name
	flags   []string // of webtest
	command []string
}

// crawlers returns the rows. dir has our programs.
func crawlers(dir string) []crawler {
	self, _ := os.Executable()
	lib := func(name, module string) crawler {
		return crawler{name, []string{module}, nil, []string{self, "-library", name, "{seed}", "{hosts-list}"}}
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	return []crawler{
		{"wget", []string{"wget", "--version"}, nil,
			[]string{"wget", "-q", "-r", "-l", "inf", "-H", "--wait=1", "-P", path("out"), "{seed}"}},
		{"wget2", []string{"wget2", "--version"}, nil,
			[]string{"wget2", "-q", "-r", "-l", "0", "-H", "--wait=1", "--max-threads=1", "-P", path("out"), "{seed}"}},
		{"scrapy", []string{"scrapy", "version"}, nil,
			[]string{"scrapy", "runspider", path("spider.py"), "-a", "seed={seed}", "-L", "ERROR", "-s", "ROBOTSTXT_OBEY=True",
				"-s", "DOWNLOAD_DELAY=1", "-s", "RANDOMIZE_DOWNLOAD_DELAY=False", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=1"}},
		{"katana", []string{"katana", "-version"}, nil,
			[]string{"katana", "-silent", "-u", "{seed}", "-d", "20", "-fs", "dn", "-ns", "-rl", "1", "-c", "1", "-kf", "robotstxt"}},
		lib("fetchbot", "github.com/PuerkitoBio/fetchbot"),
		lib("colly, no limits", "github.com/gocolly/colly/v2"),
		lib("colly, one rule", "github.com/gocolly/colly/v2"),
		lib("colly, rule per host", "github.com/gocolly/colly/v2"),
		{"fullcrawler", nil, []string{"-port", "80"},
			[]string{path("fullcrawler"), "-hosts", "{hosts}", "-out", path("out"), "-delay", delay.String(), "-scope", "any",
				"-host-pages", "0", "-depth", "-1", "-archive", "none", "-sitemaps=false", "-wait", "1m", "{seed}"}},
	}
}

func run(only string, limit time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "certify")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = errors.Join(programs.Build(dir), os.WriteFile(filepath.Join(dir, "spider.py"), spider, 0o644))
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	var commands bytes.Buffer
	for _, c := range crawlers(dir) {
		if only != "" && !slices.ContainsFunc(strings.Split(only, ","), func(word string) bool {
			return strings.HasPrefix(c.name, word)
		}) {
			continue
		}
		if _, err := exec.LookPath(c.command[0]); err != nil {
			fmt.Fprintln(os.Stderr, "certify:", err)
			continue
		}
		verdicts, requests, err := judge(dir, limit, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if commands.Len() == 0 {
			fmt.Fprint(table, "crawler\trequests\t")
			for _, v := range verdicts {
				fmt.Fprint(table, v.Check, "\t")
			}
			fmt.Fprintln(table)
		}
		fmt.Fprintf(table, "%s\t%d\t", c.name, requests)
		for _, v := range verdicts {
			fmt.Fprint(table, short(v), "\t")
		}
		fmt.Fprintln(table)
		shown := strings.ReplaceAll(strings.Join(c.command, " "), dir+string(filepath.Separator), "")
		self, _ := os.Executable()
		fmt.Fprintf(&commands, "%s %s: %s\n", c.name, version(c), strings.ReplaceAll(shown, self, "certify"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Print("\nx/y: x breaches in y situations; -: never in such a situation\n\n", commands.String())
	return nil
}

// short is the count of a verdict, and of how many.
func short(v certificate.Verdict) string {
	var found, occasions int
	if _, err := fmt.Sscanf(v.Text, "%d of %d", &found, &occasions); err != nil || v.Result == certificate.Untested {
		return "-"
	}
	return fmt.Sprintf("%d/%d", found, occasions)
}

// judge runs a crawler.
func judge(dir string, limit time.Duration, c crawler) (verdicts []certificate.Verdict, requests int, err error) {
	if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
		return nil, 0, err
	}
	log := filepath.Join(dir, "log")
	args := append([]string{"-check", delay.String(), "-format", "json", "-limit", limit.String(), "-log", log}, c.flags...)
	args = append(append(args, "--"), c.command...)
	for i, word := range args {
		args[i] = strings.ReplaceAll(word, "{hosts-list}", strings.Join(hostNames(), ","))
	}
	var out, text bytes.Buffer
	cmd := exec.Command(filepath.Join(dir, "webtest"), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &text
	failed := cmd.Run()
	if err := json.Unmarshal(out.Bytes(), &verdicts); err != nil {
		return nil, 0, fmt.Errorf("%w: %w: %s", failed, err, text.Bytes())
	}
	lines, err := os.ReadFile(log)
	fmt.Fprintln(os.Stderr, c.name, verdicts[0], strings.TrimSpace(text.String()))
	return verdicts, bytes.Count(lines, []byte("\n")), err
}

// hostNames are the hosts of the web, for a rule each.
func hostNames() (names []string) {
	for i := range certificate.DefaultHosts {
		name := fmt.Sprintf("h%05d.vweb.test", i)
		if i%8 == 7 {
			name = fmt.Sprintf("www.site%d.example", i)
		}
		names = append(names, name)
	}
	return names
}

// version returns what a crawler says about itself, or the version of its module.
func version(c crawler) string {
	if len(c.version) > 1 {
		out, _ := exec.Command(c.version[0], c.version[1:]...).CombinedOutput()
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return line
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(c.version) == 0 {
		return "of this tree"
	}
	for _, m := range info.Deps {
		if m.Path == c.version[0] {
			return cmp.Or(m.Version, "?")
		}
	}
	return "?"
}
