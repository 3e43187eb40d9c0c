//go:build linux

package programs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// A Sample is the state of a fullcrawler process at one time. Sizes are in bytes.
type Sample struct {
	Visits, Known    float64       // visits made, pages known
	Heap, Archive    float64       // memory in use by Go, bytes written to the archive
	Resident, Peak   float64       // memory with mapped files: now, and at most so far
	Anonymous        float64       // resident memory without mapped files
	CPU              float64       // seconds of processor time, user and system
	Goroutines, Open float64       // goroutines, open files
	After            time.Duration // since the start
}

// TakeSample reads the metrics of a crawler, started with -listen, and the kernel's statistics of
// its process.
func TakeSample(listen string, pid int) (s Sample, err error) {
	if err := s.readMetrics(listen); err != nil {
		return s, err
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return s, err
	}
	s.Open = float64(len(files))
	if err := s.readStatus(filepath.Join(proc, "status")); err != nil {
		return s, err
	}
	return s, s.readCPU(filepath.Join(proc, "stat"))
}

func (s *Sample) readMetrics(listen string) error {
	resp, err := http.Get("http://" + listen + "/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		end := strings.LastIndexByte(line, ' ') // labels may contain spaces as well
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			continue // a comment
		}
		switch name := line[:max(end, 0)]; {
		case strings.HasPrefix(name, "spinneret_visits_total"):
			s.Visits += value
		case name == "spinneret_pages_known":
			s.Known = value
		case name == "spinneret_heap_bytes":
			s.Heap = value
		case name == "spinneret_archive_bytes_total":
			s.Archive = value
		case name == "spinneret_goroutines":
			s.Goroutines = value
		}
	}
	return lines.Err()
}

func (s *Sample) readStatus(file string) (err error) {
	for name, to := range map[string]*float64{"VmHWM": &s.Peak, "VmRSS": &s.Resident, "RssAnon": &s.Anonymous} {
		kilobytes, failed := measure.ProcNumber(file, name)
		*to, err = float64(kilobytes)*1024, errors.Join(err, failed)
	}
	return err
}

func (s *Sample) readCPU(name string) error {
	stat, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	const user, system, ticks = 12, 13, 100 // per second, everywhere on Linux
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.CPU += n / ticks
	}
	return nil
}
