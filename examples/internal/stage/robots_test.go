package stage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const robotsFile = "http://a.example/robots.txt"

func page(path string) Item { return Item{URL: "http://a.example" + path} }

func TestRobotsParksUntilTheRulesAreThere(t *testing.T) {
	r, now := NewRobots("spider"), time.Now()
	require.Equal(t, Ruling{Step: Ask, File: robotsFile}, r.Rule(page("/1"), now))
	require.Equal(t, Ruling{Step: Wait}, r.Rule(page("/2"), now))
	require.Equal(t, Ask, r.Rule(Item{URL: "https://a.example/"}, now).Step, "another scheme is another server")

	released, delay := r.Settle(robotsFile, 200,
		[]byte("User-agent: spider\nDisallow: /2\nCrawl-delay: 7"), now)
	require.Equal(t, []Item{page("/1"), page("/2")}, released)
	require.Equal(t, 7*time.Second, delay)
	require.Equal(t, Ruling{Step: Go}, r.Rule(page("/1"), now))
	require.Equal(t, Ruling{Step: Stop, Fate: Disallowed}, r.Rule(page("/2"), now))
}

func TestRobotsAsksAgainAfterADay(t *testing.T) {
	r, now := NewRobots("spider"), time.Now()
	r.Rule(page("/1"), now)
	r.Settle(robotsFile, 404, nil, now)
	require.Equal(t, Go, r.Rule(page("/1"), now.Add(robotsTTL-1)).Step)
	require.Equal(t, Ask, r.Rule(page("/1"), now.Add(robotsTTL)).Step)
	require.Equal(t, Wait, r.Rule(page("/2"), now.Add(robotsTTL)).Step)
	released, _ := r.Settle(robotsFile, 200, []byte("User-agent: *\nDisallow: /"), now.Add(robotsTTL))
	require.Len(t, released, 2)
	require.Equal(t, Disallowed, r.Rule(page("/1"), now.Add(robotsTTL)).Fate)
}

func TestRobotsByStatus(t *testing.T) {
	for status, want := range map[int]Ruling{
		200: {Step: Stop, Fate: Disallowed},
		301: {Step: Go}, // more redirects than are followed
		403: {Step: Go},
		404: {Step: Go},
		429: {Step: Stop, Fate: RobotsUnreachable},
		500: {Step: Stop, Fate: RobotsUnreachable},
		503: {Step: Stop, Fate: RobotsUnreachable},
	} {
		r, now := NewRobots("spider"), time.Now()
		r.Rule(page("/"), now)
		r.Settle(robotsFile, status, []byte("User-agent: *\nDisallow: /"), now)
		require.Equal(t, want, r.Rule(page("/"), now), "status %d", status)
	}
}

func TestRobotsUnreachableClosesTheServerForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRobots("spider")
		r.Rule(page("/1"), time.Now())
		require.Equal(t, []Item{page("/1")}, r.Unreachable(robotsFile, Refused, time.Now()))
		require.Equal(t, Ruling{Step: Stop, Fate: Refused}, r.Rule(page("/2"), time.Now()))
		time.Sleep(unreachableTTL)
		require.Equal(t, Ask, r.Rule(page("/3"), time.Now()).Step)
	})
}

func TestRobotsWithoutAFileAllowNothing(t *testing.T) {
	ruling := NewRobots("spider").Rule(Item{URL: "gopher://a.example/"}, time.Now())
	require.Equal(t, Stop, ruling.Step)
}

func TestMayFollow(t *testing.T) {
	require.True(t, Item{Hops: 4}.MayFollow())
	require.False(t, Item{Hops: 5}.MayFollow())
}
