package replay

import "slices"

// edit is one line of a comparison. a and b are its old and new numbers, from 0.
type edit struct {
	kind Kind
	a, b int
}

// Bounds of a comparison. Beyond them the result is coarser, but still correct.
const (
	// maxEdits is how many lines may differ between two anchors. Time and memory grow with its
	// square, to some 4 MB.
	maxEdits = 1000

	// maxLines is how many lines of each version are compared.
	maxLines = 50_000
)

// diff compares two lists of lines. Lines that occur exactly once in both, in the same order, are
// anchors, as in Bram Cohen's patience diff. Between anchors, Myers' algorithm (1986) finds the
// shortest list of edits. If that is longer than maxEdits, all old lines count as removed and all
// new lines as added.
func diff(a, b []string) []edit {
	d := differ{ids: map[string]int{}}
	d.a, d.b = d.number(a), d.number(b)
	d.between(0, len(a), 0, len(b), true)
	return d.out
}

// differ is not safe for concurrent use.
type differ struct {
	ids  map[string]int
	a, b []int // IDs of the lines; equal lines have the same ID
	out  []edit
}

func (d *differ) number(lines []string) []int {
	list := make([]int, len(lines))
	for i, line := range lines {
		id, ok := d.ids[line]
		if !ok {
			id = len(d.ids)
			d.ids[line] = id
		}
		list[i] = id
	}
	return list
}

// between compares a part of a with a part of b. It skips the common prefix and suffix first. Most
// versions differ in few places, so the rest is small.
func (d *differ) between(a0, a1, b0, b1 int, anchored bool) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		d.out = append(d.out, edit{Kept, a0, b0})
		a0, b0 = a0+1, b0+1
	}
	tail := 0
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1, tail = a1-1, b1-1, tail+1
	}
	var anchors [][2]int
	if anchored && a0 < a1 && b0 < b1 {
		anchors = d.anchors(a0, a1, b0, b1)
	}
	for _, at := range anchors {
		// One level is enough: the parts between anchors are short, and further anchors in them
		// would be less reliable.
		d.between(a0, at[0], b0, at[1], false)
		d.out = append(d.out, edit{Kept, at[0], at[1]})
		a0, b0 = at[0]+1, at[1]+1
	}
	d.shortest(a0, a1, b0, b1)
	for i := range tail {
		d.out = append(d.out, edit{Kept, a1 + i, b1 + i})
	}
}

// anchors returns lines that occur exactly once in both parts: the longest list in the same order.
func (d *differ) anchors(a0, a1, b0, b1 int) [][2]int {
	type count struct{ inA, inB, atA, atB int }
	counts := map[int]*count{}
	for i := a0; i < a1; i++ {
		c := counts[d.a[i]]
		if c == nil {
			c = &count{}
			counts[d.a[i]] = c
		}
		c.inA++
		c.atA = i
	}
	for i := b0; i < b1; i++ {
		if c := counts[d.b[i]]; c != nil {
			c.inB++
			c.atB = i
		}
	}
	var pairs [][2]int
	for i := a0; i < a1; i++ {
		if c := counts[d.a[i]]; c.inA == 1 && c.inB == 1 {
			pairs = append(pairs, [2]int{i, c.atB})
		}
	}
	return longestRise(pairs)
}

// longestRise returns the longest subsequence of pairs whose second numbers increase, by patience
// sorting: each pair goes on the first pile whose top is not below it, and is linked to the top of
// the previous pile.
func longestRise(pairs [][2]int) [][2]int {
	var piles []int // the index of the pair on top of each
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(piles, p[1], func(top, b int) int {
			return pairs[top][1] - b
		})
		before[i] = -1
		if n > 0 {
			before[i] = piles[n-1]
		}
		if n < len(piles) {
			piles[n] = i
		} else {
			piles = append(piles, i)
		}
	}
	if len(piles) == 0 {
		return nil
	}
	var rise [][2]int
	for i := piles[len(piles)-1]; i >= 0; i = before[i] {
		rise = append(rise, pairs[i])
	}
	slices.Reverse(rise)
	return rise
}

// shortest appends the shortest list of edits, or the coarse one if that is too long.
func (d *differ) shortest(a0, a1, b0, b1 int) {
	a, b := d.a[a0:a1], d.b[b0:b1]
	steps, ok := myers(a, b)
	if !ok {
		for i := range a {
			d.out = append(d.out, edit{Removed, a0 + i, b0})
		}
		for i := range b {
			d.out = append(d.out, edit{Added, a1, b0 + i})
		}
		return
	}
	i, j := a0, b0
	for _, step := range steps {
		d.out = append(d.out, edit{step, i, j})
		if step != Added {
			i++
		}
		if step != Removed {
			j++
		}
	}
}

// myers returns the shortest list of steps from a to b, or false if it has more than maxEdits
// edits. For each number of edits it keeps how far they reach on every diagonal, to trace the steps
// back.
func myers(a, b []int) (steps []Kind, ok bool) {
	n, m := len(a), len(b)
	limit := min(n+m, maxEdits)
	reach := make([]int32, 2*limit+3)
	at := func(k int) int { return k + limit + 1 }
	var history [][]int32 // by the number of edits, with the diagonals that they can reach
	for edits := 0; edits <= limit; edits++ {
		for k := -edits; k <= edits; k += 2 {
			var x int
			if k == -edits || k != edits && reach[at(k-1)] < reach[at(k+1)] {
				x = int(reach[at(k+1)])
			} else {
				x = int(reach[at(k-1)]) + 1
			}
			for x < n && x-k < m && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			reach[at(k)] = int32(x)
			if x >= n && x-k >= m {
				return traceBack(history, n, m), true
			}
		}
		history = append(history, slices.Clone(reach[at(-edits):at(edits)+1]))
	}
	return nil, false
}

// traceBack follows the history from the end to the start. history[e] has the diagonals from -e to
// e after e edits.
func traceBack(history [][]int32, x, y int) (steps []Kind) {
	for edits := len(history); edits > 0; edits-- {
		reach := history[edits-1]
		far := func(k int) int32 {
			if i := k + edits - 1; i >= 0 && i < len(reach) {
				return reach[i]
			}
			return -1
		}
		k := x - y
		step, from := Removed, k-1
		if k == -edits || k != edits && far(k-1) < far(k+1) {
			step, from = Added, k+1
		}
		fromX := int(far(from))
		toX := fromX
		if step == Removed {
			toX++
		}
		for ; x > toX; x, y = x-1, y-1 {
			steps = append(steps, Kept)
		}
		steps = append(steps, step)
		x, y = fromX, fromX-from
	}
	for ; x > 0 && y > 0; x, y = x-1, y-1 {
		steps = append(steps, Kept)
	}
	slices.Reverse(steps)
	return steps
}
