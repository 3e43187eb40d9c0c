package stage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Clock shows the time by which pages are due. It may run faster than real time, so that a
// crawl of weeks can be watched in minutes; politeness delays stay the same. Times that servers
// send are taken as times of this clock, so only a web that runs by it is useful then.
type Clock struct {
	Began time.Time
	Pace  float64
}

// At returns what the clock shows at a real time.
func (c Clock) At(t time.Time) time.Time {
	if c.Pace == 1 || t.IsZero() {
		return t
	}
	return c.Began.Add(c.Shown(t.Sub(c.Began)))
}

// Real is the inverse of At.
func (c Clock) Real(t time.Time) time.Time {
	if c.Pace == 1 {
		return t
	}
	return c.Began.Add(time.Duration(float64(t.Sub(c.Began)) / c.Pace))
}

// MaxPace is the highest pace: a month passes in less than three seconds.
const MaxPace = 1e6

// maxShown is where a clock stops, after a century and a half: it must not jump back.
const maxShown = 1 << 62

// Shown returns how much time the clock shows while d passes.
func (c Clock) Shown(d time.Duration) time.Duration {
	return time.Duration(min(float64(d)*c.Pace, maxShown))
}

// Now returns what the clock shows.
func (c Clock) Now() time.Time { return c.At(time.Now()) }

// Until returns how long it takes until the clock shows t.
func (c Clock) Until(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(c.Now())) / c.Pace)
}

// earliest is before every crawl of this program. A clock that shows less is that of a machine that does
// not know the time yet. By such a clock, all visits would have been in the future.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// OpenClock returns a clock that continues from the state in the file, if there is one. A pace of 0
// means the pace in the file. A different pace is refused, since times have been recorded by the
// old one.
func OpenClock(file string, pace float64) (Clock, error) {
	c, err := PeekClock(file, pace)
	if errors.Is(err, fs.ErrNotExist) {
		err = ReplaceFile(file, fmt.Appendf(nil, "%s %g\n", c.Began.Format(time.RFC3339), c.Pace))
	}
	return c, err
}

// PeekClock is OpenClock for those who change nothing. Without a file it returns fs.ErrNotExist with the
// clock that OpenClock would begin.
func PeekClock(file string, pace float64) (Clock, error) {
	had, err := ReadClock(file)
	now := time.Now()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Clock{now.Truncate(time.Second), cmp.Or(pace, 1)}, err
	case err != nil:
		return Clock{}, err
	case now.Before(earliest) && !had.Began.Before(earliest):
		return Clock{}, fmt.Errorf("this machine's clock shows %s, but the crawl began in %d: set the clock",
			now.Format(time.DateOnly), had.Began.Year())
	case pace != 0 && pace != had.Pace:
		return Clock{}, fmt.Errorf("the crawl was started with -pace %g; use it again, or -fresh, which "+
			"forgets its pages", had.Pace)
	}
	return had, nil
}

// ReadClock reads a file that OpenClock made.
func ReadClock(file string) (c Clock, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Clock{}, err
	}
	began, rest, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	c.Began, err = time.Parse(time.RFC3339, began)
	if err == nil {
		c.Pace, err = strconv.ParseFloat(rest, 64)
	}
	if err == nil && !(c.Pace > 0 && c.Pace <= MaxPace) {
		err = errors.New("invalid pace")
	}
	if err != nil {
		return Clock{}, fmt.Errorf("%s must contain a time and a pace: %w: fullcrawler repair", file, err)
	}
	return c, nil
}
