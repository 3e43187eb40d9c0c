package message

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarksAcceptEachMessageOnce(t *testing.T) {
	type step struct {
		epoch, number, base uint64
		want                bool
	}
	for name, steps := range map[string][]step{
		"in order": {{0, 1, 1, true}, {0, 2, 1, true}, {0, 3, 3, true}},
		"repeats are ignored": {
			{0, 1, 1, true}, {0, 1, 1, false}, {0, 2, 1, true}, {0, 1, 1, false}, {0, 2, 2, false},
		},
		"an early message is ignored until it is sent again": {
			{0, 1, 1, true}, {0, 3, 1, false}, {0, 2, 2, true}, {0, 3, 2, true},
		},
		"a new owner of a source starts at one": {
			{4, 1, 1, true}, {4, 2, 1, true}, {5, 1, 1, true}, {5, 2, 1, true},
		},
		"a former owner is ignored": {
			{4, 1, 1, true}, {5, 1, 1, true}, {4, 2, 1, false}, {4, 2, 2, false}, {5, 2, 2, true},
		},
		"a former owner is ignored without earlier messages": {{5, 1, 1, true}, {4, 1, 1, false}},
		"a new owner is not accepted at its second message": {
			{4, 1, 1, true}, {5, 2, 1, false}, {4, 2, 1, true}, {5, 1, 1, true}, {5, 2, 1, true},
		},
		"lost messages are skipped": {
			{0, 1, 1, true}, {0, 4, 4, true}, {0, 5, 4, true},
		},
		"messages to be sent again are not skipped": {
			{0, 1, 1, true}, {0, 5, 4, false}, {0, 4, 4, true}, {0, 5, 4, true},
		},
		"messages without a number are not accepted": {{0, 0, 0, false}, {9, 0, 0, false}, {0, 1, 1, true}},
	} {
		var m Marks
		for i, s := range steps {
			msg := Message{Epoch: s.epoch, Number: s.number, Base: s.base}
			require.Equal(t, s.want, m.Take(&msg), "%s: step %d", name, i+1)
		}
	}
}

func TestMarksCountWhatTheBrokerLost(t *testing.T) {
	var m Marks
	for _, number := range []uint64{1, 4, 5, 9} {
		m.Take(&Message{Number: number, Base: number})
	}
	require.EqualValues(t, 2+3, m.Lost())
}

// A wire is a source that repeats what was not acknowledged, and a broker that stores some
// messages, sometimes twice, and does not always acknowledge them.
type wire struct {
	r      *rand.Rand
	epoch  uint64
	acked  uint64
	total  uint64
	stream []Message
}

// send sends a window of messages, starting with the first unacknowledged one.
func (w *wire) send() {
	base, inOrder := w.acked+1, true
	for number := base; number < min(base+4, w.total+1); number++ {
		m := Message{From: Source{Fetch, 1}, Epoch: w.epoch, Number: number, Base: base}
		kept := w.r.IntN(4) > 0
		if kept {
			w.stream = append(w.stream, m)
		}
		if w.r.IntN(8) == 0 && len(w.stream) > 0 { // an old one arrives late
			w.stream = append(w.stream, w.stream[w.r.IntN(len(w.stream))])
		}
		if inOrder = inOrder && kept && w.r.IntN(4) > 0; inOrder {
			w.acked = number
		}
	}
}

// TestMarksAgainstALossyBroker tests the law that makes delivery exact: each message is taken once
// and in order, even if messages are late, repeated, or lost before they were acknowledged.
func TestMarksAgainstALossyBroker(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := wire{r: rand.New(rand.NewPCG(seed, 0)), total: 30, epoch: seed % 3}
			for w.acked < w.total {
				w.send()
			}
			var marks Marks
			var taken []uint64
			for i := range w.stream {
				if w.r.IntN(5) == 0 { // another owner continues with the marks
					again, err := DecodeMarks(string(marks.Append(nil)))
					require.NoError(t, err)
					marks = again
				}
				if marks.Take(&w.stream[i]) {
					taken = append(taken, w.stream[i].Number)
				}
			}
			for i, number := range taken {
				require.EqualValues(t, i+1, number)
			}
			require.Len(t, taken, int(w.total))
			require.Zero(t, marks.Lost())
		})
	}
}

func TestMarksReportTheProgressOfASource(t *testing.T) {
	var m Marks
	a, b := Source{Fetch, 1}, Source{Fetch, 2}
	for number := range uint64(3) {
		m.Take(&Message{From: a, Epoch: 5, Number: number + 1, Base: 1})
	}
	for _, is := range []struct {
		from          Source
		epoch, number uint64
		want          bool
	}{
		{a, 5, 3, true}, {a, 5, 2, true}, {a, 5, 4, false}, {a, 4, 99, true}, {a, 6, 1, false},
		{a, 6, 0, true}, {b, 0, 1, false}, {b, 0, 0, true},
	} {
		require.Equal(t, is.want, m.Reached(is.from, is.epoch, is.number), "%+v", is)
	}
}

func TestMarksOfOneOwnerDoNotChangeThoseOfItsCopy(t *testing.T) {
	var m Marks
	m.Take(&Message{Number: 1, Base: 1})
	c := m.Clone()
	m.Take(&Message{Number: 2, Base: 1})
	require.True(t, c.Take(&Message{Number: 2, Base: 1}))
}

func FuzzDecodeMarks(f *testing.F) {
	var m Marks
	m.Take(&Message{From: Source{Dedupe, 3}, Number: 1, Base: 1})
	m.Take(&Message{From: Source{Hosts, 300}, Epoch: 2, Number: 9, Base: 9})
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
