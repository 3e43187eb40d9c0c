package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/klauspost/compress/zstd"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/hostcache"
)

// A hitValue is large, so that the smallest cache has room for only a few hosts.
type hitValue [100]byte

// runHits looks up the host of each link of recorded crawls in bounded caches, in the order of the
// crawl, and adds missing ones. The reference is an LRU list with room for as many hosts as the
// cache held at the end. The difference in hits is the cost of the cache's clock algorithm.
func runHits(data string) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "stream\thosts asked\tdifferent\tKiB\thosts kept\tcache hits\tLRU hits\t\n")
	for _, stream := range []string{"links of uci-ics", "pages of uci-ics", "urls-scoop"} {
		hosts, err := hostStream(data, stream)
		if err != nil {
			return err
		}
		different := map[string]bool{}
		for _, host := range hosts {
			different[host] = true
		}
		for _, kib := range []int{256, 512, 1024} {
			c := hostcache.New[hitValue](hostcache.Options{MaxBytes: kib << 10})
			hits := 0
			for _, host := range hosts {
				if _, found := c.Get(host); found {
					hits++
				} else {
					c.Set(host, hitValue{}, hostcache.Forever)
				}
			}
			list, err := simplelru.NewLRU[string, struct{}](c.Len(), nil)
			if err != nil {
				return err
			}
			lruHits := 0
			for _, host := range hosts {
				if _, found := list.Get(host); found {
					lruHits++
				} else {
					list.Add(host, struct{}{})
				}
			}
			n := float64(len(hosts)) / 100
			fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%.2f %%\t%.2f %%\t\n", stream, len(hosts), len(different),
				kib, c.Len(), float64(hits)/n, float64(lruHits)/n)
		}
	}
	return out.Flush()
}

// hostStream returns the hosts of the URLs of a stream, in order.
func hostStream(data, stream string) (hosts []string, err error) {
	take := func(line string) error {
		hosts = append(hosts, weburl.Host(line[strings.LastIndexByte(line, '\t')+1:]))
		return nil
	}
	if stream == "urls-scoop" {
		return hosts, eachLine(filepath.Join(data, "urls-scoop.txt.zst"), take)
	}
	graph := filepath.Join(data, "graphs", "uci-ics", "uci-ics")
	if err := eachLine(graph+".nodes.tsv.zst", take); err != nil || stream == "pages of uci-ics" {
		return hosts, err
	}
	nodes := hosts
	hosts = nil
	return hosts, eachLine(graph+".edges.tsv.zst", func(line string) error {
		_, to, _ := strings.Cut(line, "\t")
		id, err := strconv.ParseUint(to, 10, 31)
		if err != nil || id >= uint64(len(nodes)) {
			return fmt.Errorf("link %q to one of %d pages", line, len(nodes))
		}
		hosts = append(hosts, nodes[id])
		return nil
	})
}

// eachLine reads a compressed file.
func eachLine(file string, take func(line string) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer z.Close()
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := take(strings.Clone(lines.Text())); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return lines.Err()
}
