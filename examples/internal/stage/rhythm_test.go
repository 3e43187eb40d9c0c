package stage

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/revisit"
)

const dayLong = 24 * time.Hour

var rhythmBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// watched visits the pages of a host at random times. Pages change on every twentieth day, nine of
// ten at a time, and reliable sitemaps report it. It returns the history of a page that was visited
// since the last such day, but not recently.
func watched(t *testing.T, file string, sitemaps bool) (r *Rhythms, it Item, h revisit.History, now time.Time) {
	r, err := openRhythms(file)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(7, 0))
	const pages, days = 100, 238
	histories, changed := make([]revisit.History, pages), make([]time.Time, pages)
	for day := range days {
		now = rhythmBegin.Add(time.Duration(day) * dayLong)
		for i := range histories {
			if day%20 == 0 && random.IntN(10) > 0 {
				changed[i] = now
			}
			if random.IntN(4) > 0 {
				continue
			}
			it = Item{URL: "http://a.test/", LastMod: 1}
			if sitemaps && !changed[i].IsZero() {
				it.LastMod = changed[i].Unix()
			}
			at := now.Add(time.Hour)
			v := revisit.Visit{At: at, Changed: changed[i].After(histories[i].Last())}
			histories[i] = r.Observe("a.test", it, histories[i], v)
		}
	}
	quiet := slices.DeleteFunc(histories, func(h revisit.History) bool {
		return h.Last().Before(rhythmBegin.Add(223 * dayLong))
	})
	h = slices.MinFunc(quiet, func(a, b revisit.History) int { return a.Last().Compare(b.Last()) })
	return r, it, h, now.Add(time.Hour)
}

// TestQuietHostIsPostponed: the due visit to a host whose pages are quiet waits, up to the longest
// interval, and a visit after a burst does not.
func TestQuietHostIsPostponed(t *testing.T) {
	r, it, h, now := watched(t, filepath.Join(t.TempDir(), "rhythm"), false)
	policy := revisit.Bayes{Price: 0.02, Min: time.Hour}
	due := h.Last().Add(policy.Next(h))
	require.True(t, due.Before(now), "%v after the last visit", policy.Next(h))
	it.LastMod = 0
	pause := r.Quiet("a.test", it, policy, h, due.Add(time.Second))
	require.Positive(t, pause)
	require.LessOrEqual(t, pause, 48*time.Hour)
	require.Zero(t, r.Quiet("b.test", it, policy, h, due.Add(time.Second)), "a host without a rhythm")
	require.Zero(t, r.Quiet("a.test", it, revisit.Bayes{Max: time.Hour}, h, due), "no longer than Max")

	worth := r.Worth("a.test", it, policy, h, now)
	for range 30 { // pages that were quiet before turn out to have changed
		other := h
		h2 := r.Observe("a.test", Item{URL: "http://a.test/2"}, other, revisit.Visit{At: now, Changed: true})
		require.True(t, h2.Last().After(h.Last()))
	}
	require.Greater(t, r.Worth("a.test", it, policy, h, now), 2*worth, "its siblings have changed")
	require.Zero(t, r.Quiet("a.test", it, policy, h, due.Add(dayLong)))
}

// TestSilenceOfAReliableHost postpones a page whose change its sitemap would have reported.
func TestSilenceOfAReliableHost(t *testing.T) {
	r, it, h, now := watched(t, filepath.Join(t.TempDir(), "rhythm"), true)
	policy := revisit.Bayes{Min: time.Hour}
	dated := Item{URL: it.URL, LastMod: 1}
	undated := Item{URL: it.URL}
	require.Less(t, r.Worth("a.test", dated, policy, h, now), 0.5*r.Worth("a.test", undated, policy, h, now))
	hinted := dated.Hint(h.Last().Add(time.Second))
	require.True(t, hinted.Hinted(h, now))
	require.Greater(t, r.Worth("a.test", hinted, policy, h, now), 2*r.Worth("a.test", dated, policy, h, now))
	require.False(t, Item{LastMod: now.Unix() + 1}.Hinted(h, now), "hints about the future do not count")
}

func TestRhythmsAreSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rhythm")
	r, _, _, _ := watched(t, file, true)
	require.NoError(t, r.Hosts.Save())
	again, err := openRhythms(file)
	require.NoError(t, err)
	require.NotZero(t, again.Of("a.test"))
	require.Equal(t, r.Of("a.test"), again.Of("a.test"))
	require.Zero(t, again.Of("b.test"))

	var rhythm Rhythm
	require.ErrorIs(t, rhythm.UnmarshalBinary(make([]byte, 9)), revisit.ErrCorrupt)
	require.NoError(t, os.WriteFile(file, []byte("no snapshot"), 0o666))
	_, err = openRhythms(file)
	require.ErrorIs(t, err, hostcache.ErrCorrupt)
}

// TestWeights: a page with many links weighs more than the others, and an unknown one has the mean
// weight.
func TestWeights(t *testing.T) {
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
	pages := []string{"http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"}
	for _, url := range pages {
		o.Fetched(url, []string{"http://b.test/"})
	}
	require.Greater(t, o.Weight("http://b.test/"), 1.5)
	require.Less(t, o.Weight(pages[0]), 1.0)
	require.InDelta(t, 1, o.Weight("http://c.test/"), 0)
}

func openRhythms(file string) (*Rhythms, error) {
	hosts, err := hostcache.Open[Rhythm](file, hostcache.Options{})
	return &Rhythms{Hosts: hosts}, err
}
