package scan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/scan"
)

// ledger records when workers were busy.
type ledger struct {
	mu    sync.Mutex
	spans [][2]time.Time // of one document each
	ends  []time.Time    // of documents
}

func (l *ledger) note(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, [2]time.Time{began, time.Now()})
	l.ends = append(l.ends, time.Now())
}

// share returns the fraction of time that workers were busy, until a given part of the documents
// was done.
func (l *ledger) share(workers int, began time.Time, part float64) float64 {
	slices.SortFunc(l.ends, time.Time.Compare)
	until := l.ends[int(float64(len(l.ends)-1)*part)]
	var busy time.Duration
	for _, s := range l.spans {
		end := s[1]
		if end.After(until) {
			end = until
		}
		busy += max(0, end.Sub(s[0]))
	}
	return float64(busy) / float64(until.Sub(began)) / float64(workers)
}

// costs returns the durations of documents. Long ones are adjacent, like the pages of one site,
// which defeats a static assignment.
func costs(r *rand.Rand, n int) (list []time.Duration) {
	for i := range n {
		base := 5 + 40*(i/100%2)
		list = append(list, time.Duration(base+r.IntN(20))*time.Millisecond)
	}
	return list
}

// reading is how long the dispatcher takes to find and read a document.
const reading = time.Millisecond

// The claim of Figure 2 in the paper, with fake time: workers that receive the next document before
// they have finished the last one are busy until the last 2% of the work. Workers with equal parts
// assigned in advance are not.
func TestWorkersAreBusyUntilTheEnd(t *testing.T) {
	for _, workers := range []int{2, 4, 8} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("workers=%d/seed=%d", workers, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					list := costs(rand.New(rand.NewPCG(seed, 0)), 1000)
					pipelined := runShared(t, list, scan.Options{Workers: workers, Depth: 2})
					require.GreaterOrEqual(t, pipelined, 0.95)
					waiting := runShared(t, list, scan.Options{Workers: workers, Depth: 1})
					require.GreaterOrEqual(t, pipelined+0.01, waiting)
					require.Less(t, runStatic(t, list, workers), 0.95)
				})
			})
		}
	}
}

func timed(list []time.Duration, l *ledger) scan.Work {
	return scan.Func(func(doc *scan.Document) ([]byte, error) {
		defer l.note(time.Now())
		n, err := strconv.Atoi(string(doc.Data))
		time.Sleep(list[n])
		return nil, err
	})
}

func runShared(t *testing.T, list []time.Duration, o scan.Options) float64 {
	docs := func(yield func(scan.Document, error) bool) {
		for doc := range numbered(len(list)) {
			time.Sleep(reading)
			if !yield(doc, nil) {
				return
			}
		}
	}
	l, began := &ledger{}, time.Now()
	got, err := collect(t, scan.Run(t.Context(), docs, timed(list, l), o))
	require.NoError(t, err)
	require.Len(t, got, len(list))
	return l.share(o.Workers, began, 0.98)
}

// runStatic gives each worker its part in advance, without the time for reading.
func runStatic(t *testing.T, list []time.Duration, workers int) float64 {
	l, began := &ledger{}, time.Now()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := len(list) * w / workers; i < len(list)*(w+1)/workers; i++ {
				start := time.Now()
				time.Sleep(list[i])
				l.note(start)
			}
		})
	}
	all.Wait()
	require.Len(t, l.ends, len(list))
	return l.share(workers, began, 0.98)
}
