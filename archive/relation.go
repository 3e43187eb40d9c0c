package archive

// Relations is a set of Allen's relations (1983) between the validity [D, D+) of a version and the
// interval [From, To) of a [Query]. Any two intervals are in exactly one of the thirteen.
type Relations uint16

// The relations of a version to the interval, in the order in which a version can move over it, and
// sets of them that are often wanted.
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

	// Latest is the last version of each URL that was found within the interval: found then, and
	// valid until the interval's end or beyond. It is what snapshots are made of.
	Latest Relations = OverlappedBy | StartedBy | Finishes | Equal

	// Found is every version that was found within the interval.
	Found Relations = Latest | Starts | During

	// Valid is every version that was valid at some instant of the interval.
	Valid Relations = Found | Overlaps | FinishedBy | Contains
)

// relation returns the one relation of a version that is valid from start to end to the interval
// from low to high.
func relation(start, end, low, high int64) Relations {
	switch {
	case end < low:
		return Before
	case end == low:
		return Meets
	case start > high:
		return After
	case start == high:
		return MetBy
	}
	return inner[1+order(start, low)][1+order(end, high)]
}

// inner are the relations of intervals that share an instant, by the order of their beginnings and
// of their ends.
var inner = [3][3]Relations{
	{Overlaps, FinishedBy, Contains},
	{Starts, Equal, StartedBy},
	{During, Finishes, OverlappedBy},
}

// order is -1, 0 or 1, as an index into inner asks for.
func order(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
