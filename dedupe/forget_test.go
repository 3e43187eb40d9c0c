package dedupe_test

import (
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
)

// operations is how many URLs TestNothingIsForgotten adds to each filter. SPINNERET_OPS=1e8 takes
// about ten minutes and 1.2 GB of memory.
func operations(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SPINNERET_OPS")
	if text == "" {
		return 60_000
	}
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err, "SPINNERET_OPS")
	return int(n)
}

// A witness records all calls of a filter. URLs are numbers.
type witness struct {
	horizon    int     // calls after which a URL may be forgotten; 0 for never
	last       []int32 // latest call with each URL, counted from 1; 0 if there was none
	now        int32
	news, lost int // new URLs, and those of them that were reported as known
}

// check compares an answer of the filter with the promises.
func (w *witness) check(t *testing.T, n int, added bool) {
	w.now++
	last := w.last[n]
	switch {
	case last == 0:
		w.news++
		if !added {
			w.lost++
		}
	case added && (w.horizon == 0 || int(w.now-last) <= w.horizon):
		t.Fatalf("URL %d was added at %d and forgotten at %d", n, last, w.now)
	}
	w.last[n] = w.now
}

// TestNothingIsForgotten adds URLs through growth, rotation, writing and
// loading. A known URL must never be reported as new again; a filter that rotates must remember it
// for the promised number of URLs. Conversely, new URLs must be reported as new, all but a share of
// Rate.
func TestNothingIsForgotten(t *testing.T) {
	for name, opts := range map[string]dedupe.Options{
		"grows":   {Capacity: 20_000, Rate: 0.01, Recent: 500},
		"shards":  {Capacity: 1 << 17, Rate: 0.001},
		"no list": {Capacity: 5000, Recent: -1},
		"rotates": {Capacity: 5000, Rate: 0.001, Recent: 300, Generations: 3},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 0))
			total := operations(t)
			w := &witness{last: make([]int32, total/4+1)}
			window := len(w.last)
			if opts.Generations > 0 {
				w.horizon = opts.Capacity
				window = min(3*opts.Capacity, window) // so that URLs return in time, or too late
			}
			f := dedupe.New(opts)
			rate := f.Stats().Error
			for int(w.now) < total {
				first := int(float64(w.now) / float64(total) * float64(len(w.last)-window))
				addSome(t, f, w, random, first, window)
				if random.IntN(total/250/10+1) == 0 {
					f = reloaded(t, f, opts)
				}
				rate = max(rate, f.Stats().Error)
			}
			require.LessOrEqual(t, float64(w.lost), 1.1*rate*float64(w.news)+10)
		})
	}
}

// addSome adds up to 500 URLs of a window, one by one.
func addSome(t *testing.T, f *dedupe.Filter, w *witness, random *rand.Rand, first, window int) {
	for range 1 + random.IntN(500) {
		number := first + random.IntN(window)
		w.check(t, number, f.Add("https://a.test/"+strconv.Itoa(number)))
	}
}

// reloaded writes and reads a filter through a pipe, to avoid a third copy in memory.
func reloaded(t *testing.T, f *dedupe.Filter, o dedupe.Options) *dedupe.Filter {
	t.Helper()
	from, to := io.Pipe()
	go func() {
		_, err := f.WriteTo(to)
		to.CloseWithError(err)
	}()
	g, err := dedupe.Read(from, o)
	require.NoError(t, err)
	return g
}
