package main

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

// A clock shows the time by which pages become due. It may go faster than the world's, so that a
// crawl of weeks can be watched in minutes; the pauses that servers are owed stay as they are. What
// servers say of times is taken as by this clock: only a web that goes by it is of use then.
type clock struct {
	began time.Time
	pace  float64
}

// at returns what the clock shows at a time of the world.
func (c clock) at(t time.Time) time.Time {
	if c.pace == 1 || t.IsZero() {
		return t
	}
	return c.began.Add(c.shown(t.Sub(c.began)))
}

// maxPace is the highest pace: a month goes by in less than three seconds.
const maxPace = 1e6

// maxShown is where a clock stands still, after a century and a half: it must not jump back.
const maxShown = 1 << 62

// shown returns how much time the clock shows while d goes by.
func (c clock) shown(d time.Duration) time.Duration {
	return time.Duration(min(float64(d)*c.pace, maxShown))
}

func (c clock) now() time.Time { return c.at(time.Now()) }

// until returns how long it takes until the clock shows t.
func (c clock) until(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(c.now())) / c.pace)
}

// openClock makes a clock that goes on from where it was, if the file tells of one. A pace of 0 is
// the one that it had. Another pace than it had is refused, since times are on record.
func openClock(file string, pace float64) (clock, error) {
	had, err := readClock(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c := clock{time.Now().Truncate(time.Second), cmp.Or(pace, 1)}
		return c, replaceFile(file, fmt.Appendf(nil, "%s %g\n", c.began.Format(time.RFC3339), c.pace))
	case err != nil:
		return clock{}, err
	case pace != 0 && pace != had.pace:
		return clock{}, fmt.Errorf("the crawl was begun with -pace %g; say so again, or -fresh, which "+
			"forgets its pages", had.pace)
	}
	return had, nil
}

func readClock(file string) (c clock, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return clock{}, err
	}
	began, rest, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	c.began, err = time.Parse(time.RFC3339, began)
	if err == nil {
		c.pace, err = strconv.ParseFloat(rest, 64)
	}
	if err == nil && !(c.pace > 0 && c.pace <= maxPace) {
		err = errors.New("no such pace")
	}
	if err != nil {
		return clock{}, fmt.Errorf("%s should hold a time and a pace: %w: fullcrawler repair", file, err)
	}
	return c, nil
}
