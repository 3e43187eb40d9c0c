package cockpit

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
)

// erasing are the flags of erase.
type erasing struct {
	reason string
	digest bool
	allow  bool
}

func (e *erasing) flags(fs *flag.FlagSet) {
	fs.StringVar(&e.reason, "reason", "on request", "`text` for the records of the archive; it should not name the page")
	fs.BoolVar(&e.digest, "digest", false, "also erase the same contents where they were found at other URLs")
	fs.BoolVar(&e.allow, "allow", false, "let crawls find and fetch it again")
}

// An erasure is one run of erase. It is not safe for concurrent use.
//
// First of all the targets are forbidden, so nothing of them comes back. Each of the other steps finds what
// is left, so the same command completes what a kill or a full disk interrupted. A step that fails leaves
// the others their work.
type erasure struct {
	erasing
	dir     string
	say     sayer
	targets []target
	list    urlfilter.List // which denies what is to be erased
	read    map[string]bool
}

// run erases what the arguments name from all files of a crawl, and reports what went and what stays.
func (e *erasing) run(ctx context.Context, in call) error {
	if len(in.args) == 0 {
		return errUsage
	}
	e.reason = strings.Join(strings.FieldsFunc(e.reason, endsWord), " ") // which is pasted from a mail
	job := &erasure{erasing: *e, dir: in.dir, say: sayTo(in.out), read: map[string]bool{}}
	var lines []string
	for _, arg := range in.args {
		t, err := parseTarget(arg)
		if err != nil {
			return err
		}
		job.targets = append(job.targets, t)
		lines = append(lines, t.lines()...)
	}
	if err := job.list.Reload(strings.NewReader(strings.Join(lines, "\n")), "erase"); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	job.say("erasing", "%s in %s, at %s: %s", strings.Join(in.args, ", "), in.dir, moment(time.Now()), e.reason)
	if e.allow {
		job.say("list", "not added: crawls may find it again (-allow)")
	} else {
		added, err := forbid(in.dir, lines, e.reason)
		if err != nil {
			return err
		}
		job.say("list", "%s added to %s, which every crawl here obeys", counted(added, "line"), filepath.Join(in.dir, ErasedName))
	}
	var failed error
	for _, step := range []func(context.Context) error{
		job.eraseArchive, job.erasePages, job.eraseOrder, job.eraseCaches, job.eraseLedgers, job.reportRest,
	} {
		if ctx.Err() == nil {
			failed = errors.Join(failed, step(ctx))
		}
	}
	if failed = errors.Join(failed, ctx.Err()); failed == nil {
		return nil
	}
	return fmt.Errorf("%w\nwhat the lines above name is erased: remove the cause, and run the same command again for the rest", failed)
}

// endsWord reports whether a rune may not be in one line of words.
func endsWord(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// gone reports whether a URL is to be erased.
func (e *erasure) gone(url string) bool { return !e.list.Match(url).Allowed }

// serves reports whether a host has something that is to be erased.
func (e *erasure) serves(host string) bool {
	return slices.ContainsFunc(e.targets, func(t target) bool { return t.serves(host) })
}

// file returns the path of a file that this command reads.
func (e *erasure) file(name string) (path string, exists bool) {
	e.read[name] = true
	path = filepath.Join(e.dir, name)
	_, err := os.Stat(path)
	return path, err == nil
}

func (e *erasure) eraseArchive(ctx context.Context) error {
	err := openArchive(e.dir, archive.Options{}, func(a *archive.Archive) error {
		same, err := e.sameContents(a)
		if err != nil {
			return err
		}
		var selected []archive.Selection
		for digest, urls := range same { // first: a second attempt finds only what is still there
			selected = append(selected, archive.Selection{Digest: digest})
			for _, url := range urls {
				e.say("archive", "the same contents, which a crawl may fetch again: %s", url)
			}
		}
		for _, t := range e.targets {
			s, err := e.selections(a, t)
			if err != nil {
				return err
			}
			selected = append(selected, s...)
		}
		erased, files := 0, 0
		for _, s := range selected {
			report, err := a.Erase(ctx, s, e.reason)
			if err != nil {
				return err
			}
			for _, d := range report.Damage {
				e.say("archive", "not read, as it is damaged: %s:%d: %v", d.File, d.Offset, d.Err)
			}
			erased, files = erased+report.Erased, files+report.Files
		}
		e.say("archive", "%s erased, %s rewritten", counted(erased, "version"), counted(files, "file"))
		return nil
	})
	if errors.Is(err, errNoArchive) {
		e.say("archive", "none")
		return nil
	}
	if _, none := os.Stat(filepath.Join(e.dir, "imports.txt")); err != nil && none == nil {
		err = fmt.Errorf("%w (if it is an imported file, move it into the directory of the crawl, or %s)", err, forgetting)
	}
	return err
}

// selections returns the selections of the archive that make up a target. Each costs a pass over all
// files, so those that the index does not know are left out.
func (e *erasure) selections(a *archive.Archive, t target) (s []archive.Selection, err error) {
	if t.prefix != "" {
		s = append(s, archive.Selection{Prefix: t.prefix})
	}
	if t.url != "" {
		for _, scheme := range []string{"http://", "https://"} {
			versions, err := a.Versions(scheme + t.name())
			if err != nil {
				return nil, err
			}
			if len(versions) > 0 {
				s = append(s, archive.Selection{URL: scheme + t.name()})
			}
		}
	}
	more := map[archive.Selection]bool{}
	err = eachVersion(a, archive.Query{Site: t.site(), Failed: true}, func(v *archive.Version) error {
		switch {
		case t.host != "":
			more[archive.Selection{Host: weburl.Host(v.URL)}] = true
		case e.gone(v.URL) && !t.spells(v.URL):
			more[archive.Selection{URL: v.URL}] = true
		}
		return nil
	})
	return slices.AppendSeq(s, maps.Keys(more)), err
}

// sameContents returns the URLs that have had the same contents as what is to be erased, by digest.
// Empty and failed responses do not count: they are everybody's.
func (e *erasure) sameContents(a *archive.Archive) (same map[string][]string, err error) {
	if !e.digest {
		return nil, nil
	}
	same = map[string][]string{}
	all := archive.Query{Failed: true, Relations: allen.Valid, Keep: func(v *archive.Version) bool {
		return v.ContentStatus == 200 && v.Digest() != ""
	}}
	err = eachVersion(a, all, func(v *archive.Version) error {
		if _, met := same[v.Digest()]; met || !e.gone(v.URL) {
			return nil
		}
		body, err := a.Body(*v)
		if err == nil && len(body) > 0 {
			same[v.Digest()] = nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return same, eachVersion(a, all, func(v *archive.Version) error {
		urls, met := same[v.Digest()]
		if met && !e.gone(v.URL) && !slices.Contains(urls, v.URL) {
			same[v.Digest()] = append(urls, v.URL)
		}
		return nil
	})
}

// eachVersion passes the versions of a query to use.
func eachVersion(a *archive.Archive, query archive.Query, use func(v *archive.Version) error) (err error) {
	snapshot, err := a.Snapshot(query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	for v, err := range snapshot.Versions() {
		if err == nil {
			err = use(&v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// erasePages rewrites the store if it knows a page that is to be erased.
func (e *erasure) erasePages(context.Context) error {
	if _, exists := e.file(stage.PagesDir); !exists {
		e.say("pages", "none")
		return nil
	}
	gone := func(it stage.Item) bool {
		return e.gone(it.URL) || it.Sitemap != nil && e.gone("http://"+it.Sitemap.Server+"/")
	}
	n, clock := 0, stage.Clock{}
	err := withPages(e.dir, func(p *stage.Pages, c stage.Clock) error {
		clock = c
		for page, err := range p.All() {
			if err != nil {
				return err
			}
			if gone(page.Item) {
				n++
			}
		}
		return nil
	})
	if err == nil && n > 0 {
		err = stage.RewritePages(e.dir, PagesOptions(Config{}, clock), func(it stage.Item, _ *stage.State) stage.Rewrite {
			if gone(it) {
				return stage.Remove
			}
			return stage.KeepDue
		})
	}
	if err == nil {
		e.say("pages", "%s erased", counted(n, "page"))
	}
	return err
}

// eraseOrder erases the names of pages. Their scores and links remain, as numbers.
func (e *erasure) eraseOrder(context.Context) error {
	name, exists := e.file(OrderName)
	if !exists {
		return nil
	}
	order, err := stage.OpenOrder(name)
	if err != nil {
		return err
	}
	n := order.Forget(e.gone)
	e.say(OrderName, "%s erased", counted(n, "name"))
	return order.Save(name)
}

// eraseCaches erases hosts from the files that save work when the crawl resumes. The rules of a host
// may name its pages, so they go with any of these.
func (e *erasure) eraseCaches(context.Context) error {
	rules, err := eraseEntries(e, RulesName, func(r robots.Entry) bool {
		return e.serves(weburl.Host(r.URL)) || e.serves(weburl.Host(r.Source))
	})
	if err != nil {
		return err
	}
	e.say(RulesName, "%s erased; fetched again for what remains of their hosts", counted(rules, "file"))
	if err := e.erasePoliteness(); err != nil {
		return err
	}
	name, exists := e.file(HostsName)
	if exists && slices.ContainsFunc(e.targets, func(t target) bool { return t.host != "" }) {
		if err := os.Remove(name); err != nil {
			return err
		}
		e.say(HostsName, "erased: all hosts are looked up again")
	}
	if name, exists = e.file(RhythmName); !exists {
		return nil
	}
	rhythms, err := hostcache.Open[stage.Rhythm](name, hostcache.Options{MaxBytes: -1})
	if err != nil {
		return err
	}
	n := 0
	for host := range maps.Collect(rhythms.Under("")) {
		if e.takesHost(host) {
			rhythms.Set(host, stage.Rhythm{}, 0)
			n++
		}
	}
	e.say(RhythmName, "%s erased", counted(n, "host"))
	return rhythms.Save()
}

// erasePoliteness erases what was asked for by hosts that are not visited any more. Of others every
// pause stays, also the operator's.
func (e *erasure) erasePoliteness() error {
	gone := func(host string) bool { return !e.allow && e.takesHost(host) }
	states, err := eraseEntries(e, StateName, func(s scheduler.Entry) bool { return gone(s.Host) })
	if err != nil {
		return err
	}
	e.say(StateName, "%s erased", counted(states, "host"))
	paused, err := eraseEntries(e, PausedName, gone)
	if err != nil {
		return err
	}
	if paused > 0 {
		e.say(PausedName, "%s erased", counted(paused, "host"))
	}
	return nil
}

// eraseEntries erases entries from a saved state.
func eraseEntries[E any](e *erasure, name string, gone func(E) bool) (erased int, err error) {
	path, exists := e.file(name)
	if !exists {
		return 0, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var kept []E
	for entry, err := range stage.Entries[E](data) {
		if err != nil {
			return 0, fmt.Errorf("%s: %w: fullcrawler repair -out %s", path, err, e.dir)
		}
		if gone(entry) {
			erased++
		} else {
			kept = append(kept, entry)
		}
	}
	if erased == 0 {
		return 0, nil
	}
	return erased, writeEntries(path, slices.Values(kept))
}

// eraseLedgers erases the lines of pages from the ledger and its earlier files. A line of another page
// that names their host loses its reason.
func (e *erasure) eraseLedgers(ctx context.Context) error {
	files, err := ledgers(e.dir)
	aside, globbing := filepath.Glob(filepath.Join(e.dir, "fates*.jsonl.damaged*")) // by repair
	if err := errors.Join(err, globbing); err != nil {
		return err
	}
	files = append(files, aside...)
	erased := 0
	for _, file := range files {
		e.read[filepath.Base(file)] = true
		n, err := e.eraseLedger(ctx, file)
		if err != nil {
			return err
		}
		erased += n
	}
	e.say(LedgerName, "%s erased, %s read", counted(erased, "line"), counted(len(files), "file"))
	return nil
}

func (e *erasure) eraseLedger(ctx context.Context, file string) (erased int, err error) {
	rewrite := func(w io.Writer) error {
		erased = 0
		return eachText(file, func(text []byte) error {
			var line Line
			if json.Unmarshal(text, &line) != nil { // it is damaged, and may still name something
				line = Line{Why: string(text)}
			}
			gone, named := e.gone(line.URL), e.named(line.Why)
			switch {
			case gone, named && line.URL == "":
				erased++
				return ctx.Err()
			case named:
				erased++
				line.Why = "erased"
				text = append(line.appendJSON(nil), '\n')
			}
			_, err := w.Write(text)
			return err
		})
	}
	if err := rewrite(io.Discard); err != nil || erased == 0 {
		return 0, err
	}
	err = stage.ReplaceWith(file, rewrite)
	return erased, err
}

// reportRest names what may still have something of the targets.
func (e *erasure) reportRest(context.Context) error {
	own := []string{lockName, holderName, archiveLock, BeganName, FiltersName, ErasedName, TokenName}
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if e.read[name] || slices.Contains(own, name) || archiveFiles.MatchString(name) {
			continue
		}
		e.say("kept", "%s: this command does not read it", filepath.Join(e.dir, name))
	}
	if !e.allow {
		e.say("kept", "the names themselves, in %s and its copy in %s", ErasedName, FiltersName)
	}
	e.say("kept", "pages of others that name it or link to it, and their robots.txt")
	e.say("kept", "what this command cannot know: exports, backups, the file of -log, the lists and seeds of the operator")
	return nil
}

// archiveFiles are the names of the archive's own files, in which nothing is left of what was erased.
var archiveFiles = regexp.MustCompile(`^(index-\d+|index\.(manifest|meta)|.*\.warc(\.gz|\.zst)?(\.open)?|imports\.txt)$`)
