package simhash

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain is Of for texts of lower-case words and spaces, as in the paper: one bit at a time.
func plain(text string) Print {
	var hashes []uint64
	for _, w := range strings.Fields(text) {
		hash := uint64(fnvStart)
		for _, letter := range w {
			hash = (hash ^ uint64(letter)) * fnvPrime
		}
		hashes = append(hashes, hash)
	}
	var p Print
	for _, hash := range hashes {
		p.Words = mix(p.Words ^ hash)
	}
	var shingles []uint64
	for i := 0; i+2 < len(hashes); i++ {
		shingles = append(shingles, mix(mix(mix(hashes[i])+hashes[i+1])^hashes[i+2]))
	}
	if n := len(hashes); n == 1 || n == 2 {
		shingles = append(shingles, mix(p.Words))
	}
	for bit := range 64 {
		balance := 0
		for _, hash := range shingles {
			if hash>>bit&1 == 1 {
				balance++
			} else {
				balance--
			}
		}
		if balance > 0 {
			p.Near |= 1 << bit
		}
	}
	return p
}

// TestOfIsTheSimhashOfThePaper compares texts of all lengths, across the ends of the lanes.
func TestOfIsTheSimhashOfThePaper(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, n := range []int{0, 1, 2, 3, 4, 10, 255, 256, 257, 258, 510, 512, 513, 3000} {
		text := strings.Join(prose(random, n), " ")
		require.Equal(t, plain(text), of(text), "%d words", n)
	}
}

// TestDistanceIsAMetric checks all triples of some texts: the distance of a text to itself is zero,
// and distances are symmetric and satisfy the triangle inequality.
func TestDistanceIsAMetric(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	prints := []Print{{}, {Near: ^uint64(0)}}
	for range 30 {
		prints = append(prints, of(strings.Join(prose(random, 50), " ")))
	}
	for _, p := range prints {
		require.Zero(t, p.distance(p))
		for _, q := range prints {
			require.Equal(t, p.distance(q), q.distance(p))
			require.Equal(t, p.Changed(q), q.Changed(p))
			for _, r := range prints {
				require.LessOrEqual(t, p.distance(r), p.distance(q)+q.distance(r))
			}
		}
	}
}

// TestAdsAndCountersInAPage changes a counter, an advert and a paragraph in pages of the usual
// length. With a limit of 0.02, the counter must never matter, the paragraph nearly always, and an
// advert of two words hardly ever.
func TestAdsAndCountersInAPage(t *testing.T) {
	const pages = 200
	kinds := map[string][3]int{}
	for seed := range uint64(pages) {
		random := rand.New(rand.NewPCG(seed, 1))
		body := prose(random, 600)
		page := func(visits, advert string, body []string) Print {
			return of("Visit " + visits + " on 3 May. " + advert + " " + strings.Join(body, " "))
		}
		before := page("1204", "buy now", body)
		record := func(kind string, after Print) {
			counts := kinds[kind]
			switch changed := before.Changed(after); {
			case changed == 0:
				counts[0]++
			case changed <= 0.02:
				counts[1]++
			default:
				counts[2]++
			}
			kinds[kind] = counts
		}
		record("counter", page("99,000", "buy now", body))
		record("advert", page("1204", "save today", body))
		changed := append(prose(random, 150), body[150:]...)
		record("paragraph", page("1204", "buy now", changed))
	}
	require.Equal(t, [3]int{pages, 0, 0}, kinds["counter"])
	require.Greater(t, kinds["advert"][1], pages*19/20, "%v", kinds)
	require.Greater(t, kinds["paragraph"][2], pages*49/50, "%v", kinds)
}
