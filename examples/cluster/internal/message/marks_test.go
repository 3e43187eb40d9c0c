package message

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarksAcceptEachItemOnce(t *testing.T) {
	type step struct {
		first    uint64
		n        int
		head     bool
		accepted int
	}
	for name, steps := range map[string][]step{
		"in order":               {{1, 2, true, 2}, {3, 1, false, 1}, {4, 5, true, 5}},
		"repeats are skipped":    {{1, 3, true, 3}, {1, 3, true, 0}, {2, 1, false, 0}, {4, 1, true, 1}},
		"another cut is skipped": {{1, 3, true, 3}, {2, 5, true, 3}, {1, 8, true, 2}},
		"an early parcel is ignored until it is sent again": {
			{1, 1, true, 1}, {3, 2, false, 0}, {2, 1, true, 1}, {3, 2, false, 2},
		},
		"lost items are skipped":              {{1, 1, true, 1}, {4, 2, true, 2}, {6, 1, false, 1}},
		"items to be sent again are awaited":  {{1, 1, true, 1}, {5, 1, false, 0}, {4, 1, true, 1}, {5, 1, false, 1}},
		"a partition has numbers":             {{0, 3, true, 0}, {1, 1, true, 1}},
		"an empty parcel is of no importance": {{1, 0, true, 0}, {1, 1, true, 1}},
	} {
		var m Marks
		for i, s := range steps {
			skip := m.Take(Parcel{From: Source{Hosts, 1}, First: s.first, Head: s.head}, s.n)
			require.Equal(t, s.accepted, s.n-skip, "%s: step %d", name, i+1)
		}
	}
	var m Marks
	for range 2 {
		require.Zero(t, m.Take(Parcel{}, 7), "seeds are always accepted")
	}
}

func TestMarksCountWhatTheBrokerLost(t *testing.T) {
	var m Marks
	for _, first := range []uint64{1, 4, 5, 9} {
		p := Parcel{From: Source{Hosts, 1}, First: first, Head: true}
		require.Equal(t, first == 4 || first == 9, m.Gap(p))
		m.Take(p, 1)
	}
	require.EqualValues(t, 2+3, m.Lost())
	require.EqualValues(t, 9, m.Last(Source{Hosts, 1}))
	c := m.Clone()
	m.Take(Parcel{From: Source{Hosts, 1}, First: 10}, 1)
	require.EqualValues(t, 9, c.Last(Source{Hosts, 1}), "a copy does not change")
}

// A wire is a source that repeats what was not acknowledged, and a broker that stores some
// messages, sometimes twice, and does not always acknowledge them.
type wire struct {
	r      *rand.Rand
	acked  uint64
	total  uint64
	stream []Parcel
}

// send sends a window of parcels, starting with the first unacknowledged item. They are cut
// differently each time, as by another owner.
func (w *wire) send() {
	inOrder := true
	for first := w.acked + 1; first <= min(w.acked+8, w.total); {
		n := 1 + w.r.Uint64N(min(4, w.total-first+1))
		p := Parcel{From: Source{Fetch, 1}, First: first, Head: first == w.acked+1, Items: make([]Item, n)}
		kept := w.r.IntN(4) > 0
		if kept {
			w.stream = append(w.stream, p)
		}
		if w.r.IntN(8) == 0 && len(w.stream) > 0 { // an old one arrives late
			w.stream = append(w.stream, w.stream[w.r.IntN(len(w.stream))])
		}
		if inOrder = inOrder && kept && w.r.IntN(4) > 0; inOrder {
			w.acked += n
			return // the next window begins behind it
		}
		first += n
	}
}

// TestMarksAgainstALossyBroker tests the law that makes delivery exact: each item is taken once and
// in order, even if parcels are late, repeated, cut otherwise, or lost before they were acknowledged.
func TestMarksAgainstALossyBroker(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := wire{r: rand.New(rand.NewPCG(seed, 0)), total: 40}
			for w.acked < w.total {
				w.send()
			}
			var marks Marks
			next := uint64(1)
			for _, p := range w.stream {
				if w.r.IntN(5) == 0 { // another owner continues with the marks
					again, err := DecodeMarks(string(marks.Append(nil)))
					require.NoError(t, err)
					marks = again
				}
				for i := marks.Take(p, len(p.Items)); i < len(p.Items); i++ {
					require.Equal(t, next, p.First+uint64(i))
					next++
				}
			}
			require.Equal(t, w.total+1, next)
			require.Zero(t, marks.Lost())
		})
	}
}

func FuzzDecodeMarks(f *testing.F) {
	var m Marks
	m.Take(Parcel{From: Source{Dedupe, 3}, First: 1}, 1)
	m.Take(Parcel{From: Source{Hosts, 300}, First: 9, Head: true}, 3)
	f.Add(m.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMarks(string(data))
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		again, err := DecodeMarks(string(m.Append(nil)))
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}
