package compare

// A heap orders ids by score, then by tie, then by discovery. Scores may rise while an id is in it.
type heap struct {
	table
	ids  []uint32
	ties []uint32 // by id; nil if there are none
}

// add queues id if it is new.
func (h *heap) add(id uint32, tie func(uint32) uint32) {
	if !h.meet(id) {
		return
	}
	if tie != nil {
		h.ties = append(h.ties, make([]uint32, max(0, len(h.pages)-len(h.ties)))...)
		h.ties[id] = tie(id)
	}
	h.ids = append(h.ids, id)
	h.up(len(h.ids)-1, id)
}

// give adds to the score of a known id.
func (h *heap) give(id uint32, share float64) {
	p := &h.pages[id]
	p.score += share
	if p.place != 0 {
		h.up(int(p.place)-1, id)
	}
}

// Next takes the id with the highest score.
func (h *heap) Next() (id uint32, ok bool) {
	if len(h.ids) == 0 {
		return 0, false
	}
	id = h.ids[0]
	h.pages[id].place = 0
	last := h.ids[len(h.ids)-1]
	h.ids = h.ids[:len(h.ids)-1]
	if len(h.ids) > 0 {
		h.down(last)
	}
	return id, true
}

func (h *heap) before(x, y uint32) bool {
	a, b := &h.pages[x], &h.pages[y]
	switch {
	case a.score != b.score:
		return a.score > b.score
	case h.ties != nil && h.ties[x] != h.ties[y]:
		return h.ties[x] < h.ties[y]
	}
	return a.found < b.found
}

// A heap with four children to a node is half as deep as a binary one, and siblings share a cache
// line.
const arity = 4

// up moves id from place i towards the front.
func (h *heap) up(i int, id uint32) {
	for i > 0 && h.before(id, h.ids[(i-1)/arity]) {
		h.set(i, h.ids[(i-1)/arity])
		i = (i - 1) / arity
	}
	h.set(i, id)
}

// down moves id from the front to its place.
func (h *heap) down(id uint32) {
	i := 0
	for {
		best := arity*i + 1
		for c := best + 1; c < min(arity*(i+1)+1, len(h.ids)); c++ {
			if h.before(h.ids[c], h.ids[best]) {
				best = c
			}
		}
		if best >= len(h.ids) || !h.before(h.ids[best], id) {
			break
		}
		h.set(i, h.ids[best])
		i = best
	}
	h.set(i, id)
}

func (h *heap) set(i int, id uint32) {
	h.ids[i] = id
	h.pages[id].place = uint32(i + 1)
}

// BackLinks takes the id that most fetched pages link to. The zero BackLinks is empty and ready to
// use, by one goroutine at a time.
type BackLinks struct {
	Host func(id uint32) uint32 // for the order of ties; may be nil

	// Tie orders ids with the same number of links, lowest first. The paper takes the number of
	// slashes in the URL, then its length. nil means the order of discovery.
	Tie func(id uint32) uint32

	heap
}

// Discover queues id, once.
func (b *BackLinks) Discover(id uint32) { b.add(id, b.Tie) }

// Fetched counts the links of a page. If a page is fetched again, they count again.
func (b *BackLinks) Fetched(id uint32, links []uint32) {
	for _, to := range b.links(b.Host, id, links) {
		b.add(to, b.Tie)
		b.give(to, 1)
	}
}
