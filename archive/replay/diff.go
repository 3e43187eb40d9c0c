package replay

import "slices"

// edit is one line of a comparison. a and b are its old and new numbers, from 0.
type edit struct {
	kind Kind
	a, b int
}

// Bounds of a comparison. Beyond them the result is coarser, but still correct.
const (
	// maxLevels is how often the parts between anchors are divided by anchors of their own: a hostile list
	// could show one more at each level.
	maxLevels = 5

	// maxLines is how many lines of each version are compared.
	maxLines = 50_000
)

// diff compares two lists of lines, as in Bram Cohen's patience diff. Lines that occur exactly once in
// both, in the same order, are anchors. They divide the lists into parts, in which other lines occur only
// once. In a part without an anchor, all old lines between the common lines at its ends count as removed,
// and all new ones as added, which come after them.
func diff(a, b []string) []edit {
	d := differ{ids: map[string]int{}}
	d.a, d.b = d.number(a), d.number(b)
	d.between(0, len(a), 0, len(b), maxLevels)
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
func (d *differ) between(a0, a1, b0, b1, levels int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		d.out = append(d.out, edit{Kept, a0, b0})
		a0, b0 = a0+1, b0+1
	}
	tail := 0
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1, tail = a1-1, b1-1, tail+1
	}
	var anchors [][2]int
	if levels > 0 && a0 < a1 && b0 < b1 {
		anchors = d.anchors(a0, a1, b0, b1)
	}
	for _, at := range anchors {
		d.between(a0, at[0], b0, at[1], levels-1)
		d.out = append(d.out, edit{Kept, at[0], at[1]})
		a0, b0 = at[0]+1, at[1]+1
	}
	if len(anchors) > 0 {
		d.between(a0, a1, b0, b1, levels-1)
	} else {
		d.replace(a0, a1, b0, b1)
	}
	for i := range tail {
		d.out = append(d.out, edit{Kept, a1 + i, b1 + i})
	}
}

// anchors returns lines that occur exactly once in both parts: the longest list in the same order. If there is
// none, lines that occur equally often in both will do, such as the cells of a table: each is paired with the one
// of the same turn.
func (d *differ) anchors(a0, a1, b0, b1 int) [][2]int {
	type places struct{ a, b []int }
	lines := map[int]*places{}
	for i := a0; i < a1; i++ {
		p := lines[d.a[i]]
		if p == nil {
			p = &places{}
			lines[d.a[i]] = p
		}
		p.a = append(p.a, i)
	}
	for i := b0; i < b1; i++ {
		if p := lines[d.b[i]]; p != nil {
			p.b = append(p.b, i)
		}
	}
	var once, repeated [][2]int
	for i := a0; i < a1; i++ {
		p := lines[d.a[i]]
		if len(p.a) != len(p.b) {
			continue
		}
		if len(p.a) == 1 {
			once = append(once, [2]int{i, p.b[0]})
		}
		turn, _ := slices.BinarySearch(p.a, i)
		repeated = append(repeated, [2]int{i, p.b[turn]})
	}
	if len(once) == 0 {
		return longestRise(repeated)
	}
	return longestRise(once)
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

// replace removes a part of a, and adds a part of b.
func (d *differ) replace(a0, a1, b0, b1 int) {
	for i := a0; i < a1; i++ {
		d.out = append(d.out, edit{Removed, i, b0})
	}
	for i := b0; i < b1; i++ {
		d.out = append(d.out, edit{Added, a1, i})
	}
}
