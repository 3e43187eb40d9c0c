package scan_test

import (
	"errors"
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

// fate is the effect of a document on its worker.
type fate int

const (
	harmless fate = iota
	slow
	failing   // the worker reports an error
	unlucky   // kills its first worker
	poisonous // kills every worker
	hanging   // blocks every worker forever
	fates
)

// fatal is the number of workers that each fate kills.
var fatal = map[fate]int64{unlucky: 1, poisonous: 2, hanging: 2}

// zoo is a list of documents with their fates, and the work that enacts them.
type zoo struct {
	fates   []fate
	release chan struct{} // ends hanging workers after the scan

	mu   sync.Mutex
	seen []int // how often each document was sent to a worker
}

var errFate = errors.New("cannot be analyzed")

func (z *zoo) work(doc *scan.Document) ([]byte, error) {
	n, err := strconv.Atoi(string(doc.Data))
	if err != nil {
		return nil, err
	}
	z.mu.Lock()
	z.seen[n]++
	first := z.seen[n] == 1
	z.mu.Unlock()
	switch f := z.fates[n]; {
	case f == slow:
		time.Sleep(700 * time.Millisecond) // less than the timeout
	case f == failing:
		return nil, errFate
	case f == poisonous, f == unlucky && first:
		panic("poison")
	case f == hanging:
		<-z.release
		return nil, errFate
	}
	return double(doc)
}

// newZoo returns n documents, most of them harmless. Deadly ones are spread out, because a scan
// ends after many deaths in a row.
func newZoo(r *rand.Rand, n int) *zoo {
	z := &zoo{release: make(chan struct{}), seen: make([]int, n)}
	for i := range n {
		f := harmless
		if i%3 == 2 {
			f = fate(r.IntN(int(fates)))
		}
		z.fates = append(z.fates, f)
	}
	return z
}

// Whatever documents do, each has exactly one correct result. Each death is counted, and harmless
// documents of dead workers are sent again.
func TestRandomDocuments(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				z := newZoo(r, 1+r.IntN(120))
				var stats scan.Stats
				o := scan.Options{Workers: 1 + r.IntN(5), Depth: 1 + r.IntN(4),
					Timeout: time.Second, RestartAfter: r.IntN(3) * 7, Ordered: r.IntN(2) == 0,
					Progress: func(s scan.Stats) { stats = s }}
				var order []int64
				got := map[int]scan.Result{}
				for result, err := range scan.Run(t.Context(), numbered(len(z.fates)),
					scan.Func(z.work), o) {
					require.NoError(t, err)
					order = append(order, result.Number)
					got[int(result.Number)] = result
				}
				close(z.release)
				time.Sleep(time.Minute) // workers that still run must have no effect
				require.Len(t, order, len(z.fates), "%+v", o)
				if o.Ordered {
					require.True(t, slices.IsSorted(order))
				}
				requireFates(t, z, got, stats)
			})
		})
	}
}

func requireFates(t *testing.T, z *zoo, got map[int]scan.Result, stats scan.Stats) {
	t.Helper()
	z.mu.Lock()
	defer z.mu.Unlock()
	want := scan.Stats{Results: int64(len(z.fates))}
	for n, f := range z.fates {
		want.Deaths += fatal[f]
		switch err := got[n].Err; f {
		case poisonous, hanging:
			want.Failed++
			require.ErrorIs(t, err, scan.ErrSkipped, "document %d", n)
			require.Equal(t, 2, z.seen[n], "it was retried exactly once")
		case failing:
			want.Failed++
			require.ErrorIs(t, err, scan.ErrFailed)
			require.ErrorIs(t, err, errFate)
		default:
			require.NoError(t, err, "document %d", n)
			require.Equal(t, strconv.Itoa(2*n), string(got[n].Out))
		}
		require.Positive(t, z.seen[n])
	}
	require.Equal(t, want, stats)
}

// Documents are read while a worker works, so that it waits for the first one only.
func TestReadingKeepsWorkersBusy(t *testing.T) {
	for depth := 1; depth < 3; depth++ {
		synctest.Test(t, func(t *testing.T) {
			docs := func(yield func(scan.Document, error) bool) {
				for doc := range numbered(20) {
					time.Sleep(time.Second) // reading takes as long as the work
					if !yield(doc, nil) {
						return
					}
				}
			}
			work := func(doc *scan.Document) ([]byte, error) {
				time.Sleep(time.Second)
				return double(doc)
			}
			o := scan.Options{Workers: 1, Depth: depth}
			began := time.Now()
			got, err := collect(t, scan.Run(t.Context(), docs, scan.Func(work), o))
			require.NoError(t, err)
			requireDoubled(t, got, 20)
			require.Equal(t, 21*time.Second, time.Since(began), "depth %d", depth)
		})
	}
}
