//go:build unix

package pagerank

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// TestStreamIsOneWeb checks the assumptions of the benchmark: links are the same each time and
// within the web, hosts do not overlap, and nearly all pages are reachable.
func TestStreamIsOneWeb(t *testing.T) {
	web := stream{50_000}
	same, all := 0, 0
	for page := range web.n {
		first, size := web.host(page)
		if page < first || page >= first+size || first+size > web.n {
			t.Fatalf("page %d is on a host from %d on of %d", page, first, size)
		}
		if f, s := web.host(first); f != first || s != size {
			t.Fatalf("pages %d and %d do not agree on their host", page, first)
		}
		links, again := web.links(page, nil), web.links(page, nil)
		for i, to := range links {
			if to != again[i] || to >= web.n {
				t.Fatalf("page %d links to %d, then %d", page, to, again[i])
			}
			if all++; to >= first && to < first+size {
				same++
			}
		}
	}
	if share := float64(same) / float64(all); share < .7 || share > .9 {
		t.Errorf("%.2f of the links stay on their host", share)
	}
	var b compare.BreadthFirst
	b.Discover(0)
	reached := 0
	for id, ok := b.Next(); ok; id, ok = b.Next() {
		reached++
		b.Fetched(id, web.links(id, nil))
	}
	if reached < int(web.n)*9/10 {
		t.Errorf("%d pages of %d are reached", reached, web.n)
	}
}

// TestBestCoderWorkedByHand uses lists whose entropy is known.
func TestBestCoderWorkedByHand(t *testing.T) {
	var equal, coin, random entropy
	r := rand.New(rand.NewPCG(1, 1))
	for page := range uint32(4096) {
		equal.add(page, []uint32{page + 1})
		coin.add(page, []uint32{page + 1 + r.Uint32N(2)*6}) // 1 or 7: different size classes, with 2 or 3 bits
		random.add(page, []uint32{page + 1<<20 + r.Uint32N(1<<20)})
	}
	for name, c := range map[string]struct{ got, least, most float64 }{
		"always the same": {equal.bytes() * 8, 1, 1}, // 2, with the sign, is in a class with 1
		"a coin":          {coin.bytes() * 8, 1 + 1.9, 1 + 2.1},
		"a million":       {random.bytes() * 8, 20, 22.1},
	} {
		if c.got < c.least || c.got > c.most {
			t.Errorf("%s: %.2f bits a link, want from %.1f to %.1f", name, c.got, c.least, c.most)
		}
	}
	if got, want := randomBytes(1e7, 9)*8, math.Log2(1e7*math.E/9); math.Abs(got-want) > .4 {
		t.Errorf("%.2f bits for nine of ten million, want about %.2f", got, want)
	}
	if got := randomBytes(8, 1) * 8; math.Abs(got-3) > 1e-9 {
		t.Errorf("%.2f bits for one of eight", got)
	}
}
