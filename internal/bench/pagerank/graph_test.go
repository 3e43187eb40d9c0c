package pagerank

import (
	"bufio"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/spinneret-go/spinneret/pagerank"
)

// A sample is a graph to crawl, and where to begin.
type sample struct {
	graph *pagerank.Graph
	seed  uint32
	hosts []uint32 // nil if not known
}

// cnr reads the crawl of the CNR of 2000, once.
var cnr = sync.OnceValues(func() (sample, error) {
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	file, err := os.Open(filepath.Join(dir, "graphs/cnr-2000/edges.tsv.zst"))
	if err != nil {
		return sample{}, err
	}
	defer file.Close()
	z, err := zstd.NewReader(file)
	if err != nil {
		return sample{}, err
	}
	defer z.Close()
	var from, to []uint32
	for lines := bufio.NewScanner(z); lines.Scan(); {
		a, b, _ := strings.Cut(lines.Text(), "\t")
		x, err1 := strconv.ParseUint(a, 10, 32)
		y, err2 := strconv.ParseUint(b, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return sample{}, err
		}
		from, to = append(from, uint32(x)), append(to, uint32(y))
	}
	return newSample(325_557, from, to, nil), nil
})

func mustCNR(b *testing.B) sample {
	s, err := cnr()
	if errors.Is(err, fs.ErrNotExist) {
		b.Skip("no graph cnr-2000 below SPINNERET_DATA")
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// generated makes n pages on hosts of very different sizes, nine links to a page, most of them to
// pages close by.
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

// discovered numbers the pages in the order of discovery, as whoever maps URLs to ids does.
func (s sample) discovered() sample {
	var order []uint32
	q := &pagerank.BreadthFirst{}
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
	g := pagerank.NewGraph(len(order), func(yield func(a, b uint32) bool) {
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
	s.graph = pagerank.NewGraph(n, func(yield func(a, b uint32) bool) {
		for i := range from {
			if !yield(from[i], to[i]) {
				return
			}
		}
	})
	most := 0
	for id := uint32(0); int(id) < n && most < n*9/10; id += uint32(n/50 + 1) {
		if reached := crawl(&pagerank.BreadthFirst{}, sample{graph: s.graph, seed: id}); reached > most {
			s.seed, most = id, reached
		}
	}
	return s
}

// crawl fetches everything and returns how much that was.
func crawl(s pagerank.Strategy, from sample) (pages int) {
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
