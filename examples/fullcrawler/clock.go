package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// A clock shows the time by which pages become due. It may go faster than the world's, so that a
// crawl of weeks can be watched in minutes; the pauses that servers are owed stay as they are.
type clock struct {
	began time.Time
	pace  float64 // 0 counts as 1
}

// at returns what the clock shows at a time of the world.
func (c clock) at(t time.Time) time.Time {
	if c.pace == 0 || c.pace == 1 || t.IsZero() {
		return t
	}
	return c.began.Add(time.Duration(float64(t.Sub(c.began)) * c.pace))
}

func (c clock) now() time.Time { return c.at(time.Now()) }

// until returns how long it takes until the clock shows t.
func (c clock) until(t time.Time) time.Duration {
	d := t.Sub(c.now())
	if c.pace > 0 {
		d = time.Duration(float64(d) / c.pace)
	}
	return d
}

// openClock makes a clock that goes on from where it was, if the file says when it began.
func openClock(file string, pace float64) (clock, error) {
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		began := time.Now().Truncate(time.Second)
		return clock{began, pace}, os.WriteFile(file, []byte(began.Format(time.RFC3339)+"\n"), 0o666)
	case err != nil:
		return clock{}, err
	}
	began, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		return clock{}, fmt.Errorf("%s says no time (delete it, if pages may be due at other times): %w",
			file, err)
	}
	return clock{began, pace}, nil
}
