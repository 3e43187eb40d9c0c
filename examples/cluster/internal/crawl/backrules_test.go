package crawl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// TestPagesThatComeBackGoByFreshRules: no page is fetched by a robots.txt that is more than a day old.
func TestPagesThatComeBackGoByFreshRules(t *testing.T) {
	h := newHostTest()
	h.feed(page("http://a.test/1"), located("a.test", "192.0.2.1"),
		answer("http://a.test/robots.txt", 200, "User-agent: *\nAllow: /"))
	fetched := h.at
	h.at = h.at.Add(23*time.Hour + 59*time.Minute)
	back := page("http://a.test/old")
	back.Again, back.Until = true, fetched // it waited for longer than an earlier robots.txt lived
	var got []sent
	got = append(got, feed(h.hosts, h.at, back)...)
	got = append(got, feed(h.hosts, h.at, located("a.test", "192.0.2.1"))...)
	for _, s := range got {
		if s.it.Kind == message.Page {
			require.LessOrEqual(t, s.it.Until.Sub(fetched), 24*time.Hour)
		}
	}
}
