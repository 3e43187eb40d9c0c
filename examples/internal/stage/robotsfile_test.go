package stage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// savedRules returns a new file of all rules.
func savedRules(t *testing.T, r *Robots) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rules")
	require.NoError(t, r.Save(NewJournal(name)))
	saved, err := os.ReadFile(name)
	require.NoError(t, err)
	return saved
}

func TestRulesAreSavedForTheNextCrawl(t *testing.T) {
	first, now := newRobots(), time.Now()
	first.Answer(asked(t, first, page("/1"), now), reply(200, "User-agent: spider\n"+
		"Disallow: /2\nCrawl-delay: 7\nSitemap: http://b.example/s.xml"), now)
	saved := savedRules(t, first)

	next := newRobots()
	require.NoError(t, next.Restore(saved, time.Now(), nil))
	require.Equal(t, Ruling{
		Step: Stop, Fate: Disallowed, Why: "line 2 of http://a.example/robots.txt: /2",
		News: &Answered{Delay: 7 * time.Second, Sitemaps: []string{"http://b.example/s.xml"}},
	}, next.Rule(page("/2"), now))
	require.Equal(t, Ruling{Step: Go}, next.Rule(page("/1"), now), "News is returned once")

	req := asked(t, next, page("/1"), now.Add(24*time.Hour))
	s := next.Answer(req, reply(500, ""), now.Add(24*time.Hour))
	require.Len(t, s.Released, 1)
	require.Equal(t, Go, next.Rule(page("/1"), now.Add(24*time.Hour)).Step, "the copy is still valid")
}

// TestOldRobotsAreForgotten a month after they have expired.
func TestOldRobotsAreForgotten(t *testing.T) {
	first, now := newRobots(), time.Now()
	first.Answer(asked(t, first, page("/1"), now), reply(200, ""), now)
	saved := savedRules(t, first)
	for _, tt := range []struct {
		days int
		kept bool
	}{{0, true}, {30, true}, {32, false}} {
		next := newRobots()
		require.NoError(t, next.Restore(saved, now.AddDate(0, 0, tt.days), nil))
		require.Equal(t, tt.kept, next.rules.Stats().Hosts == 1, "after %d days", tt.days)
	}
}

func TestDamagedRules(t *testing.T) {
	require.ErrorContains(t, newRobots().Restore([]byte("nonsense"), time.Now(), nil), "byte 0")
}

// A server fails, a -fresh run asks it again and gets an answer; the next run.
func TestTheLastEntryOfAServerCounts(t *testing.T) {
	name, now := filepath.Join(t.TempDir(), "rules"), time.Now()
	page := Item{URL: "http://a.test/"}
	open := func(again bool) (*Robots, *Journal) {
		r, j := newRobots(), NewJournal(name)
		require.NoError(t, j.Restore(func(data []byte) error {
			return r.Restore(data, now, func(string) bool { return again })
		}))
		return r, j
	}
	r, j := open(false)
	r.Silent(asked(t, r, page, now), RobotsUnreachable, "no answer", now)
	require.NoError(t, r.Save(j))
	now = now.Add(time.Second)
	r, j = open(true)
	r.Answer(asked(t, r, page, now), reply(200, "User-agent: *\nDisallow: /x"), now)
	require.Equal(t, Go, r.Rule(page, now).Step)
	require.NoError(t, r.Save(j))
	now = now.Add(time.Second)
	r, _ = open(false)
	e, _ := r.rules.Entry(page.URL)
	require.Zero(t, e.Failures)
	require.Equal(t, Go, r.Rule(page, now).Step)
}
