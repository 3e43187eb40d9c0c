package stage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRobotsAreKeptForTheNextCrawl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.cache")
	first, now := NewRobots("spider"), time.Now()
	require.NoError(t, first.Open(file, time.Now()), "there is none yet")
	first.Settle(asked(t, first, page("/1"), now), reply(200, "User-agent: spider\n"+
		"Disallow: /2\nCrawl-delay: 7\nSitemap: http://b.example/s.xml"), now)
	require.NoError(t, first.Save(file))

	next := NewRobots("spider")
	require.NoError(t, next.Open(file, time.Now()))
	require.Equal(t, Ruling{
		Step: Stop, Fate: Disallowed, Why: "line 2 of http://a.example/robots.txt: /2",
		News: &Settled{Delay: 7 * time.Second, Sitemaps: []string{"http://b.example/s.xml"}},
	}, next.Rule(page("/2"), now))
	require.Equal(t, Ruling{Step: Go}, next.Rule(page("/1"), now), "news are told once")

	req := asked(t, next, page("/1"), now.Add(24*time.Hour))
	s := next.Settle(req, reply(500, ""), now.Add(24*time.Hour))
	require.Len(t, s.Released, 1)
	require.Equal(t, Go, next.Rule(page("/1"), now.Add(24*time.Hour)).Step, "the copy holds")
}

func TestRobotsFilesThatAreDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.cache")
	require.NoError(t, os.WriteFile(file, []byte("no snapshot"), 0o666))
	require.ErrorContains(t, NewRobots("spider").Open(file, time.Now()), file)
}
