package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// A web is a graph to crawl.
type web struct {
	name  string
	graph *compare.Graph
	urls  []string // by id; nil if unknown
	hosts []uint32 // by id; nil if unknown
	ties  []uint32 // by id: slashes, then length; nil if unknown
	ids   []uint32 // by id: its number in the file; nil if the same
}

// find returns the pages with these names: numbers of the file, or URLs.
func (w *web) find(names []string) (found []uint32, err error) {
	for _, name := range names {
		id := w.called(name)
		if id < 0 || id >= w.graph.Len() {
			return nil, fmt.Errorf("%s: no page %q", w.name, name)
		}
		found = append(found, uint32(id))
	}
	return found, nil
}

// called returns the id of the page with a name. If there is none, it is -1 or beyond all ids.
func (w *web) called(name string) int {
	if name == "" { // the URL of a page known only by its number
		return -1
	}
	id := slices.Index(w.urls, name)
	if number, ok := decimal([]byte(name)); id < 0 && ok && number < maxID {
		if w.ids == nil {
			return int(number)
		}
		return slices.Index(w.ids, uint32(number))
	}
	return id
}

// address derives hosts and ties from the URLs.
func (w *web) address() {
	if w.urls == nil {
		return
	}
	w.hosts, w.ties = make([]uint32, len(w.urls)), make([]uint32, len(w.urls))
	numbers := map[string]uint32{}
	for id, text := range w.urls {
		host := hostOf(text)
		number, ok := numbers[host]
		if !ok {
			number = uint32(len(numbers))
			numbers[host] = number
		}
		w.hosts[id] = number
		w.ties[id] = uint32(strings.Count(text, "/"))<<16 | uint32(min(len(text), 1<<16-1))
	}
}

func hostOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return strings.ToLower(u.Host)
	}
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		rest = text
	}
	host, _, _ := strings.Cut(rest, "/")
	return strings.ToLower(host)
}

// host returns the function that strategies call, or nil.
func (w *web) host() func(uint32) uint32 { return lookup(w.hosts) }

func lookup(values []uint32) func(uint32) uint32 {
	if values == nil {
		return nil
	}
	return func(id uint32) uint32 { return values[id] }
}

// reach marks and counts the pages reachable from the seeds.
func (w *web) reach(seeds []uint32) (in []bool, n int) {
	in = make([]bool, w.graph.Len())
	var stack []uint32
	visit := func(id uint32) {
		if !in[id] {
			in[id] = true
			n++
			stack = append(stack, id)
		}
	}
	for _, id := range seeds {
		visit(id)
	}
	for len(stack) > 0 {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, to := range w.graph.Links(id) {
			visit(to)
		}
	}
	return in, n
}

// only returns the subgraph of the marked pages, renumbered in the same order, and the new numbers
// of the seeds.
func (w *web) only(in []bool, n int, seeds []uint32) (*web, []uint32) {
	if n == len(in) {
		return w, seeds
	}
	number := make([]uint32, len(in))
	next := uint32(0)
	part := &web{name: w.name}
	for id, ok := range in {
		if !ok {
			continue
		}
		number[id] = next
		next++
		old := uint32(id)
		if w.ids != nil {
			old = w.ids[id]
		}
		part.ids = append(part.ids, old)
		if w.urls != nil {
			part.urls = append(part.urls, w.urls[id])
		}
		if w.hosts != nil {
			part.hosts = append(part.hosts, w.hosts[id])
			part.ties = append(part.ties, w.ties[id])
		}
	}
	part.graph = compare.NewGraph(n, func(yield func(from, to uint32) bool) {
		for id, ok := range in {
			for _, to := range w.graph.Links(uint32(id)) {
				if ok && in[to] && !yield(number[id], number[to]) {
					return
				}
			}
		}
	})
	moved := make([]uint32, len(seeds))
	for i, id := range seeds {
		moved[i] = number[id]
	}
	return part, moved
}

// A start is the part of a web that is reachable from the seeds of one crawl.
type start struct {
	*web
	seeds []uint32
	truth *truth
}

// starts chooses seeds: the first page and random others, if they reach nearly as many pages as the
// best one. Results differ a lot from seed to seed, so a single one proves little.
func (w *web) starts(want int) (all []start) {
	const tries, nearly = 64, 0.9
	if w.graph.Len() == 0 {
		return nil
	}
	type try struct {
		id uint32
		n  int
	}
	random := rand.New(rand.NewPCG(1, uint64(w.graph.Len())))
	var found []try
	most := 0
	for i := range tries {
		id := uint32(0)
		if i > 0 {
			id = random.Uint32N(uint32(w.graph.Len()))
		}
		twice := slices.ContainsFunc(found, func(t try) bool { return t.id == id })
		if twice || len(w.graph.Links(id)) == 0 {
			continue
		}
		_, n := w.reach([]uint32{id})
		found = append(found, try{id, n})
		most = max(most, n)
		enough := 0
		for _, t := range found {
			if float64(t.n) >= nearly*float64(most) {
				enough++
			}
		}
		if i >= 8 && enough >= want {
			break
		}
	}
	for _, t := range found {
		if float64(t.n) >= nearly*float64(most) && len(all) < want {
			all = append(all, w.start([]uint32{t.id}))
		}
	}
	return all
}

// start restricts a web to the pages that are reachable from the seeds.
func (w *web) start(seeds []uint32) start {
	in, n := w.reach(seeds)
	part, moved := w.only(in, n, seeds)
	return start{web: part, seeds: moved}
}
