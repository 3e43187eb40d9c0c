package cockpit

import (
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
	name   string
	check  func(ctx context.Context, dir string, out io.Writer) (result string, err error)
	repair func(p part, dir string, say sayer) error
	loss   string // what it costs to start the part over
}

// A sayer prints a line about a part.
type sayer func(name, format string, args ...any)

func sayTo(w io.Writer) sayer {
	return func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-16s %s\n", name, fmt.Sprintf(format, args...))
	}
}

// parts are all parts. Those that a crawl can rebuild come last.
var parts = []part{
	{"pages", checkPages, repairPages, ""},
	{"archive", checkArchive, repairArchive, ""},
	{LedgerName, checkLedger, repairLedger, ""},
	state(BeganName, startOver, "the pages' clock starts over", func(file string) error {
		_, err := stage.ReadClock(file)
		return err
	}),
	state(FiltersName, startOver, "the links of all pages are checked again", func(file string) error {
		_, _, err := ReadFilters(file)
		return err
	}),
	state(StateName, repairEntries, "all hosts get the usual delay", restored(func(saved []byte) error {
		return stage.NewPoliteness(stage.PolitenessOptions{}, scheduler.New[stage.Item](scheduler.Options{})).Restore(saved)
	})),
	state(PausedName, repairEntries, "pause hosts again", restored(func(saved []byte) error {
		for _, err := range stage.Entries[string](saved) {
			if err != nil {
				return err
			}
		}
		return nil
	})),
	state(HostsName, startOver, "all hosts are looked up again", func(file string) error {
		_, err := resolve.Open(file, resolve.Options{})
		return err
	}),
	state(RulesName, repairEntries, "each robots.txt is fetched again", restored(func(saved []byte) error {
		return stage.NewRobots("", robots.NewCache(robots.Options{})).Restore(saved, time.Now(), nil)
	})),
	state(RhythmName, startOver, "the rhythms of hosts are learned again", func(file string) error {
		_, err := hostcache.Open[stage.Rhythm](file, hostcache.Options{})
		return err
	}),
	state(OrderName, startOver, "ranks start again", func(file string) error {
		_, err := stage.OpenOrder(file)
		return err
	}),
}

// state returns a part that is a file, which is sound if it can be read.
func state(name string, repair func(part, string, sayer) error, loss string, read func(file string) error) part {
	return part{name, func(_ context.Context, dir string, _ io.Writer) (string, error) {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err != nil { // some readers treat a missing file as an empty one
			return "", missing(err)
		}
		return "sound", read(file)
	}, repair, loss}
}

// restored reads a file that is restored as a whole.
func restored(restore func(saved []byte) error) func(file string) error {
	return func(file string) error {
		saved, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return restore(saved)
	}
}

// examine reads a part and says what it found. If it could not, because of this machine or of another version of
// the program, unread says what to do.
func (p part) examine(ctx context.Context, dir string, out io.Writer) (result string, damaged bool, unread error) {
	result, err := p.check(ctx, dir, out)
	switch {
	case err == nil:
		return result, false, nil
	case isAny(err, errNone, errNoArchive):
		return "none", false, nil
	case errors.Is(err, durable.ErrVersion):
		return fmt.Sprintf("NOT READ: %v", err), false, errOther
	case notDamage(err):
		return fmt.Sprintf("NOT CHECKED: %v", err), false, errUnread
	}
	return fmt.Sprintf("DAMAGED: %v", err), true, nil
}

// check reads every file of a crawl. Without its exclusive use it reads those of the archive, and fails.
func check(ctx context.Context, in call) error {
	d, unread := existingDirectory(in.dir, "check")
	here := parts
	switch {
	case unread == nil:
		defer d.Close()
	case errors.Is(unread, ErrHeld), errors.Is(unread, fs.ErrPermission):
		here = slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.name != "archive" })
	default:
		return unread
	}
	faults := 0
	for _, p := range here {
		done := showWork(in.log, func() string { return "reading " + p.name })
		result, damaged, err := p.examine(ctx, in.dir, in.out)
		done()
		if unread = cmp.Or(err, unread); damaged {
			faults++
		}
		fmt.Fprintf(in.out, "%-16s %s\n", p.name, result)
	}
	fmt.Fprintf(in.out, "%-16s %d of %d parts\n", "faults in", faults, len(here))
	if faults > 0 {
		return fmt.Errorf("%w in %d parts: fullcrawler repair -out %s repairs what can be repaired",
			errFaults, faults, in.dir)
	}
	return unread
}

// notDamage says whether an error is of this machine or of the caller: repair could only destroy
// what is sound.
func notDamage(err error) bool {
	return neterr.Exhausted(err) || isAny(err,
		context.Canceled, errNoPace, archive.ErrLocked, satstore.ErrLocked, fs.ErrPermission,
		syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS,
		syscall.Errno(112), // a full disk on Windows
	)
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

func checkArchive(ctx context.Context, dir string, out io.Writer) (result string, err error) {
	err = withArchive(dir, func(a *archive.Archive) error {
		for _, d := range a.Recovered().Damage { // found, and perhaps repaired, when it was opened
			fmt.Fprintf(out, "%s:%d: %d bytes: %v\n", d.File, d.Offset, d.Length, d.Err)
		}
		checked, err := a.Verify(ctx, func(f archive.Fault) {
			fmt.Fprintf(out, "%s:%d: %s: %v\n", f.File, f.Offset, f.URL, f.Err)
		})
		result = fmt.Sprintf("%s, %s, %s, %s", counted(checked.Files, "file"), counted(checked.Records, "record"),
			counted(checked.Versions, "version"), counted(checked.Faults, "fault"))
		if err == nil && checked.Faults > 0 {
			err = errors.New(result)
		}
		return cmp.Or(err, a.Stats().IndexDamage)
	})
	return result, err
}

func checkLedger(_ context.Context, dir string, _ io.Writer) (result string, err error) {
	files, err := ledgers(dir)
	if err == nil && len(files) == 0 {
		err = errNone
	}
	bad, n := 0, 0
	for _, file := range files {
		invalid, lines, e := checkLines(file)
		bad, n, err = bad+invalid, n+lines, errors.Join(err, e)
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d lines are not JSON", bad, n)
	}
	return fmt.Sprintf("%d lines", n), err
}

// checkLines counts the lines of a file of the ledger, and those that are invalid.
func checkLines(file string) (bad, n int, err error) {
	err = eachText(file, func(text []byte) error {
		if n++; !json.Valid(text) {
			bad++
		}
		return nil
	})
	return bad, n, err
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
	say := sayTo(in.out)
	for _, p := range parts {
		result, damaged, unread := p.examine(ctx, in.dir, io.Discard)
		say(p.name, "%s", result)
		if failed = errors.Join(failed, unread); damaged {
			failed = errors.Join(failed, p.repair(p, in.dir, say))
		}
	}
	return failed
}

// startOver sets a file aside.
func startOver(p part, dir string, say sayer) error {
	return setAside(filepath.Join(dir, p.name), p.name, p.loss, say)
}

// setAside renames a file, so that nothing of it is lost, and says what that costs.
func setAside(file, name, loss string, say sayer) error {
	aside, err := stage.SetAside(file)
	if err == nil {
		say(name, "set aside as %s: %s", filepath.Base(aside), loss)
	}
	return err
}

// repairEntries keeps the entries before the damage, as a crawl would. A kill or a full disk at any moment leaves
// them: without the file, hosts that the operator has paused would be visited.
func repairEntries(p part, dir string, say sayer) error {
	path := filepath.Join(dir, p.name)
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
	aside, err := stage.SetCopyAside(path, data)
	if err == nil {
		err = writeEntries(path, slices.Values(kept))
	}
	if err == nil {
		say(p.name, "set aside as %s: what precedes the damage is kept (%d); for others, %s", filepath.Base(aside), len(kept), p.loss)
	}
	return err
}

// repairPages keeps the pages that can be read, and rebuilds the set of URLs from them. The next
// crawl rereads the links of these pages, and so finds lost pages again.
func repairPages(_ part, dir string, say sayer) error {
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

func repairArchive(_ part, dir string, say sayer) error {
	a, err := archive.Open(dir, archive.Options{Reindex: true})
	if err != nil {
		return err
	}
	done := a.Recovered()
	say("archive", "a new index of %d files with %d versions; %d bytes cannot be read",
		done.Files, done.Versions, done.Damaged)
	for _, d := range done.Damage {
		say("archive", "%s:%d: %d bytes: %v", d.File, d.Offset, d.Length, d.Err)
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

// repairLedger removes half a line at the end, as the next crawl would, and sets the files aside that have
// invalid lines besides.
func repairLedger(_ part, dir string, say sayer) error {
	l, err := OpenLedger(dir, 0) // which removes it
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	files, err := ledgers(dir)
	for _, file := range files {
		if bad, _, e := checkLines(file); e != nil {
			err = errors.Join(err, e)
		} else if bad > 0 {
			err = errors.Join(err, setAside(file, LedgerName, "it keeps its fates, and explain no longer knows them", say))
		}
	}
	return err
}
