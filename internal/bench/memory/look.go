//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// A look is the state of the crawler at one time, in bytes and seconds.
type look struct {
	known, visits  int
	resident, heap float64
	peak           float64 // the most resident so far, with the pages of files
	cpu            float64
}

// lookAt queries the crawler and the kernel.
func lookAt(pid int) (l look, err error) {
	resp, err := http.Get("http://" + listen + "/metrics")
	if err != nil {
		return l, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		end := strings.LastIndexByte(line, ' ') // names of fates have blanks, too
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			continue // a comment
		}
		switch name := line[:max(end, 0)]; {
		case strings.HasPrefix(name, "spinneret_visits_total"):
			l.visits += int(value)
		case name == "spinneret_pages_known":
			l.known = int(value)
		case name == "spinneret_heap_bytes":
			l.heap = value
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return l, err
	}
	for line := range bytes.Lines(status) {
		fields := strings.Fields(string(line))
		switch fields[0] {
		case "VmHWM:":
			l.peak, err = kilobytes(fields[1])
		case "RssAnon:":
			l.resident, err = kilobytes(fields[1])
		}
		if err != nil {
			return l, err
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return l, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	const user, system, ticks = 12, 13, 100 // per second, everywhere on Linux
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return l, err
		}
		l.cpu += n / ticks
	}
	return l, nil
}

func kilobytes(text string) (bytes float64, err error) {
	n, err := strconv.ParseFloat(text, 64)
	return n * 1024, err
}
