package pagerank

// BackLinks takes the id that most fetched pages link to. The zero BackLinks is empty and ready to
// use, by one goroutine at a time.
type BackLinks struct {
	Host func(id uint32) uint32 // for the order of ties, see Options; may be nil

	// Tie orders ids with as many links, the lowest first; the paper has fewer slashes in the URL
	// first, then shorter URLs. Those that are still alike, and all if Tie is nil, come in the
	// order of discovery.
	Tie func(id uint32) uint32

	reg register
	// Counts only rise, so an id moves up in place: a lazy queue would keep an entry for each link.
	places []uint32 // in the heap, from 1 on
	ties   []uint64 // Tie, then the order of discovery
	heap   []uint32
	found  uint32
}

// Discover queues id, once.
func (b *BackLinks) Discover(id uint32) {
	b.reg.limit, b.reg.host = maxIDs, b.Host
	if b.reg.beyond(id) {
		return
	}
	b.reg.cover(id)
	b.follow()
	b.know(id)
}

// follow lets the other arrays follow the number of nodes.
func (b *BackLinks) follow() {
	if n := len(b.reg.nodes) - len(b.places); n > 0 {
		b.places = append(b.places, make([]uint32, n)...)
		b.ties = append(b.ties, make([]uint64, n)...)
	}
}

func (b *BackLinks) know(id uint32) {
	if !b.reg.know(id) {
		return
	}
	if b.Tie != nil {
		b.ties[id] = uint64(b.Tie(id)) << 32
	}
	b.ties[id] |= uint64(b.found)
	b.found++
	b.heap = append(b.heap, id)
	b.places[id] = uint32(len(b.heap))
	b.up(len(b.heap) - 1)
}

// Fetched counts the links of a page; if it is fetched again, they count again.
func (b *BackLinks) Fetched(id uint32, links []uint32) {
	b.reg.limit, b.reg.host = maxIDs, b.Host
	if b.reg.beyond(id) {
		return
	}
	b.reg.tidy(id, links)
	b.follow()
	for _, to := range b.reg.clean {
		b.know(to)
		b.reg.nodes[to].score++
		if at := b.places[to]; at != 0 {
			b.up(int(at) - 1)
		}
	}
}

// Next takes the id with the most links.
func (b *BackLinks) Next() (id uint32, ok bool) {
	if len(b.heap) == 0 {
		return 0, false
	}
	id = b.heap[0]
	b.places[id] = 0
	// The last one takes the place of the first, and sinks to where it belongs.
	last := len(b.heap) - 1
	end := b.heap[last]
	b.heap = b.heap[:last]
	if last > 0 {
		b.down(end)
	}
	return id, true
}

func (b *BackLinks) before(x, y uint32) bool {
	if sx, sy := b.reg.nodes[x].score, b.reg.nodes[y].score; sx != sy {
		return sx > sy
	}
	return b.ties[x] < b.ties[y]
}

// The heap has four children to a node: half the depth of the usual one, and a line of the cache
// holds them.
const arity = 4

func (b *BackLinks) up(i int) {
	id := b.heap[i]
	for i > 0 {
		parent := (i - 1) / arity
		if !b.before(id, b.heap[parent]) {
			break
		}
		b.set(i, b.heap[parent])
		i = parent
	}
	b.set(i, id)
}

// down puts id in the place of the first one.
func (b *BackLinks) down(id uint32) {
	i := 0
	for {
		best := arity*i + 1
		if best >= len(b.heap) {
			break
		}
		for c := best + 1; c < min(arity*(i+1)+1, len(b.heap)); c++ {
			if b.before(b.heap[c], b.heap[best]) {
				best = c
			}
		}
		if !b.before(b.heap[best], id) {
			break
		}
		b.set(i, b.heap[best])
		i = best
	}
	b.set(i, id)
}

func (b *BackLinks) set(i int, id uint32) {
	b.heap[i] = id
	b.places[id] = uint32(i + 1)
}
