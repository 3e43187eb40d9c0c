package compare

import (
	"cmp"
	"slices"
)

// PL is the paper's page number limit: the links of a fetched page get a share of its score, and
// then up to Pages pages, breadth first, pass on what they have just received. The zero PL is empty
// and ready to use, by one goroutine at a time.
type PL struct {
	Pages int                    // 0 means the paper's 8
	Host  func(id uint32) uint32 // for the order of ties; may be nil

	scores
}

// Fetched passes on the score of a page. If a page is fetched again, its new links are discovered
// and nothing else changes.
func (p *PL) Fetched(id uint32, links []uint32) {
	share, ok := p.enter(p.Host, id, links)
	if !ok {
		return
	}
	s, limit := &p.scores, cmp.Or(p.Pages, 8)
	visited := []uint32{id} // few: a map would cost more
	var wave []gain
	enqueue := func(from, to uint32, share float64) {
		s.give(to, share)
		if len(wave) < limit && len(s.out[to]) > 0 && !slices.Contains(visited, to) {
			visited = append(visited, to)
			wave = append(wave, gain{to, share})
		}
	}
	for _, to := range s.out[id] {
		enqueue(id, to, share)
	}
	for i := 0; i < len(wave); i++ {
		out := s.out[wave[i].id]
		for _, to := range out {
			enqueue(wave[i].id, to, wave[i].amount/float64(len(out)))
		}
	}
}

// VR is the paper's value ratio: a page passes on what it receives if that is at least Threshold
// times the score that it had. Shares passed on in this way are dropped below the same threshold.
// The zero VR is empty and ready to use, by one goroutine at a time.
type VR struct {
	Threshold float64                // 0 or negative means the paper's 1.5
	Host      func(id uint32) uint32 // for the order of ties; may be nil

	scores
}

// Fetched passes on the score of a page. If a page is fetched again, its new links are discovered
// and nothing else changes.
func (v *VR) Fetched(id uint32, links []uint32) {
	share, ok := v.enter(v.Host, id, links)
	if !ok {
		return
	}
	s, threshold := &v.scores, cmp.Or(max(v.Threshold, 0), 1.5)
	var wave []gain
	for _, to := range s.out[id] {
		if share >= threshold*s.pages[to].score {
			wave = append(wave, gain{to, share})
		}
		s.give(to, share)
	}
	for i := 0; i < len(wave); i++ {
		out := s.out[wave[i].id]
		for _, to := range out {
			if share := wave[i].amount / float64(len(out)); share >= threshold*s.pages[to].score {
				s.give(to, share)
				wave = append(wave, gain{to, share})
			}
		}
	}
}

// A gain is what a page received and passes on.
type gain struct {
	id     uint32
	amount float64
}

// scores are pages in a heap, with the links of those that were fetched.
type scores struct {
	heap
	out     [][]uint32 // by id
	updates int
}

// Discover queues id, once.
func (s *scores) Discover(id uint32) { s.add(id, nil) }

// enter gives a page its 1 and keeps its links. It returns the share of each link; ok is false if
// there are none, or if the page was fetched before.
func (s *scores) enter(host func(uint32) uint32, id uint32, links []uint32) (share float64, ok bool) {
	clean := s.links(host, id, links)
	for _, to := range clean {
		s.add(to, nil)
	}
	s.out = append(s.out, make([][]uint32, len(s.pages)-len(s.out))...)
	if s.out[id] != nil {
		return 0, false
	}
	s.out[id] = append([]uint32{}, clean...)
	s.heap.give(id, 1)
	return s.pages[id].score / float64(len(clean)), len(clean) > 0
}

func (s *scores) give(id uint32, share float64) {
	s.updates++
	s.heap.give(id, share)
}

// Updates returns the number of shares given so far, the measure of work.
func (s *scores) Updates() int { return s.updates }
