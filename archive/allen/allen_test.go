package allen_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/allen"
)

// relations are the thirteen relations by name.
var relations = map[string]allen.Relations{
	"before": allen.Before, "meets": allen.Meets, "overlaps": allen.Overlaps,
	"starts": allen.Starts, "during": allen.During, "finishes": allen.Finishes,
	"equal": allen.Equal, "finished by": allen.FinishedBy, "contains": allen.Contains,
	"started by": allen.StartedBy, "overlapped by": allen.OverlappedBy, "met by": allen.MetBy,
	"after": allen.After,
}

// related reports whether [a,b) has a relation to [c,d), by Allen's definitions.
func related(name string, a, b, c, d int64) bool {
	switch name {
	case "before":
		return b < c
	case "meets":
		return b == c
	case "overlaps":
		return a < c && b > c && b < d
	case "starts":
		return a == c && b < d
	case "during":
		return a > c && b < d
	case "finishes":
		return a > c && a < d && b == d
	case "equal":
		return a == c && b == d
	case "finished by":
		return a < c && b == d
	case "contains":
		return a < c && b > d
	case "started by":
		return a == c && b > d
	case "overlapped by":
		return a > c && a < d && b > d
	case "met by":
		return a == d
	}
	return a > d
}

func TestThirteenRelations(t *testing.T) {
	require.Len(t, relations, 13)
	for a := range int64(7) {
		for b := a + 1; b < 8; b++ {
			for c := range int64(7) {
				for d := c + 1; d < 8; d++ {
					for name, want := range relations {
						got := allen.Of(a, b, c, d)
						require.Equal(t, related(name, a, b, c, d), got == want,
							"%s [%d,%d) [%d,%d)", name, a, b, c, d)
					}
				}
			}
		}
	}
}

// An empty interval has been found within another one exactly if it starts there.
func TestEmptyIntervals(t *testing.T) {
	for at := range int64(7) {
		found := allen.Of(at, at, 2, 5)&allen.Found != 0
		require.Equal(t, 2 <= at && at < 5, found, "%d", at)
	}
}

func Example() {
	fmt.Println(allen.Of(9, 12, 10, 15) == allen.Overlaps, allen.Of(9, 12, 10, 15)&allen.Found != 0)
	// Output: true false
}
