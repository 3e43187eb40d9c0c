package stage

import (
	"sync"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/pagerank"
)

// perHost is the number of items of a host that an Order returns at a time: one being fetched and
// one ready. These keep their place, even if others rise above them.
const perHost = 2

// An Order returns items by the PageRank of their pages among those fetched so far, instead of in
// the order of discovery. It keeps the URLs of all pages that it has seen, about 200 bytes each.
// Its methods are safe for concurrent use.
type Order struct {
	mu       sync.Mutex
	frontier *pagerank.Frontier
	ids      map[string]uint32 // by URL
	pages    []orderedPage     // by id
	hosts    map[string]uint32
	out      []int     // by host: items returned by Next and not done
	log      *orderLog // nil: it is not saved
}

type orderedPage struct {
	url  string
	item Item // until Next returns it
	host uint32
	at   orderedAt

	fetched bool // and so no longer in the frontier's queue
}

// An orderedAt is the state of a page.
type orderedAt uint8

const (
	inQueue orderedAt = iota
	isOut             // with the caller of Next
	isDone            // the visit has ended
	isAway            // its item is not here yet: only links to it, or an entry of an earlier crawl
)

// NewOrder returns an empty Order with a new frontier.
func NewOrder(frontier func(pagerank.Options) *pagerank.Frontier) *Order {
	o := &Order{ids: map[string]uint32{}, hosts: map[string]uint32{}}
	o.frontier = frontier(o.options())
	return o
}

func (o *Order) options() pagerank.Options {
	return pagerank.Options{Host: func(id uint32) uint32 {
		if int(id) >= len(o.pages) { // in a foreign file
			return 0
		}
		return o.pages[id].host
	}}
}

// MaxOrdered bounds the pages of an Order, and so its memory.
const MaxOrdered = 2_000_000

// Add adds an item that is not visited yet. It returns false if its page is here or done already,
// or if there is no room.
func (o *Order) Add(it Item) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, ok := o.idOf(it.URL)
	if !ok || o.pages[id].at != isAway || o.pages[id].fetched {
		return false
	}
	p := &o.pages[id]
	p.item, p.at = it, inQueue
	o.frontier.Discover(id)
	return true
}

// idOf returns the id of a URL, and assigns one to a new URL. It returns false if there is no room.
func (o *Order) idOf(url string) (id uint32, ok bool) {
	id, ok = o.ids[url]
	if !ok && len(o.pages) < MaxOrdered {
		return o.assign(url), true
	}
	return id, ok
}

// assign gives a URL the next id.
func (o *Order) assign(url string) (id uint32) {
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
	if o.note(eventURL, uint32(len(url))); o.log != nil {
		o.log.events = append(o.log.events, url...)
	}
	return id
}

// Fetched records the links of a page that Next returned, or that was never added. Pages that are
// added later get the score of earlier links.
func (o *Order) Fetched(url string, links []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, ok := o.idOf(url)
	if !ok || o.pages[id].at == inQueue { // its item would be lost
		return
	}
	o.pages[id].fetched = true
	targets := make([]uint32, 0, len(links))
	for _, link := range links {
		if to, ok := o.idOf(link); ok {
			targets = append(targets, to)
		}
	}
	o.frontier.Fetched(id, targets)
	o.note(eventLinks, append([]uint32{id, uint32(len(targets))}, targets...)...)
}

// Next returns the item with the highest score among those whose host may have another one.
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
		if p.at != inQueue { // Add brings it back; try the next one
			o.frontier.Release(p.host)
			continue
		}
		it, p.item = p.item, Item{}
		p.at = isOut
		o.out[p.host]++
		return it, true
	}
}

// Done ends an item that Next returned. For others it does nothing.
func (o *Order) Done(url string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, known := o.ids[url]
	if !known || o.pages[id].at != isOut {
		return
	}
	p := &o.pages[id]
	p.at = isDone
	o.note(eventDone, id)
	o.out[p.host]--
	o.frontier.Release(p.host)
}

// Forget forgets the URLs of pages of an order that was just read, and returns of how many. What
// their links gave to other pages stays, as does the place of each in the numbering.
func (o *Order) Forget(which func(url string) bool) (forgotten int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.pages {
		p := &o.pages[id]
		if p.url == "" || !which(p.url) {
			continue
		}
		delete(o.ids, p.url)
		p.url, p.at = "", isDone
		forgotten++
	}
	return forgotten
}

// mostWeight bounds weights, and their inverses.
const mostWeight = 8

// Weight returns the importance of a page: its score over the mean of all pages.
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

// Top returns the n fetched pages with the highest scores, without those that were forgotten.
func (o *Order) Top(n int) (top []Ranked) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, score := range o.frontier.Top(n) {
		if url := o.pages[id].url; url != "" {
			top = append(top, Ranked{url, score})
		}
	}
	return top
}
