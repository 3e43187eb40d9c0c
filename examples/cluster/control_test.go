package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnOperatorControlsARunningCrawl sends each command to a crawl of two processes.
func TestAnOperatorControlsARunningCrawl(t *testing.T) {
	t.Parallel()
	_, urls := lone(t, t.TempDir(), 0)
	tr := begin(t, urls, 1)
	one, two := tr.member(t, "one"), tr.member(t, "two")
	tell := func(args ...string) string {
		t.Helper()
		status, out, log := do(t, append([]string{args[0], "-nats", urls}, args[1:]...)...)
		require.Zero(t, status, "cluster %v: %s", args, log)
		return out
	}
	tr.seed(t, "one", "two")
	tr.waitFor(t, len(tr.reachable())/6)
	require.Contains(t, tell("pause"), "saved as revision")
	tr.follows(t, 2)
	// Requests that were in flight when the pause arrived have finished by then.
	time.Sleep(4 * tr.delay)
	paused := len(tr.web.Log())
	late := tr.member(t, "late")
	for tr.owned(t, "late") == nil {
		time.Sleep(20 * time.Millisecond)
	}
	require.Len(t, tr.web.Log(), paused, "a process that starts later makes no request either")
	denied := strings.TrimSuffix(strings.TrimPrefix(tr.reachable()[len(tr.reachable())-1], "http://"), "/")
	denied, _, _ = strings.Cut(denied, "/")
	before := 0
	for url := range tr.pages() {
		if strings.Contains(url, denied) {
			before++
		}
	}
	require.Contains(t, tell("deny", denied), "saved as revision")
	tr.follows(t, 3)
	require.Contains(t, tell("delay", "h00000.vweb.test", "120ms"), "saved")
	out := tell("settings")
	require.Contains(t, out, `"Paused": true`)
	require.Contains(t, out, `"`+denied+`"`)
	require.Contains(t, out, `"h00000.vweb.test": 120000000`)
	require.Contains(t, tell("drain", "late"), "saved")
	require.NoError(t, late.Wait(), "it ends in good order")
	require.Contains(t, tell("resume"), "saved")
	require.NoError(t, tr.crawl.Wait(t.Context(), 50*time.Millisecond))
	after := 0
	for url := range tr.pages() {
		if strings.Contains(url, denied) {
			after++
		}
	}
	require.Equal(t, before, after, "the denied host gets no more requests")
	require.NotZero(t, tr.fates(t)["on the operator's deny list"]+tr.fates(t)["on the deny list"])
	tell("allow", denied)
	tell("add", "http://"+denied+"/new")
	tell("drain")
	require.NoError(t, one.Wait())
	require.NoError(t, two.Wait())
}

// follows waits until n processes follow the latest settings.
func (tr *trial) follows(t *testing.T, n int) {
	t.Helper()
	_, revision, err := tr.crawl.Settings(t.Context())
	require.NoError(t, err)
	for follow := 0; follow < n; time.Sleep(20 * time.Millisecond) {
		_, members, _, err := tr.crawl.Look(t.Context())
		require.NoError(t, err)
		follow = 0
		for _, m := range members {
			if m.Revision >= revision {
				follow++
			}
		}
	}
}

func TestCreateListsDifferences(t *testing.T) {
	t.Parallel()
	_, urls := lone(t, t.TempDir(), 0)
	create := func(more ...string) (int, string, string) {
		args := []string{"create", "-nats", urls, "-replicas", "1", "-loopback",
			"-stream-bytes", "16777216"}
		return do(t, append(append(args, more...), "http://h.test/")...)
	}
	status, _, log := create("-parts", "2", "-delay", "1h")
	require.Zero(t, status, log)
	status, _, log = create("-parts", "2", "-delay", "1h")
	require.Zero(t, status, log, "the same options again")
	require.Empty(t, log)
	status, _, log = create("-parts", "3", "-delay", "1ms", "-depth", "-1")
	require.Equal(t, 1, status)
	require.Contains(t, log, "Delay is 1h0m0s, not 1ms\n")
	require.Contains(t, log, "Parts is 2, not 3\n")
	require.Contains(t, log, "MaxDepth is 20, not -1")
	require.Contains(t, log, "another -crawl NAME")
	status, _, log = create("-parts", "2", "-delay", "1h", "-stream-bytes", "33554432")
	require.Equal(t, 1, status)
	require.Contains(t, log, "StreamBytes is 16777216, not 33554432")
}
