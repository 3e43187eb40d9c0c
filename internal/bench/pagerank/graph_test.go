package pagerank

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// A sample is a graph to crawl, with a seed.
type sample struct {
	graph *compare.Graph
	seed  uint32
	hosts []uint32 // nil if not known
}

// readGraph reads a graph of SPINNERET_DATA, and the hosts of its pages if their URLs are known.
func readGraph(b *testing.B, name string) sample {
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	dir = filepath.Join(dir, "graphs", name)
	var from, to []uint32
	n := 0
	readLines(b, dir, "*edges.tsv.zst", func(fields []string) error {
		x, err1 := strconv.ParseUint(fields[0], 10, 32)
		y, err2 := strconv.ParseUint(fields[1], 10, 32)
		from, to = append(from, uint32(x)), append(to, uint32(y))
		n = max(n, int(x)+1, int(y)+1)
		return errors.Join(err1, err2)
	})
	var hosts []uint32
	if with, _ := filepath.Glob(filepath.Join(dir, "*nodes.tsv.zst")); with != nil {
		ids := map[string]uint32{}
		readLines(b, dir, "*nodes.tsv.zst", func(fields []string) error {
			u, err := url.Parse(fields[2])
			if err != nil {
				u = &url.URL{} // some URLs are invalid, and have no host
			}
			if _, known := ids[u.Host]; !known {
				ids[u.Host] = uint32(len(ids))
			}
			hosts = append(hosts, ids[u.Host])
			return nil
		})
		n = max(n, len(hosts))
	}
	return newSample(n, from, to, hosts)
}

// readLines reads the fields of each line of a compressed file.
func readLines(b *testing.B, dir, pattern string, line func(fields []string) error) {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		b.Fatal(err)
	}
	if len(names) != 1 {
		b.Skipf("no %s in %s: set SPINNERET_DATA to the directory with graphs/", pattern, dir)
	}
	file, err := os.Open(names[0])
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	z, err := zstd.NewReader(file)
	if err != nil {
		b.Fatal(err)
	}
	defer z.Close()
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), "\t", 3)
		if strings.HasPrefix(lines.Text(), "#") || lines.Text() == "" {
			continue
		}
		if err := line(fields); err != nil {
			b.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		b.Fatal(err)
	}
}

// generated returns n pages on hosts of very different sizes, with nine links per page, most of
// them to nearby pages.
func generated(n int) sample {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	hosts := make([]uint32, n)
	var from, to []uint32
	var popular []uint32
	for first, host := 0, uint32(0); first < n; host++ {
		size := min(n-first, int(8/(r.Float64()+1e-3)))
		for i := range size {
			page := uint32(first + i)
			hosts[page] = host
			targets := []uint32{
				uint32(first + (i+1)%size), uint32(first + i/2), uint32(first), uint32(first + min(1, size-1)),
				uint32(first + r.IntN(size)), uint32(first + r.IntN(size)), uint32(first + r.IntN(size)),
				uint32(r.IntN(n)),
			}
			if len(popular) > 0 {
				targets = append(targets, popular[r.IntN(len(popular))])
			}
			for _, t := range targets {
				from, to = append(from, page), append(to, t)
			}
		}
		popular = append(popular, uint32(first), to[len(to)-1])
		first += size
	}
	return newSample(n, from, to, hosts).discovered()
}

// discovered renumbers the pages in the order of discovery, as a table of URLs does.
func (s sample) discovered() sample {
	var order []uint32
	q := &compare.BreadthFirst{}
	q.Discover(s.seed)
	for id, ok := q.Next(); ok; id, ok = q.Next() {
		order = append(order, id)
		q.Fetched(id, s.graph.Links(id))
	}
	number := make([]uint32, s.graph.Len())
	hosts := make([]uint32, len(order))
	for i, id := range order {
		number[id] = uint32(i)
		hosts[i] = s.hosts[id]
	}
	g := compare.NewGraph(len(order), func(yield func(a, b uint32) bool) {
		for i, id := range order {
			for _, to := range s.graph.Links(id) {
				if !yield(uint32(i), number[to]) {
					return
				}
			}
		}
	})
	return sample{graph: g, hosts: hosts}
}

func newSample(n int, from, to, hosts []uint32) sample {
	s := sample{hosts: hosts}
	s.graph = compare.NewGraph(n, func(yield func(a, b uint32) bool) {
		for i := range from {
			if !yield(from[i], to[i]) {
				return
			}
		}
	})
	most := 0
	for id := uint32(0); int(id) < n && most < n*9/10; id += uint32(n/50 + 1) {
		if reached := crawl(&compare.BreadthFirst{}, sample{graph: s.graph, seed: id}); reached > most {
			s.seed, most = id, reached
		}
	}
	return s
}

// crawl fetches everything and returns the number of pages.
func crawl(s compare.Strategy, from sample) (pages int) {
	s.Discover(from.seed)
	for id, ok := s.Next(); ok; id, ok = s.Next() {
		s.Fetched(id, from.graph.Links(id))
		pages++
	}
	return pages
}

func (s sample) host() func(uint32) uint32 {
	if s.hosts == nil {
		return nil
	}
	return func(id uint32) uint32 { return s.hosts[id] }
}
