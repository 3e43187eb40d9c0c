package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
)

// TestTheStatusOfACrawlWhoseProcessesHaveEnded has a crawl after "cluster wait" and "cluster drain": it needs no
// processes, and its pages have not vanished.
func TestTheStatusOfACrawlWhoseProcessesHaveEnded(t *testing.T) {
	ended := look{parts: []crawl.Part{{Root: engine.Root{Seq: 9, Counts: map[string]int64{"fetched": 7}}, End: 9, Held: 3}}}
	var out bytes.Buffer
	ended.show(&out, look{}, false)
	require.NotContains(t, out.String(), "start \"cluster run\"")
	require.Contains(t, out.String(), "no process is alive, and nothing is left to fetch")
	require.Contains(t, out.String(), "0 responses stored by the processes below")
	ended.parts[0].Root.Open = 1
	require.Contains(t, ended.summary(look{}).state, "start \"cluster run\"")
}
