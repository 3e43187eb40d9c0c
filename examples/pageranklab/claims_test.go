package main

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scored is a score with the same value in all parts of A.
func scored(top, sum, error float64) *score {
	return &score{top: [nTops]float64{top, top, top}, sum: sum, error: error}
}

// satisfied returns a result for which all claims hold.
func satisfied() *result {
	return &result{
		scores: map[string]*score{
			nameBF: scored(.3, .3, .6), nameBLC: scored(.4, .4, .5), namePR: scored(.45, .45, .45),
			nameDL1: scored(.5, .5, .4), namePL: scored(.6, .6, .3), nameVR: scored(.51, .51, .39),
			nameAR: scored(.52, .52, .38), namePush: scored(.55, .56, .3), nameOracle: scored(.9, .8, .1),
		},
		updates: map[string]float64{nameDL1: 10, namePL: 90, nameVR: 10, nameAR: 11, namePush: 12},
	}
}

func verdicts(claims []claim) (held []bool) {
	for _, c := range claims {
		held = append(held, c.holds)
	}
	return held
}

func TestClaimsOfThePaper(t *testing.T) {
	r := satisfied()
	require.Equal(t, []bool{true, true, true, true, true}, verdicts(r.paperClaims()))
	for _, tt := range []struct {
		name   string
		change func(r *result)
		fails  int // which of the claims
	}{
		{"BF has the better top", func(r *result) { r.scores[nameBF].top[1] = .6 }, 0},
		{"BLC has the better order", func(r *result) { r.scores[nameBLC].error = .39 }, 1},
		{"PR collects more", func(r *result) { r.scores[namePR].sum = .55 }, 2},
		{"PR is as good", func(r *result) { r.scores[namePR].sum = .5 }, 2},
		{"VR gains nothing", func(r *result) { r.scores[nameVR].sum = .5 }, 3},
		{"AR costs much", func(r *result) { r.updates[nameAR] = 15 }, 4},
		{"PL costs little", func(r *result) { r.updates[namePL] = 22 }, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := satisfied()
			tt.change(r)
			want := []bool{true, true, true, true, true}
			want[tt.fails] = false
			require.Equal(t, want, verdicts(r.paperClaims()))
		})
	}
}

func TestClaimsOnSpeed(t *testing.T) {
	r := satisfied()
	require.Empty(t, r.speedClaims(), "nothing was measured")
	r.paces = []pace{{name: nameDL1, pages: 6e6}, {name: namePR, pages: 2e6}}
	r.growth = [10]float64{1: 10, 8: 14}
	require.Equal(t, []bool{true, true}, verdicts(r.speedClaims()))
	require.Contains(t, r.speedClaims()[0].seen, "PR 1/3 of it")
	r.paces[1].pages = 4e6
	r.growth[8] = 16
	require.Equal(t, []bool{false, false}, verdicts(r.speedClaims()))
}

func TestOurClaims(t *testing.T) {
	r := satisfied()
	r.bound = bound{mass: .5, trueMass: .9, half: .4, halfTrue: .8, refinedMass: .7}
	all := []bool{true, true, true, true, true, true}
	require.Equal(t, all, verdicts(r.ownClaims()))
	for _, tt := range []struct {
		name   string
		change func(r *result)
		fails  int
	}{
		{"a seventh of the gap", func(r *result) { r.scores[namePush].sum = .5 + .3/7 }, 0},
		{"AR has the better order", func(r *result) { r.scores[nameAR].error = .29 }, 1},
		{"PR has the better order", func(r *result) { r.scores[namePR].error = .29 }, 1},
		{"AR has the better top", func(r *result) { r.scores[nameAR].top[0] = .556 }, 2},
		{"too expensive", func(r *result) { r.updates[namePush] = 15.1 }, 3},
		{"a larger error than stated", func(r *result) { r.bound.broken = true }, 4},
		{"less mass than stated", func(r *result) { r.bound.mass = .91 }, 5},
		{"less mass than stated halfway", func(r *result) { r.bound.half = .81 }, 5},
		{"less mass than stated when refined", func(r *result) { r.bound.refinedMass = .81 }, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := satisfied()
			r.bound = bound{mass: .5, trueMass: .9, half: .4, halfTrue: .8, refinedMass: .7}
			tt.change(r)
			want := append([]bool(nil), all...)
			want[tt.fails] = false
			require.Equal(t, want, verdicts(r.ownClaims()))
		})
	}
	within := satisfied()
	within.scores[nameAR].top[0] = .554
	require.True(t, within.ownClaims()[2].holds, "0.005 is tolerated")
}

func TestVerdictsShowTheFigures(t *testing.T) {
	a, b := scored(.5, .5, .5), scored(.4, .6, .4)
	require.Equal(t, "in A 0.1 %, A 1 %, A 10 %", listed(betterIn(a, b, 0)))
	require.Equal(t, "in B, C", listed(betterIn(b, a, 0)))
	require.Equal(t, "in none", listed(betterIn(a, a, 0)))
	require.Len(t, betterIn(a, a, .001), len(criteria))
	held, broken := claim{holds: true}, claim{}
	require.Equal(t, "holds", held.verdict())
	require.Equal(t, "does not hold", broken.verdict())
}

func TestScoresAreSummedUp(t *testing.T) {
	s := &score{top: [nTops]float64{.3, .6, .9}, sum: .5, error: .25}
	require.InDelta(t, .6+.5-.25, s.all(), 1e-12)
}

// TestEarlyPlacesWeighMore checks criterion C: the same mistake is worse early than late.
func TestEarlyPlacesWeighMore(t *testing.T) {
	n := 100
	tr := &truth{rank: make([]float64, n), order: make([]uint32, n)}
	right := make([]uint32, n)
	for i := range n {
		tr.rank[i], tr.order[i], right[i] = 1/float64(n), uint32(i), uint32(i)
	}
	before := math.Inf(1)
	for at := 0; at+1 < n; at += 7 {
		swapped := append([]uint32(nil), right...)
		swapped[at], swapped[at+1] = swapped[at+1], swapped[at]
		off := tr.orderError(swapped)
		require.Less(t, off, before, "place %d", at)
		before = off
	}
	require.Zero(t, tr.orderError(right))
}

func TestFiguresMatchThePaper(t *testing.T) {
	r := satisfied()
	r.web = &web{name: "test"}
	for _, name := range []string{nameOPIC, "AR 1/2, d=.85"} {
		r.scores[name] = scored(.1, .1, .1)
	}
	r.names = []string{nameBF, nameDL1}
	files := r.figures()
	require.Len(t, files, 6, "Figures 4 to 9; Figure 10 was not measured")
	r.paces = []pace{{name: nameDL1, pages: 6e6, scoring: 7e6}}
	require.Contains(t, r.figures(), "figure10.svg")
	for name, draw := range files {
		var out strings.Builder
		require.NoError(t, draw(&out))
		require.Contains(t, out.String(), "test", "%s names the graph", name)
		require.Contains(t, out.String(), "</svg>", name)
	}
}
