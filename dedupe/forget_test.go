package dedupe_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
)

// operations is how many URLs TestNothingIsForgotten adds to each filter. SPINNERET_OPS=1e8 takes
// some minutes.
func operations(t *testing.T) int {
	t.Helper()
	n, err := strconv.ParseFloat(os.Getenv("SPINNERET_OPS"), 64)
	if err != nil {
		return 60_000
	}
	return int(n)
}

// TestNothingIsForgotten adds URLs one by one and in batches, through growth, writing and loading.
// A URL that was met must never be new again. Its second half is that new ones are told as such,
// all but a share of Rate, whatever was done to the filter.
func TestNothingIsForgotten(t *testing.T) {
	for name, opts := range map[string]dedupe.Options{
		"grows":   {Capacity: 20_000, Rate: 0.01, Recent: 500},
		"shards":  {Capacity: 1 << 17, Rate: 0.001},
		"no list": {Capacity: 5000, Recent: -1},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 0))
			total := operations(t)
			met := make([]bool, total/4+1)
			f := dedupe.New(opts)
			news, lost := 0, 0
			check := func(n int, added bool) {
				switch {
				case added && met[n]:
					t.Fatalf("URL %d was forgotten", n)
				case !met[n]:
					news++
					if !added {
						lost++
					}
				}
				met[n] = true
			}
			var batch []string
			var numbers []int
			var added []bool
			for done := 0; done < total; {
				numbers, batch = numbers[:0], batch[:0]
				for range 1 + random.IntN(500) {
					n := random.IntN(len(met))
					numbers = append(numbers, n)
					batch = append(batch, fmt.Sprintf("https://a.test/%d", n))
				}
				done += len(batch)
				if random.IntN(2) == 0 {
					added = f.AddBatch(added[:0], batch)
				} else {
					added = added[:0]
					for _, url := range batch {
						added = append(added, f.Add(url))
					}
				}
				for i, n := range numbers {
					check(n, added[i])
				}
				if random.IntN(total/250/10+1) == 0 {
					f = reloaded(t, f)
				}
			}
			require.LessOrEqual(t, float64(lost), 1.1*opts.Rate*float64(news)+0.001*float64(news))
		})
	}
}

func reloaded(t *testing.T, f *dedupe.Filter) *dedupe.Filter {
	t.Helper()
	var file bytes.Buffer
	_, err := f.WriteTo(&file)
	require.NoError(t, err)
	g, err := dedupe.Load(&file)
	require.NoError(t, err)
	return g
}
