package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// benchSpread counts the share of each process, as in §6 of the paper: URLs by h(URL), hosts by
// h(host), and for comparison URLs by h(host), as in crawlers that assign whole sites.
func benchSpread(fs *flag.FlagSet) action {
	parts := fs.Int("parts", 16, "partitions of each module")
	return func(_ context.Context, files []string, out, _ io.Writer) error {
		s := newSpread(*parts)
		for _, name := range files {
			if err := s.file(name); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "%d URLs, %d hosts, %d partitions\n", total(s.urls), total(s.hosts), *parts)
		fmt.Fprintln(out, "processes  URLs by URL      hosts by host    URLs by host")
		for _, n := range []int{2, 4, 8, 16} {
			if n > *parts {
				break
			}
			fmt.Fprintf(out, "%9d  %s  %s  %s\n", n,
				deviation(s.urls, n), deviation(s.hosts, n), deviation(s.sites, n))
		}
		fmt.Fprintln(out, "(largest deviation, and standard deviation, relative to the mean)")
		return nil
	}
}

// A spread counts by partition.
type spread struct {
	urls, hosts, sites []int // sites counts URLs by h(host)
	seenURL, seenHost  map[string]struct{}
}

func newSpread(parts int) *spread {
	return &spread{
		urls: make([]int, parts), hosts: make([]int, parts), sites: make([]int, parts),
		seenURL: map[string]struct{}{}, seenHost: map[string]struct{}{},
	}
}

// file counts the distinct lines of a file. A line without a scheme is a host.
func (s *spread) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".zst") {
		z, err := zstd.NewReader(f)
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Text()
		s.add(text[strings.LastIndexByte(text, '\t')+1:])
	}
	return lines.Err()
}

func (s *spread) add(text string) {
	host := text
	if strings.Contains(text, "://") {
		url, err := weburl.Canonical(text)
		if err != nil {
			return
		}
		host = weburl.Host(url)
		if _, old := s.seenURL[url]; old {
			return
		}
		s.seenURL[url] = struct{}{}
		s.urls[message.Part(url, len(s.urls))]++
		s.sites[message.Part(host, len(s.sites))]++
	}
	if _, old := s.seenHost[host]; !old {
		s.seenHost[strings.Clone(host)] = struct{}{}
		s.hosts[message.Part(host, len(s.hosts))]++
	}
}

func total(counts []int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// deviation returns how unevenly the counts are spread over n processes.
func deviation(counts []int, n int) string {
	processes := make([]float64, n)
	for part, count := range counts {
		processes[part*n/len(counts)] += float64(count)
	}
	mean := float64(total(counts)) / float64(n)
	if mean == 0 {
		return "-              "
	}
	square := 0.0
	for _, count := range processes {
		square += (count - mean) * (count - mean)
	}
	most := max(slices.Max(processes)-mean, mean-slices.Min(processes))
	return fmt.Sprintf("%5.2f %% (%4.2f %%)", 100*most/mean, 100*math.Sqrt(square/float64(n))/mean)
}
