// Package allen names the thirteen relations between two intervals of time of J. F. Allen,
// "Maintaining knowledge about temporal intervals" (1983). Any two intervals have exactly one:
//
//	allen.Of(9, 12, 10, 15) == allen.Overlaps
//
// A query of an archive selects versions by the relation of their validity to an interval:
//
//	archive.Query{From: monday, To: friday, Relations: allen.Valid}
package allen

import "cmp"

// Relations is a set of relations of an interval [D, D+), such as the validity of a version, to an
// interval [From, To).
type Relations uint16

// The relations, in their order as one interval moves past the other, and sets of them for common
// queries of an archive.
const (
	Before       Relations = 1 << iota // D+ < From
	Meets                              // D+ = From
	Overlaps                           // D < From < D+ < To
	Starts                             // D = From, D+ < To
	During                             // From < D, D+ < To
	Finishes                           // From < D, D+ = To
	Equal                              // D = From, D+ = To
	FinishedBy                         // D < From, D+ = To
	Contains                           // D < From, To < D+
	StartedBy                          // D = From, To < D+
	OverlappedBy                       // From < D < To < D+
	MetBy                              // D = To
	After                              // To < D

	// Latest selects the last version of each URL that was found within the interval, which is
	// still valid at the end. Snapshots select these by default.
	Latest Relations = OverlappedBy | StartedBy | Finishes | Equal

	// Found selects every version that was found within the interval.
	Found Relations = Latest | Starts | During

	// Valid selects every version that was valid at some instant of the interval.
	Valid Relations = Found | Overlaps | FinishedBy | Contains
)

// Of returns the relation of the interval [start, end) to the interval [low, high), which may not be empty.
// An empty [start, end) is within the other if its start is: of several versions of an instant, only the last
// is valid for longer, but all were found.
func Of(start, end, low, high int64) Relations {
	switch {
	case end < low:
		return Before
	case end == low && start < low:
		return Meets
	case start > high:
		return After
	case start == high:
		return MetBy
	}
	return inner[1+cmp.Compare(start, low)][1+cmp.Compare(end, high)]
}

// inner has the relations of intervals that share an instant, by the order of their starts and of
// their ends.
var inner = [3][3]Relations{
	{Overlaps, FinishedBy, Contains},
	{Starts, Equal, StartedBy},
	{During, Finishes, OverlappedBy},
}
