package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// An event is one line of a change log.
type event struct {
	page string
	at   int64 // Unix seconds
	op   byte  // A added, M modified, D deleted
}

// readLog reads a change log, compressed with zstd if its name ends in .zst.
func readLog(name string) ([]event, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(name, ".zst") {
		z, err := zstd.NewReader(file)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		in = z
	}
	events, err := parseLog(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return events, nil
}

// parseLog reads lines of page, time and, if there is a third column, what happened. The result is
// sorted by page and time, whatever the order of the lines.
func parseLog(in io.Reader) ([]event, error) {
	var events []event
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		e, err := parseEvent(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		events = append(events, e)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.at, b.at))
	})
	return events, nil
}

// latest is the largest time accepted, about 30,000 years from now.
const latest = 1e12

func parseEvent(line string) (event, error) {
	page, rest, ok := strings.Cut(line, "\t")
	if !ok {
		return event{}, fmt.Errorf("%q has no tab; want a page, a tab and a Unix time", line)
	}
	stamp, op, hasOp := strings.Cut(rest, "\t")
	at, err := strconv.ParseFloat(stamp, 64)
	if err != nil || !(math.Abs(at) <= latest) { // also NaN
		return event{}, fmt.Errorf("%q has no valid Unix time after the tab", line)
	}
	e := event{strings.Clone(page), int64(at), 'M'}
	if hasOp && op != "" {
		e.op = op[0]
	}
	return e, nil
}
