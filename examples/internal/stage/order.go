package stage

import (
	"sync"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/pagerank"
)

// perHost is how many items of a host an Order gives out at a time: one to be fetched and one that
// is ready when that is done. What is out keeps its place, however high others rise meanwhile.
const perHost = 2

// An Order gives items out by the PageRank of their pages among what was fetched so far, instead of
// in the order in which they were found. It keeps the URLs of all pages that it has met, some 200
// bytes for each. Its methods are safe for concurrent use.
type Order struct {
	mu       sync.Mutex
	frontier *pagerank.Frontier
	ids      map[string]uint32 // by URL
	pages    []orderedPage     // by id
	hosts    map[string]uint32
	out      []int // by host: how many items were given out and are not done
}

type orderedPage struct {
	url  string
	item Item // until it is given out
	host uint32
	out  bool
}

// NewOrder returns an empty Order.
func NewOrder() *Order {
	o := &Order{ids: map[string]uint32{}, hosts: map[string]uint32{}}
	o.frontier = pagerank.New(pagerank.Options{
		Host: func(id uint32) uint32 { return o.pages[id].host },
	})
	return o
}

// MaxOrdered is how many pages an Order takes, so that its memory has a bound.
const MaxOrdered = 2_000_000

// Add takes in an item with a URL that was not met before. It returns false if there is no room.
func (o *Order) Add(it Item) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, met := o.ids[it.URL]; met || len(o.pages) >= MaxOrdered {
		return false
	}
	name := dedupe.Host(it.URL)
	host, known := o.hosts[name]
	if !known {
		host = uint32(len(o.out))
		o.hosts[name] = host
		o.out = append(o.out, 0)
	}
	id := uint32(len(o.pages))
	o.ids[it.URL] = id
	o.pages = append(o.pages, orderedPage{url: it.URL, item: it, host: host})
	o.frontier.Discover(id)
	return true
}

// Fetched says where the links of a page lead. Those to URLs that were never added do not count.
func (o *Order) Fetched(url string, links []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, known := o.ids[url]
	if !known {
		return
	}
	targets := make([]uint32, 0, len(links))
	for _, link := range links {
		if to, known := o.ids[link]; known {
			targets = append(targets, to)
		}
	}
	o.frontier.Fetched(id, targets)
}

// Next gives out the item with the highest score among those whose host has none too many out.
func (o *Order) Next() (it Item, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, ok := o.frontier.NextReady(func(host uint32) bool { return o.out[host] < perHost })
	if !ok {
		return it, false
	}
	p := &o.pages[id]
	it, p.item = p.item, Item{}
	p.out = true
	o.out[p.host]++
	return it, true
}

// Done says that an item that was given out has come to its end. For another one it does nothing.
func (o *Order) Done(url string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, known := o.ids[url]
	if !known || !o.pages[id].out {
		return
	}
	p := &o.pages[id]
	p.out = false
	o.out[p.host]--
	o.frontier.Release(p.host)
}

// A Ranked is a page with its score.
type Ranked struct {
	URL   string  `json:"url"`
	Score float64 `json:"score"`
}

// Top returns the n fetched pages with the highest scores.
func (o *Order) Top(n int) (top []Ranked) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, score := range o.frontier.Top(n) {
		top = append(top, Ranked{o.pages[id].url, score})
	}
	return top
}
