package compare

import "github.com/spinneret-go/spinneret/pagerank"

// OPIC gives each seed 1, and a fetched page distributes its cash over its links; the id with the
// most cash is next (Abiteboul, Preda and Cobena, 2003), with each page fetched once. The zero OPIC
// is empty and ready to use, by one goroutine at a time.
type OPIC struct {
	Host func(id uint32) uint32 // for the order of ties; may be nil

	cash *pagerank.Frontier
}

func (o *OPIC) frontier() *pagerank.Frontier {
	if o.cash == nil {
		o.cash = pagerank.New(pagerank.Options{Cutoff: pagerank.DL1, Trusted: true, Host: o.Host})
	}
	return o.cash
}

// Discover queues id, and gives it 1 if it never had any cash.
func (o *OPIC) Discover(id uint32) {
	if f := o.frontier(); f.Score(id) > 0 {
		f.Discover(id)
	} else {
		f.Trust(id, 1)
	}
}

// Fetched passes on the page's cash.
func (o *OPIC) Fetched(id uint32, links []uint32) { o.frontier().Fetched(id, links) }

// Next takes the id with the most cash.
func (o *OPIC) Next() (id uint32, ok bool) { return o.frontier().Next() }

// RankMass takes the id with the highest lower bound on its PageRank for readers who start on the
// seeds (Cho and Schonfeld, 2007), with each page fetched once. The zero RankMass is empty and
// ready to use, by one goroutine at a time.
type RankMass struct {
	// Threshold is that of the Frontier's AR cutoff: a smaller one costs more and gives a tighter
	// bound. 0 means 29.0/30.
	Threshold float64
	Host      func(id uint32) uint32 // for the order of ties; may be nil

	rank *pagerank.Frontier
}

func (m *RankMass) frontier() *pagerank.Frontier {
	if m.rank == nil {
		m.rank = pagerank.New(pagerank.Options{
			Cutoff: pagerank.AR, Threshold: m.Threshold, Damping: pagerank.DefaultDamping,
			Trusted: true, Host: m.Host,
		})
	}
	return m.rank
}

// Discover queues id as one of the pages where readers start.
func (m *RankMass) Discover(id uint32) { m.frontier().Trust(id, 1) }

// Fetched passes on the page's score.
func (m *RankMass) Fetched(id uint32, links []uint32) { m.frontier().Fetched(id, links) }

// Next takes the id with the highest bound.
func (m *RankMass) Next() (id uint32, ok bool) { return m.frontier().Next() }

// Stats returns the figures of the underlying frontier. Stats.Mass is the guarantee: fetched pages
// hold at least that share of the PageRank of the whole web.
func (m *RankMass) Stats() pagerank.Stats { return m.frontier().Stats() }
