package compare

// OPIC gives each seed 1, and a fetched page distributes its cash over its links; the id with the
// most cash is next (Abiteboul, Preda and Cobena, 2003), with each page fetched once. The zero OPIC
// is empty and ready to use, by one goroutine at a time.
type OPIC struct {
	Host func(id uint32) uint32 // for the order of ties; may be nil

	heap
	done []bool // by id: fetched
}

// Discover queues id, and gives it 1 if it never had any cash.
func (o *OPIC) Discover(id uint32) {
	o.add(id, nil)
	if o.pages[id].score == 0 {
		o.give(id, 1)
	}
}

// Fetched passes on the page's cash. If a page is fetched again, its new links are discovered and
// nothing else changes.
func (o *OPIC) Fetched(id uint32, links []uint32) {
	clean := o.links(o.Host, id, links)
	o.done = append(o.done, make([]bool, len(o.pages)-len(o.done))...)
	share := 0.0
	if !o.done[id] {
		o.done[id] = true
		share = o.pages[id].score / float64(len(clean))
	}
	for _, to := range clean {
		o.add(to, nil)
		o.give(to, share)
	}
}
