package stage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireSameOrder compares the ids, the scores, and the pages that may still be added.
func requireSameOrder(t *testing.T, want, got *Order) {
	t.Helper()
	require.Equal(t, want.ranks.Stats().Known, got.ranks.Stats().Known)
	require.Equal(t, want.ranks.Stats().Fetched, got.ranks.Stats().Fetched)
	for id, score := range want.ranks.Frontier().All() {
		require.Equal(t, want.ranks.URL(id), got.ranks.URL(id))
		require.InDelta(t, score, got.ranks.Frontier().Score(id), 1e-9, want.ranks.URL(id))
	}
}

// TestAnOrderSurvivesKills: random calls, saved now and then, by runs of which most are killed. What was
// saved last is there again, whatever the log and the file are made of.
func TestAnOrderSurvivesKills(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		name := filepath.Join(t.TempDir(), "order")
		url := func() string { return fmt.Sprintf("http://h%d.test/%d", random.IntN(5), random.IntN(60)) }
		for range 6 {
			o, err := OpenOrder(name)
			require.NoError(t, err)
			require.NoError(t, o.Save())
			for range 40 {
				switch random.IntN(4) {
				case 0:
					o.Add(Item{URL: url()})
				case 1:
					if it, ok := o.Next(); ok {
						o.Fetched(it.URL, []string{url(), url(), url()})
						o.Done(it.URL)
					}
				case 2:
					o.Fetched(url(), []string{url(), url()})
				case 3:
					require.NoError(t, o.Save())
				}
			}
			older, err := os.ReadFile(OrderLog(name))
			if os.IsNotExist(err) {
				older = nil
			}
			if random.IntN(3) == 0 {
				require.NoError(t, o.Checkpoint())
				require.NoFileExists(t, OrderLog(name))
				if older != nil && random.IntN(2) == 0 { // the process ended between the two
					require.NoError(t, os.WriteFile(OrderLog(name), older, 0o600))
				}
			} else {
				require.NoError(t, o.Save())
			}
			again, err := OpenOrder(name)
			require.NoError(t, err)
			requireSameOrder(t, o, again)
		}
	}
}

// TestADamagedOrderLog: what precedes the damage counts. A log never continues another file.
func TestADamagedOrderLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "order")
	o, err := OpenOrder(name)
	require.NoError(t, err)
	o.Fetched("http://a.test/", []string{"http://b.test/"})
	require.NoError(t, o.Save())
	first, err := os.ReadFile(OrderLog(name))
	require.NoError(t, err)
	o.Fetched("http://c.test/", []string{"http://b.test/"})
	require.NoError(t, o.Save())
	whole, err := os.ReadFile(OrderLog(name))
	require.NoError(t, err)
	for n := range whole {
		require.NoError(t, os.WriteFile(OrderLog(name), whole[:n], 0o600))
		cut, err := OpenOrder(name)
		require.Equal(t, n != 0 && n != len(first), err != nil, n)
		if n >= len(first) {
			require.GreaterOrEqual(t, cut.ranks.Stats().Known, 2, n)
			require.False(t, cut.Add(Item{URL: "http://a.test/"}))
		}
		bad := append([]byte{}, whole...)
		bad[n] ^= 1
		require.NoError(t, os.WriteFile(OrderLog(name), bad, 0o600))
		_, err = OpenOrder(name)
		require.Error(t, err, n)
	}
	require.NoError(t, os.WriteFile(OrderLog(name), whole, 0o600))
	o, err = OpenOrder(name)
	require.NoError(t, err)
	require.NoError(t, o.Save())
	require.NoFileExists(t, OrderLog(name))
	o.Fetched("http://d.test/", nil)
	require.NoError(t, o.Save())
	require.NoError(t, os.Remove(name))
	o, err = OpenOrder(name)
	require.NoError(t, err)
	require.Zero(t, o.ranks.Stats().Known, "it was the log of another file")
	require.NoError(t, o.Save())
	require.NoFileExists(t, OrderLog(name))
}

// TestSavingAnOrderCostsWhatChanges, and keeps nobody waiting.
func TestSavingAnOrderCostsWhatChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "order")
	o, err := OpenOrder(name)
	require.NoError(t, err)
	for n := range 10_000 {
		o.Fetched(fmt.Sprint("http://a.test/", n), []string{fmt.Sprint("http://a.test/", n+1)})
	}
	require.NoError(t, o.Checkpoint())
	before, err := os.Stat(name)
	require.NoError(t, err)
	o.Fetched("http://b.test/", []string{"http://a.test/1", "http://a.test/2"})
	require.NoError(t, o.Save())
	after, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	log, err := os.Stat(OrderLog(name))
	require.NoError(t, err)
	require.Less(t, log.Size(), int64(100))
	require.NoError(t, o.Save())
	same, err := os.Stat(OrderLog(name))
	require.NoError(t, err)
	require.Equal(t, log.Size(), same.Size())
}
