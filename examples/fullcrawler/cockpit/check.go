package cockpit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/neterr"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/satstore"
	"github.com/spinneret-go/spinneret/scheduler"
)

// errFaults is returned by check if it found faults.
var errFaults = errors.New("the check found faults")

// errUnread is returned by check if it could not read all parts, but found no fault.
var errUnread = errors.New("not everything was checked: remove the cause, and check again")

// errOther is returned if a part was written by another version of this program.
var errOther = errors.New("not everything was read: use the version of this program that wrote it")

// errLost is returned by repair if it could not keep everything.
var errLost = errors.New("something is lost: what could not be read was set aside, as the lines above say")

// errNone is returned by checks of optional parts that are missing.
var errNone = errors.New("none")

// A part is one of the parts of a crawl's directory.
type part struct {
	name  string
	check func(ctx context.Context, dir string, out io.Writer) (result string, err error)
	loss  string // the cost of starting the part over; "" if repair handles it differently
}

// parts are all parts. Those that a crawl can rebuild come last.
var parts = []part{
	{"pages", checkPages, ""},
	{"archive", checkArchive, ""},
	{LedgerName, checkLedger, ""},
	{BeganName, checkClock, "the pages' clock starts over"},
	{FiltersName, checkFilters, "the links of all pages are checked again"},
	{StateName, checkPoliteness, "all hosts get the usual delay"},
	{PausedName, checkPaused, "pause hosts again"},
	{HostsName, checkHosts, "all hosts are looked up again"},
	{RulesName, checkRules, "each robots.txt is fetched again"},
	{RhythmName, checkRhythms, "the rhythms of hosts are learned again"},
	{OrderName, checkOrder, "ranks start again"},
}

// check reads every file of a crawl.
func check(ctx context.Context, in call) error {
	faults := 0
	var unread error
	for _, p := range parts {
		done := showWork(in.log, func() string { return "reading " + p.name + sizeOf(in.dir, p) })
		result, err := p.check(ctx, in.dir, in.out)
		done()
		switch {
		case errors.Is(err, errNone):
			result = "none"
		case errors.Is(err, durable.ErrVersion):
			unread = errOther
			result = fmt.Sprintf("NOT READ: %v", err)
		case notDamage(err):
			unread = errUnread
			result = fmt.Sprintf("NOT CHECKED: %v", err)
		case err != nil:
			faults++
			result = fmt.Sprintf("DAMAGED: %v", err)
		}
		fmt.Fprintf(in.out, "%-16s %s\n", p.name, result)
	}
	fmt.Fprintf(in.out, "%-16s %d of %d parts\n", "faults in", faults, len(parts))
	if faults > 0 {
		return fmt.Errorf("%w in %d parts: fullcrawler repair -out %s repairs what can be repaired",
			errFaults, faults, in.dir)
	}
	return unread
}

// sizeOf says how much there is to read of a large part.
func sizeOf(dir string, p part) string {
	pattern := map[string]string{"pages": filepath.Join(stage.PagesDir, "*"), "archive": "*.warc*"}[p.name]
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if pattern == "" || err != nil {
		return ""
	}
	size := int64(0)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			size += info.Size()
		}
	}
	return fmt.Sprintf(": %s in %s", Size(size), counted(len(files), "file"))
}

// notDamage says whether an error is of this machine or of the caller: repair could only destroy
// what is sound.
func notDamage(err error) bool {
	for _, cause := range []error{
		context.Canceled, errNoPace, archive.ErrLocked, satstore.ErrLocked, fs.ErrPermission,
		syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS,
		syscall.Errno(112), // a full disk on Windows
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return neterr.Exhausted(err)
}

func checkPages(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	if _, err := os.Stat(filepath.Join(dir, stage.PagesDir)); err != nil {
		return "", missing(err)
	}
	err = withPages(dir, func(p *stage.Pages, _ stage.Clock) error {
		if err := p.Check(); err != nil {
			return err
		}
		result = fmt.Sprintf("%d, all sound", p.Stats().Records)
		return nil
	})
	return result, err
}

// verified summarizes what Verify found.
func verified(r archive.Report) string {
	return fmt.Sprintf("%s, %s, %s, %s", counted(r.Files, "file"), counted(r.Records, "record"),
		counted(r.Versions, "version"), counted(r.Faults, "fault"))
}

func checkArchive(ctx context.Context, dir string, out io.Writer) (result string, err error) {
	err = withArchive(dir, func(a *archive.Archive) error {
		for _, d := range a.Recovered().Damage { // found, and perhaps repaired, when it was opened
			fmt.Fprintf(out, "%s:%d: %d bytes, %d versions: %v\n",
				d.File, d.Offset, d.Length, d.Versions, d.Err)
		}
		checked, err := a.Verify(ctx, func(f archive.Fault) {
			fmt.Fprintf(out, "%s:%d: %s: %v\n", f.File, f.Offset, f.URL, f.Err)
		})
		result = verified(checked)
		if err == nil && checked.Faults > 0 {
			err = errors.New(result)
		}
		return cmp.Or(err, a.Stats().IndexDamage)
	})
	if errors.Is(err, errNoArchive) {
		err = errNone
	}
	return result, err
}

func checkLedger(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	files, err := ledgers(dir)
	if err == nil && len(files) == 0 {
		err = errNone
	}
	bad, n := 0, 0
	for _, file := range files {
		err = errors.Join(err, eachText(file, func(text []byte) error {
			if n++; !json.Valid(text) {
				bad++
			}
			return nil
		}))
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d lines are not JSON", bad, n)
	}
	return fmt.Sprintf("%d lines", n), err
}

func checkClock(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	clock, err := stage.ReadClock(filepath.Join(dir, BeganName))
	return moment(clock.Began), missing(err)
}

func checkFilters(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	_, known, err := ReadFilters(filepath.Join(dir, FiltersName))
	if err == nil && !known {
		err = errNone
	}
	return "sound", err
}

func checkPoliteness(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	state, err := os.ReadFile(filepath.Join(dir, StateName))
	if err == nil {
		err = stage.NewPoliteness(stage.PolitenessOptions{}, scheduler.New[stage.Item](scheduler.Options{})).Restore(state)
	}
	return "sound", missing(err)
}

func checkPaused(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	saved, err := os.ReadFile(filepath.Join(dir, PausedName))
	if err != nil {
		return "", missing(err)
	}
	for _, err := range stage.Entries[string](saved) {
		if err != nil {
			return "", err
		}
	}
	return "sound", nil
}

func checkHosts(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	return checkCache(filepath.Join(dir, HostsName), func(file string) error {
		_, err := resolve.Open(file, resolve.Options{})
		return err
	})
}

func checkRules(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	saved, err := os.ReadFile(filepath.Join(dir, RulesName))
	if err == nil {
		err = stage.NewRobots("", robots.NewCache(robots.Options{})).Restore(saved, time.Now(), nil)
	}
	return "sound", missing(err)
}

func checkRhythms(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	return checkCache(filepath.Join(dir, RhythmName), func(file string) error {
		_, err := hostcache.Open[stage.Rhythm](file, hostcache.Options{})
		return err
	})
}

func checkOrder(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	return checkCache(filepath.Join(dir, OrderName), func(file string) error {
		_, err := stage.OpenOrder(file)
		return err
	})
}

// checkCache checks a file whose reader treats a missing file as an empty one.
func checkCache(file string, read func(string) error) (result string, err error) {
	if _, err := os.Stat(file); err != nil {
		return "", missing(err)
	}
	return "sound", read(file)
}

// missing turns the error for a missing file into errNone.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNone
	}
	return err
}

// repair repairs the damaged parts one by one, and reports what that costs.
func repair(ctx context.Context, in call) error {
	var failed error
	say := func(name, format string, args ...any) {
		fmt.Fprintf(in.out, "%-16s %s\n", name, fmt.Sprintf(format, args...))
	}
	for _, p := range parts {
		result, err := p.check(ctx, in.dir, io.Discard)
		switch {
		case errors.Is(err, errNone):
			continue
		case err == nil:
			if result != "sound" {
				result = "sound: " + result
			}
			say(p.name, "%s", result)
			continue
		case errors.Is(err, durable.ErrVersion):
			say(p.name, "left as it is: %v", err)
			failed = errors.Join(failed, errOther)
			continue
		case notDamage(err):
			say(p.name, "not checked: %v", err)
			failed = errUnread
			continue
		}
		say(p.name, "damaged: %v", err)
		switch p.name {
		case "pages":
			err = repairPages(in.dir, say)
		case "archive":
			err = repairArchive(in.dir, say)
		case LedgerName:
			err = repairLedger(in.dir, say)
		case StateName, RulesName:
			err = repairEntries(in.dir, p.name, say)
		default:
			var aside string
			if aside, err = stage.SetAside(filepath.Join(in.dir, p.name)); err == nil {
				say(p.name, "set aside as %s: %s", filepath.Base(aside), p.loss)
			}
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// repairEntries keeps the entries before the damage, as a crawl would.
func repairEntries(dir, name string, say func(name, format string, args ...any)) error {
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var kept []json.RawMessage
	for entry, err := range stage.Entries[json.RawMessage](data) {
		if err == nil {
			kept = append(kept, entry)
		}
	}
	aside, err := stage.SetAside(path)
	if err != nil {
		return err
	}
	say(name, "set aside as %s; what precedes the damage is kept (%d)", filepath.Base(aside), len(kept))
	if data, err = stage.AppendEntries(nil, slices.Values(kept)); err != nil {
		return err
	}
	return stage.ReplaceFile(path, data)
}

// repairPages keeps the pages that can be read, and rebuilds the set of URLs from them. The next
// crawl rereads the links of these pages, and so finds lost pages again.
func repairPages(dir string, say func(name, format string, args ...any)) error {
	clock, err := stage.PeekClock(filepath.Join(dir, BeganName), 0)
	if err != nil {
		clock.Pace = 1 // the clock itself is repaired later
	}
	// First, since a repair that is killed after it has replaced the store is not repeated.
	err = os.Remove(filepath.Join(dir, FiltersName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	done, err := stage.RepairPages(dir, PagesOptions(Config{}, clock))
	if err != nil {
		return err
	}
	for _, finding := range done.Findings {
		say("pages", "%v", finding)
	}
	say("pages", "%d pages kept, at least %d lost", done.Records, done.Lost)
	if done.Aside != "" {
		say("pages", "the damaged pages are set aside as %s", filepath.Base(done.Aside))
	}
	say("pages", "the next crawl checks the links of all pages again, and so finds lost pages")
	if done.Lost > 0 || done.Records == 0 {
		return errLost
	}
	return nil
}

func repairArchive(dir string, say func(name, format string, args ...any)) error {
	a, err := archive.Open(dir, archive.Options{Reindex: true})
	if err != nil {
		return err
	}
	done := a.Recovered()
	say("archive", "a new index of %d files with %d versions; %d bytes cannot be read",
		done.Files, done.Versions, done.Damaged)
	for _, d := range done.Damage {
		say("archive", "%s:%d: %d bytes, %d versions: %v", d.File, d.Offset, d.Length, d.Versions, d.Err)
	}
	for _, name := range done.Missing {
		say("archive", "missing: %s", name)
	}
	if err := a.Close(); err != nil {
		return err
	}
	switch {
	case len(done.Damage) > 0:
		return errLost
	case len(done.Missing) > 0:
		return errMissing
	}
	return nil
}

// forgetting is how to make the archive forget an imported file.
const forgetting = "delete its line from imports.txt and run fullcrawler repair"

// errMissing is returned by repair if nothing is lost but files that it cannot bring back.
var errMissing = errors.New("something is lost: files of the archive are missing: bring them back, or if a file was imported, " + forgetting)

// repairLedger sets invalid lines aside.
func repairLedger(dir string, say func(name, format string, args ...any)) error {
	files, err := ledgers(dir)
	for _, file := range files {
		err = errors.Join(err, setLinesAside(file, say))
	}
	return err
}

func setLinesAside(name string, say func(name, format string, args ...any)) error {
	var dropped []byte
	rewrite := func(w io.Writer) error {
		dropped = nil
		return eachText(name, func(text []byte) (err error) {
			if json.Valid(text) {
				_, err = w.Write(text)
			} else {
				dropped = append(append(dropped, bytes.TrimSuffix(text, []byte("\n"))...), '\n')
			}
			return err
		})
	}
	if err := rewrite(io.Discard); err != nil || dropped == nil {
		return err
	}
	err := stage.ReplaceWith(name, func(w io.Writer) error {
		return cmp.Or(rewrite(w), appendTo(name+damagedLines, dropped))
	})
	if err == nil {
		aside := filepath.Base(name) + damagedLines
		say(LedgerName, "%d lines were set aside in %s", bytes.Count(dropped, []byte("\n")), aside)
	}
	return err
}

// damagedLines is the ending of the file with the invalid lines of the ledger.
const damagedLines = ".damaged"

// appendTo appends to a file and syncs it.
func appendTo(name string, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
