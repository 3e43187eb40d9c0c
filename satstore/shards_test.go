package satstore

import (
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShardsWorkSideBySide visits the slots of three shards by a goroutine each, which hand their
// records to fetchers that they share. Every visit counts once, across kills of all of them.
func TestShardsWorkSideBySide(t *testing.T) {
	t.Parallel()
	const records, fetchers, slots = 300, 3, 12
	dir := t.TempDir()
	dirs := []string{filepath.Join(dir, "0"), filepath.Join(dir, "1"), filepath.Join(dir, "2")}
	o := killOptions()
	o.Start = 1
	shards, err := OpenShards(dirs, o)
	require.NoError(t, err)
	var items []Item
	want := map[string]int{}
	for i := range records {
		id := fmt.Sprint("https://a.test/", i)
		items = append(items, Item{id, int64(1 + i%4), []byte("0")})
		want[id] = 0
	}
	added, err := shards.AddBatch(items)
	require.NoError(t, err)
	require.Equal(t, records, added)
	for slot := range slots {
		for id := range visitShards(t, shards, fetchers) {
			want[id]++
		}
		require.NoError(t, shards.Advance())
		if slot%4 != 3 {
			continue
		}
		for _, s := range shards.Stores() {
			abandon(s)
		}
		shards, err = OpenShards(dirs, o)
		require.NoError(t, err)
		require.Equal(t, want, valuesOf(t, shards))
	}
	require.NoError(t, shards.Close())
}

// visitShards works off a slot of each shard and returns the ids of the records.
func visitShards(t *testing.T, shards *Shards, fetchers int) map[string]bool {
	work := make(chan *Record)
	var reading, fetching sync.WaitGroup
	var mu sync.Mutex
	visited := map[string]bool{}
	for range fetchers {
		fetching.Go(func() {
			for r := range work {
				id := visitOnce(t, r)
				mu.Lock()
				visited[id] = true
				mu.Unlock()
			}
		})
	}
	for _, s := range shards.Stores() {
		reading.Go(func() {
			for r, err := range s.Due(t.Context()) {
				if err != nil {
					t.Error(err)
					return
				}
				work <- r
			}
		})
	}
	reading.Wait()
	close(work)
	fetching.Wait()
	return visited
}

// valuesOf returns the numbers that the data of all shards are, by id.
func valuesOf(t *testing.T, shards *Shards) map[string]int {
	t.Helper()
	values := map[string]int{}
	for _, s := range shards.Stores() {
		require.NoError(t, s.Check())
		part := map[string]int{}
		for id, text := range contents(t, s) {
			var slot int64
			var n int
			_, err := fmt.Sscan(text, &slot, &n)
			require.NoError(t, err)
			require.Same(t, s, shards.For(id))
			part[id] = n
		}
		maps.Copy(values, part)
	}
	return values
}
