package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

func TestAPlanGrowsWithTheCrawl(t *testing.T) {
	n := need{pages: 1e9, rate: 2000, links: 40, fresh: 3, hosts: 1e7, machines: 30, every: 5 * time.Second}
	p := provide(n)
	require.InDelta(t, 2.8e11, p.frontier, 1)
	require.EqualValues(t, 3, p.brokers)
	require.EqualValues(t, 128, p.partitions)
	n.rate *= 20
	require.Greater(t, provide(n).brokers, p.brokers)
	n.again = true
	require.Greater(t, provide(n).memory, p.memory+n.pages*plannedRAM-1)
	status, out, log := do(t, "plan", "-pages", "1e9")
	require.Zero(t, status, log)
	// The disk that create reserves must fit into the planned disk of a broker.
	require.GreaterOrEqual(t, p.disk, p.bound)
	_, options, ok := strings.Cut(out, "options of create")
	require.True(t, ok)
	options, more, ok := strings.Cut(strings.TrimSpace(options), "\n")
	require.True(t, ok)
	require.Equal(t, "-parts 128 -stream-bytes 560000000000", options)
	require.Contains(t, more, "-commit 5s")
	require.Less(t, p.messages, 1.5*2000)
	status, _, log = do(t, append(append([]string{"create"}, strings.Fields(options)...), "-h")...)
	require.Zero(t, status, log)
	require.EqualValues(t, jet.DefaultMaxBytes, provide(need{pages: 1, rate: 1, fresh: 1, machines: 1, every: time.Second}).bound)
	status, _, _ = do(t, "plan", "-rate", "0")
	require.Equal(t, 2, status)
}
