package stage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots"

	"github.com/spinneret-go/spinneret/scheduler"
)

// restored returns the latest entries of a journal, by key.
func restored(t *testing.T, name string) (j *Journal, latest map[string]int, err error) {
	t.Helper()
	j, latest = NewJournal(name), map[string]int{}
	return j, latest, j.Restore(func(data []byte) error {
		for e, err := range Entries[entry](data) {
			if err != nil {
				return err
			}
			latest[e.Name] = e.Count
		}
		return nil
	})
}

// TestAJournalCostsWhatChanges: it is a map on disk, and an append costs what it says. Now and then the
// process restarts, or power fails within an append.
func TestAJournalCostsWhatChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(50, 0))
	name := filepath.Join(t.TempDir(), "journal")
	j, model, err := restored(t, name)
	require.NoError(t, err)
	const keys = 2000
	written, size := int64(0), int64(0)
	for step := range 400 {
		changed := map[string]int{}
		for range random.IntN(20) {
			key := fmt.Sprint("key ", random.IntN(keys))
			changed[key] = step
			model[key] = step
		}
		list := func(m map[string]int) (es []entry) {
			for _, key := range slices.Sorted(maps.Keys(m)) {
				es = append(es, entry{key, m[key]})
			}
			return es
		}
		all := func() ([]byte, error) { return AppendEntries(nil, slices.Values(list(model))) }
		require.NoError(t, SaveEntries(j, list(changed), all))
		info, err := os.Stat(name)
		require.NoError(t, err)
		if grown := info.Size() - size; grown >= 0 {
			written += grown
		} else {
			written += info.Size()
		}
		size = info.Size()
		switch random.IntN(20) {
		case 0:
			var found map[string]int
			j, found, err = restored(t, name)
			require.NoError(t, err)
			require.Equal(t, model, found)
		case 1:
			require.NoError(t, os.Truncate(name, size-1-random.Int64N(40)))
			j, _, err = restored(t, name)
			require.Error(t, err, "the next save writes it anew")
		case 2:
			require.NoError(t, os.Remove(name))
		}
	}
	whole, err := AppendEntries(nil, slices.Values(make([]entry, keys)))
	require.NoError(t, err)
	require.Less(t, written, int64(400*len(whole)/4), "much less than all entries each time")
}

// TestRobotsSaveWhatChanged appends the rules of one server to those of many.
func TestRobotsSaveWhatChanged(t *testing.T) {
	r, now := NewRobots("spider", robots.NewCache(robots.Options{Agent: "spider", Patience: -1})), time.Now()
	answer := func(host, text string) {
		req := asked(t, r, Item{URL: "http://" + host + "/"}, now)
		r.Answer(req, reply(200, text), now)
	}
	for n := range 300 {
		answer(fmt.Sprintf("h%d.example", n), "User-agent: *\nDisallow: /"+strings.Repeat("x", 1000))
	}
	name := filepath.Join(t.TempDir(), "rules")
	j := NewJournal(name)
	require.NoError(t, r.Save(j))
	before, err := os.Stat(name)
	require.NoError(t, err)
	require.NoError(t, r.Save(j))
	now = now.Add(25 * time.Hour)
	answer("h7.example", "User-agent: *\nDisallow: /new")
	require.NoError(t, r.Save(j))
	after, err := os.Stat(name)
	require.NoError(t, err)
	require.Less(t, after.Size()-before.Size(), int64(1000))

	saved, err := os.ReadFile(name)
	require.NoError(t, err)
	next := NewRobots("spider", robots.NewCache(robots.Options{Agent: "spider", Patience: -1}))
	require.NoError(t, next.Restore(saved, now, nil))
	require.Equal(t, Disallowed, next.Rule(Item{URL: "http://h7.example/new"}, now).Fate)
	require.Equal(t, Go, next.Rule(Item{URL: "http://h7.example/xxxx"}, now).Step)
}

// TestPolitenessSavesWhatChanged: also that a host is in its default state again.
func TestPolitenessSavesWhatChanged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	p, j := newPoliteness(PolitenessOptions{Delay: time.Second}), NewJournal(name)
	for n := range 200 {
		p.SetDelay(fmt.Sprintf("http://h%d.example/robots.txt", n), time.Minute)
	}
	require.NoError(t, p.Save(j))
	before, err := os.Stat(name)
	require.NoError(t, err)
	p.SetDelay("http://h3.example/robots.txt", time.Hour)
	p.SetDelay("http://h4.example/robots.txt", 0)
	require.NoError(t, p.Save(j))
	after, err := os.Stat(name)
	require.NoError(t, err)
	require.Less(t, after.Size()-before.Size(), int64(400))

	saved, err := os.ReadFile(name)
	require.NoError(t, err)
	next, got := newPoliteness(PolitenessOptions{Delay: time.Second}), map[string]scheduler.Entry{}
	require.NoError(t, next.Restore(saved))
	for e := range next.Queue.All(time.Now()) {
		got[e.Host] = e
	}
	require.Equal(t, time.Hour, got["h3.example"].CrawlDelay+got["h3.example"].Delay)
	require.Zero(t, got["h4.example"].CrawlDelay+got["h4.example"].Delay)
	require.Equal(t, time.Minute, got["h5.example"].CrawlDelay+got["h5.example"].Delay)
}
