package graphweb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Graph is the pages of a real web and the links between them. It is immutable, so its methods are
// safe for concurrent use.
type Graph struct {
	urls  []string
	hosts []int32   // of each page, counted in the order of their first pages
	names []string  // of the hosts
	links [][]int32 // of each page, in the order of the document
	index map[string]int32
}

// ErrGraph means that a file is not a graph.
var ErrGraph = errors.New("graphweb: not a graph")

// maxGraphLine bounds a line of a graph's files.
const maxGraphLine = 1 << 20

// Read reads a graph from lines "id, fetched, URL" and "from, to" with tabs between the fields.
// URLs that were not fetched (0) are not pages, and links to them are dropped.
//
// Clean turns a URL into the form in which it will be requested, or into "" if it will not be; URLs
// of the same form are one page. It must remove https, as the virtual web has no TLS.
func Read(nodes, edges io.Reader, clean func(url string) string) (*Graph, error) {
	g := &Graph{index: map[string]int32{}}
	pages := map[int]int32{} // by id
	hosts := map[string]int32{}
	err := eachLine(nodes, func(line string) error {
		id, rest, _ := strings.Cut(line, "\t")
		fetched, text, ok := strings.Cut(rest, "\t")
		n, err := strconv.Atoi(id)
		if err != nil || !ok {
			return fmt.Errorf("%w: node %q", ErrGraph, line)
		}
		if fetched == "0" {
			return nil
		}
		if page, ok := g.add(clean(text), hosts); ok {
			pages[n] = page
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	g.links = make([][]int32, len(g.urls))
	err = eachLine(edges, func(line string) error {
		a, b, ok := strings.Cut(line, "\t")
		from, errFrom := strconv.Atoi(a)
		to, errTo := strconv.Atoi(b)
		if !ok || errFrom != nil || errTo != nil {
			return fmt.Errorf("%w: edge %q", ErrGraph, line)
		}
		page, known := pages[from]
		if target, ok := pages[to]; ok && known {
			g.links[page] = append(g.links[page], target)
		}
		return nil
	})
	return g, err
}

// plainHost returns a host in the form of the web's URLs: in lower case, without a port and the
// trailing dot.
func plainHost(host string) string {
	host, _, _ = strings.Cut(host, ":")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// add adds a page. It reports whether the page can be served: on port 80, without a fragment.
func (g *Graph) add(text string, hosts map[string]int32) (page int32, ok bool) {
	if page, ok = g.index[text]; ok {
		return page, true
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.Host != plainHost(u.Host) ||
		u.Fragment != "" || text != "http://"+u.Host+u.RequestURI() {
		return 0, false
	}
	host, ok := hosts[u.Host]
	if !ok {
		host = int32(len(g.names))
		hosts[u.Host] = host
		g.names = append(g.names, u.Host)
	}
	page = int32(len(g.urls))
	g.index[text] = page
	g.urls, g.hosts = append(g.urls, text), append(g.hosts, host)
	return page, true
}

// eachLine yields the lines that are not empty.
func eachLine(r io.Reader, take func(line string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxGraphLine)
	for lines.Scan() {
		if line := strings.TrimRight(lines.Text(), "\r"); line != "" {
			if err := take(line); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("graphweb: read graph: %w", err)
	}
	return nil
}

// Len returns the number of pages.
func (g *Graph) Len() int { return len(g.urls) }

// Part cuts a graph down to a number of pages, in total and per host; 0 means no limit. It keeps
// the first ones in breadth-first order from the first page, and continues from the next unvisited
// page when links lead no further. Links between the remaining pages stay. The seeds are the
// starting points, so they lead to all pages.
func (g *Graph) Part(pages, perHost int) (part *Graph, seeds []string) {
	if pages == 0 {
		pages = g.Len()
	}
	kept := make(map[int32]bool, pages)
	ofHost := make([]int, len(g.names))
	var order []int32
	meet := func(page int32) bool {
		host := g.hosts[page]
		if kept[page] || len(order) == pages || perHost > 0 && ofHost[host] == perHost {
			return false
		}
		kept[page] = true
		ofHost[host]++
		order = append(order, page)
		return true
	}
	next := 0
	for page := range int32(g.Len()) {
		if meet(page) {
			seeds = append(seeds, g.urls[page])
		}
		for ; next < len(order); next++ {
			for _, to := range g.links[order[next]] {
				meet(to)
			}
		}
	}
	return g.only(order, kept), seeds
}

// only returns the graph of some of the pages.
func (g *Graph) only(order []int32, kept map[int32]bool) *Graph {
	part := &Graph{index: make(map[string]int32, len(order))}
	hosts := map[string]int32{}
	for _, page := range order {
		part.add(g.urls[page], hosts) // it could be served before
	}
	part.links = make([][]int32, len(order))
	for i, page := range order {
		for _, to := range g.links[page] {
			if kept[to] {
				part.links[i] = append(part.links[i], part.index[g.urls[to]])
			}
		}
	}
	return part
}

// Reachable returns, sorted, the URLs of the pages reachable from the seeds, including the seeds.
func (g *Graph) Reachable(seeds ...string) []string {
	met := make([]bool, g.Len())
	var queue []int32
	for _, seed := range seeds {
		if page, ok := g.index[seed]; ok && !met[page] {
			met[page] = true
			queue = append(queue, page)
		}
	}
	var urls []string
	for len(queue) > 0 {
		page := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		urls = append(urls, g.urls[page])
		for _, to := range g.links[page] {
			if !met[to] {
				met[to] = true
				queue = append(queue, to)
			}
		}
	}
	slices.Sort(urls)
	return urls
}
