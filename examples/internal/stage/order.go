package stage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/pagerank"
)

// perHost is the number of items of a host that an Order returns at a time: one being fetched and
// one ready. These keep their place, even if others rise above them.
const perHost = 2

// An Order returns items by the PageRank of their pages among those fetched so far, instead of in
// the order of discovery. Its methods are safe for concurrent use.
type Order struct {
	mu    sync.Mutex
	ranks *pagerank.URLs
	items map[string]Item   // in the queue, by URL
	out   map[string]string // hosts of the URLs returned by Next and not done
	busy  map[string]int    // how many of them a host has

	changed int64 // pages discovered and fetched since the last Save
}

// MaxOrdered bounds the pages of an Order, and so its memory.
const MaxOrdered = 2_000_000

// OrderOptions are those of the ranks in an Order.
func OrderOptions() pagerank.Options { return pagerank.Options{Limit: MaxOrdered} }

// NewOrder returns an Order with the ranks of an earlier crawl, or with none. Pages in their queue are
// not returned before they are added.
func NewOrder(ranks *pagerank.URLs) *Order {
	return &Order{
		ranks: ranks,
		items: map[string]Item{}, out: map[string]string{}, busy: map[string]int{},
	}
}

// OpenOrder returns the order in a file that Save wrote, or an empty one. After damage it is empty, too, and
// comes with an error. With an error that wraps durable.ErrVersion, or is of the disk, the order is nil.
func OpenOrder(name string) (*Order, error) {
	empty := NewOrder(pagerank.NewURLs(OrderOptions()))
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if head, _ := in.Peek(len(textMagic)); string(head) == textMagic {
		return nil, fmt.Errorf("%s: %w", name, durable.ErrVersion)
	}
	ranks, err := pagerank.ReadURLs(in, OrderOptions())
	switch {
	case err == nil:
		return NewOrder(ranks), nil
	case errors.Is(err, durable.ErrVersion), errors.As(err, new(*fs.PathError)):
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return empty, fmt.Errorf("%s: %w", name, err)
}

// Save writes the file anew, which takes a second for a million pages. For most of that, other calls wait, so
// it is worthwhile when a good part has changed.
func (o *Order) Save(name string) error {
	saved := int64(0)
	err := ReplaceWith(name, func(w io.Writer) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		saved = o.changed
		_, err := o.ranks.WriteTo(w)
		return err
	})
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.changed -= saved
	}
	return err
}

// Changed returns how many pages were discovered or fetched since the last Save, and how many it would write.
func (o *Order) Changed() (pages, all int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed, int64(o.ranks.Stats().Known)
}

// Add adds an item that is not visited yet. It returns false if its page is here, or was fetched
// already, or if there is no room.
func (o *Order) Add(it Item) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, here := o.items[it.URL]
	if _, out := o.out[it.URL]; here || out {
		return false
	}
	if !o.ranks.Discover(it.URL) {
		return false
	}
	o.changed++
	o.items[it.URL] = it
	return true
}

// Fetched records the links of a page that Next returned, or that was never added. Pages that are
// added later get the score of earlier links.
func (o *Order) Fetched(url string, links []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, here := o.items[url]; here { // it would be lost
		return
	}
	o.ranks.Fetched(url, links)
	o.changed++
}

// Next returns the item with the highest score among those whose host may have another one.
func (o *Order) Next() (it Item, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	host := "" // of the URL that NextReady returns
	ready := func(of string) bool {
		host = of
		return o.busy[of] < perHost
	}
	for {
		url, ok := o.ranks.NextReady(ready)
		if !ok {
			return it, false
		}
		it, ok := o.items[url]
		if !ok { // only links to it are here, or it is out; Add brings it back
			o.ranks.Release(host)
			continue
		}
		delete(o.items, url)
		o.out[url] = host
		o.busy[host]++
		return it, true
	}
}

// Done ends an item that Next returned. For others it does nothing.
func (o *Order) Done(url string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	host, out := o.out[url]
	if !out {
		return
	}
	delete(o.out, url)
	if o.busy[host]--; o.busy[host] == 0 {
		delete(o.busy, host)
	}
	o.ranks.Release(host)
}

// Forget erases the URLs of pages from an order that was just read. What their links gave to other
// pages stays. Save makes it durable.
func (o *Order) Forget(which func(url string) bool) (forgotten int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ranks.Forget(which)
}

// mostWeight bounds weights, and their inverses.
const mostWeight = 8

// Weight returns the importance of a page: its score over the mean of all pages.
func (o *Order) Weight(url string) float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	stats := o.ranks.Stats()
	id, known := o.ranks.ID(url)
	if !known || stats.Total <= 0 {
		return 1
	}
	mean := stats.Total / float64(stats.Known)
	return min(max(o.ranks.Frontier().Score(id)/mean, 1.0/mostWeight), mostWeight)
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
	for id, score := range o.ranks.Frontier().Top(n) {
		if url := o.ranks.URL(id); url != "" {
			top = append(top, Ranked{url, score})
		}
	}
	return top
}
