package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// apply requires that edits turn a into b.
func apply(t testing.TB, a, b []string, edits []edit) {
	t.Helper()
	i, j := 0, 0
	for _, e := range edits {
		switch e.kind {
		case Kept:
			require.Equal(t, [2]int{i, j}, [2]int{e.a, e.b})
			require.Equal(t, a[i], b[j])
			i, j = i+1, j+1
		case Removed:
			require.Equal(t, i, e.a)
			i++
		case Added:
			require.Equal(t, j, e.b)
			j++
		}
	}
	require.Equal(t, [2]int{len(a), len(b)}, [2]int{i, j})
}

func TestDiffTurnsOneIntoTheOther(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var a []string
		for range random.IntN(60) {
			a = append(a, fmt.Sprint(random.IntN(40)))
		}
		b := slices.Clone(a)
		for range random.IntN(10) {
			at := random.IntN(len(b) + 1)
			if random.IntN(2) == 0 && at < len(b) {
				b = slices.Delete(b, at, at+1)
			} else {
				b = slices.Insert(b, at, fmt.Sprint(random.IntN(50)))
			}
		}
		apply(t, a, b, diff(a, b))
	}
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct{ name, a, b, want string }{
		{"empty", "", "", ""},
		{"the same", "a b", "a b", "=a =b"},
		{"all added", "", "a b", "+a +b"},
		{"all removed", "a b", "", "-a -b"},
		{"a change", "a b c", "a x c", "=a -b +x =c"},
		{"one of several results", "x a y b", "a x b y", "+a =x -a +b =y -b"},
		{"repeated lines between anchors", "f { x } g { y }", "f { x } h { z } g { y }",
			"=f ={ =x =} +h +{ +z +} =g ={ =y =}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := strings.Fields(tt.a), strings.Fields(tt.b)
			edits := diff(a, b)
			apply(t, a, b, edits)
			var got []string
			for _, e := range edits {
				switch e.kind {
				case Kept:
					got = append(got, "="+a[e.a])
				case Removed:
					got = append(got, "-"+a[e.a])
				case Added:
					got = append(got, "+"+b[e.b])
				}
			}
			require.Equal(t, len(strings.Fields(tt.want)), len(got), "%v", got)
			if tt.name != "one of several results" {
				require.Equal(t, tt.want, strings.Join(got, " "))
			}
		})
	}
}

// Without anchors, the comparison is coarse but correct.
func TestDiffIsBounded(t *testing.T) {
	var a, b []string
	for i := range 3000 {
		a = append(a, fmt.Sprint("a", i%70))
		b = append(b, fmt.Sprint("b", i%70))
	}
	a, b = append(a, "last"), append(b, "last")
	edits := diff(a, b)
	apply(t, a, b, edits)
	require.Equal(t, Removed, edits[0].kind)
	require.Equal(t, Kept, edits[len(edits)-1].kind)
}

// Each part shows one more anchor, as a hostile page may arrange it. The comparison ends, and is correct.
func TestDiffOfNestedAnchors(t *testing.T) {
	a, b := []string{"old"}, []string{"new"}
	for i := range maxLines / 2 {
		for _, line := range []string{fmt.Sprint(i), fmt.Sprint(i - 1)} {
			a, b = append(a, line), append(b, line)
		}
	}
	a, b = append(a, "of a"), append(b, "of b")
	edits := diff(a, b)
	apply(t, a, b, edits)
	kept := 0
	for _, e := range edits {
		if e.kind == Kept {
			kept++
		}
	}
	require.GreaterOrEqual(t, kept, maxLevels)
}

func FuzzDiffTurnsOneIntoTheOther(f *testing.F) {
	f.Add("a\nb\nc", "a\nx\nc")
	f.Fuzz(func(t *testing.T, a, b string) {
		from, to := strings.Split(a, "\n"), strings.Split(b, "\n")
		apply(t, from, to, diff(from, to))
	})
}

func TestDifferingPartsOfALine(t *testing.T) {
	for _, tt := range []struct{ name, line, other, want string }{
		{"in the middle", "one two three", "one 2 three", "one |two| three"},
		{"at the start", "xx the end of it", "the end of it", "|xx |the end of it"},
		{"at the end", "the start of it xx", "the start of it", "the start of it| xx|"},
		{"nothing in common", "abc", "xyz", "abc||"},
		{"no other line", "abc", "", "abc||"},
		{"characters are not split", "aaaa é bbbb", "aaaa è bbbb", "aaaa |é| bbbb"},
		{"words are not split", "the second page of", "the third page of", "the |second| page of"},
		{"repeated words", "a a a a", "a a", "a a| a a|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, mid, after := differing(tt.line, tt.other)
			require.Equal(t, tt.want, before+"|"+mid+"|"+after)
		})
	}
}

func TestVisibleText(t *testing.T) {
	for _, tt := range []struct{ name, page, want string }{
		{"blocks are lines", "<p>a<div>b</div>c<br>d", "a\nb\nc\nd"},
		{"inline elements are not", "a<b>b</b> <i>c</i>", "ab c"},
		{"spaces are collapsed", "<p> a \n\t b&nbsp;c </p>", "a b c"},
		{"entities are decoded", "&lt;p&gt; &eacute;", "<p> é"},
		{"no scripts and styles", "a<script>b</script><style>c</style><noscript>d</noscript>e",
			"ade"},
		{"no comments", "a<!-- b -->c", "ac"},
		{"images have alternative texts", `a<img src=x alt="a dog">`, "a [a dog]"},
		{"a title is a line", "<title>a</title>b", "a\nb"},
		{"cells are lines", "<tr><td>a<td>b", "a\nb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, strings.Join(visibleText([]byte(tt.page)), "\n"))
		})
	}
}

func TestSourceLines(t *testing.T) {
	require.Equal(t, []string{"a", "", "b"}, sourceLines("a\r\n\nb"))
	require.Empty(t, sourceLines(""))
	long := strings.Repeat("<p>some words</p>", 100)
	lines := sourceLines(long)
	require.Equal(t, long, strings.ReplaceAll(strings.Join(lines, ""), goesOn, ""))
	require.Greater(t, len(lines), 100)
	plain := strings.Repeat("x", 1000)
	require.Equal(t, []string{plain}, sourceLines(plain))
}

// TestDiffOfRepeatedLines: cells of a table repeat each other, and two of them change.
func TestDiffOfRepeatedLines(t *testing.T) {
	var a []string
	for i := range 1000 {
		a = append(a, fmt.Sprint("cell ", i%10))
	}
	b := slices.Clone(a)
	b[10], b[990] = "one", "two"
	counts := map[Kind]int{}
	for _, e := range diff(a, b) {
		counts[e.kind]++
	}
	require.Equal(t, map[Kind]int{Kept: 998, Removed: 2, Added: 2}, counts)
}
