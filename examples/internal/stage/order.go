package stage

import (
	"sync"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
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
	at   orderedAt

	fetched bool // and so out of the frontier's queue for good
}

// An orderedAt says where a page is on its way.
type orderedAt uint8

const (
	inQueue orderedAt = iota
	isOut             // with the caller of Next
	isDone            // and has its fate
	isAway            // its item is not here yet: there are links to it, or an earlier crawl had it
)

// NewOrder returns an empty Order.
func NewOrder() *Order {
	o := &Order{ids: map[string]uint32{}, hosts: map[string]uint32{}}
	o.frontier = pagerank.New(o.options())
	return o
}

func (o *Order) options() pagerank.Options {
	return pagerank.Options{Host: func(id uint32) uint32 {
		if int(id) >= len(o.pages) { // in a file that is not ours
			return 0
		}
		return o.pages[id].host
	}}
}

// MaxOrdered is how many pages an Order takes, so that its memory has a bound.
const MaxOrdered = 2_000_000

// Add takes in an item that is not visited yet. It returns false if its page is here already, or
// has come to its end here, or if there is no room.
func (o *Order) Add(it Item) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, ok := o.meet(it.URL)
	if !ok || o.pages[id].at != isAway || o.pages[id].fetched {
		return false
	}
	p := &o.pages[id]
	p.item, p.at = it, inQueue
	o.frontier.Discover(id)
	return true
}

// meet returns the number of a URL, which is a new one if it is met the first time. It returns
// false if there is no room.
func (o *Order) meet(url string) (id uint32, ok bool) {
	id, ok = o.ids[url]
	if !ok && len(o.pages) < MaxOrdered {
		return o.enter(url), true
	}
	return id, ok
}

// enter gives a URL the next number.
func (o *Order) enter(url string) (id uint32) {
	name := weburl.Host(url)
	host, known := o.hosts[name]
	if !known {
		host = uint32(len(o.out))
		o.hosts[name] = host
		o.out = append(o.out, 0)
	}
	id = uint32(len(o.pages))
	o.ids[url] = id
	o.pages = append(o.pages, orderedPage{url: url, host: host, at: isAway})
	return id
}

// Fetched says where the links of a page lead that was given out, or that was never added. What
// they give to pages that come later, those have when they are added.
func (o *Order) Fetched(url string, links []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, ok := o.meet(url)
	if !ok || o.pages[id].at == inQueue { // whose item would be lost
		return
	}
	o.pages[id].fetched = true
	targets := make([]uint32, 0, len(links))
	for _, link := range links {
		if to, ok := o.meet(link); ok {
			targets = append(targets, to)
		}
	}
	o.frontier.Fetched(id, targets)
}

// Next gives out the item with the highest score among those whose host has none too many out.
func (o *Order) Next() (it Item, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ready := func(host uint32) bool { return o.out[host] < perHost }
	for {
		id, ok := o.frontier.NextReady(ready)
		if !ok {
			return it, false
		}
		p := &o.pages[id]
		if p.at != inQueue { // Add brings it back, and its turn is the next one's
			o.frontier.Release(p.host)
			continue
		}
		it, p.item = p.item, Item{}
		p.at = isOut
		o.out[p.host]++
		return it, true
	}
}

// Done says that an item that was given out has come to its end. For another one it does nothing.
func (o *Order) Done(url string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, known := o.ids[url]
	if !known || o.pages[id].at != isOut {
		return
	}
	p := &o.pages[id]
	p.at = isDone
	o.out[p.host]--
	o.frontier.Release(p.host)
}

// mostWeight bounds weights, up and down.
const mostWeight = 8

// Weight returns how much a page matters: its score over the mean of all pages.
func (o *Order) Weight(url string) float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	stats := o.frontier.Stats()
	id, known := o.ids[url]
	if !known || stats.Total <= 0 {
		return 1
	}
	mean := stats.Total / float64(stats.Known)
	return min(max(o.frontier.Score(id)/mean, 1.0/mostWeight), mostWeight)
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
