package crawl

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

// TestThePlanKnowsWhatAPageCosts measures the constants of "cluster plan".
func TestThePlanKnowsWhatAPageCosts(t *testing.T) {
	const n = 100_000
	url := func(i int) string { // of 70 bytes, as URLs are on average
		text := fmt.Sprintf("https://www.example%04d.test/%d/", i%1000, i)
		return text + strings.Repeat("x", 70-len(text))
	}
	var items []message.Item
	for i := range 40 {
		items = append(items, message.Item{Kind: message.Page, URL: url(i), Depth: 3,
			Addr: located("", "192.0.2.1").Addr, Until: newYear})
	}
	item := len(message.Encode(nil, items...)) / len(items)
	o := Options{}.withDefaults()
	s := newSeen(&o)
	before := liveBytes()
	for i := range n {
		feed(s, newYear, page(url(i)))
	}
	s.Changes(false, 512<<10)
	seenMemory := (liveBytes() - before) / n
	state := stage.State{
		History: revisit.History{}.Observe(revisit.Visit{At: newYear, Changed: true}), Hash: 1 << 60,
	}
	state.Validators.ETag = `"5f3c-5e1b2a3c4d5e6"`
	before = liveBytes()
	for i := range n {
		it, _ := report(page(url(i)), state, newYear.Add(time.Hour))
		feed(s, newYear, it)
	}
	disk := 0
	for _, chunk := range s.Changes(false, 512<<10) {
		disk += len(chunk)
	}
	planned := (liveBytes() - before) / n
	runtime.KeepAlive(s)
	t.Logf("an item takes %d bytes; a URL %d in memory; a planned page %d in memory, %d on disk",
		item, seenMemory, planned, disk/n)
	require.LessOrEqual(t, item, 140)
	require.LessOrEqual(t, seenMemory, int64(40))
	require.LessOrEqual(t, planned, int64(380))
	require.LessOrEqual(t, disk/n, 245)
}
