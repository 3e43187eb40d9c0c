package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnOperatorControlsARunningCrawl says one thing after the other to two processes.
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
	require.Contains(t, tell("pause"), "2 processes follow")
	// What was under way when the word came is over after a delay at the most.
	time.Sleep(4 * tr.delay)
	paused := len(tr.web.Log())
	late := tr.member(t, "late")
	for tr.owned(t, "late") == nil {
		time.Sleep(20 * time.Millisecond)
	}
	require.Len(t, tr.web.Log(), paused, "also a process that comes later makes no request")
	denied := strings.TrimSuffix(strings.TrimPrefix(tr.reachable()[len(tr.reachable())-1], "http://"), "/")
	denied, _, _ = strings.Cut(denied, "/")
	before := 0
	for url := range tr.pages() {
		if strings.Contains(url, denied) {
			before++
		}
	}
	require.Contains(t, tell("deny", denied), "3 processes follow")
	require.Contains(t, tell("delay", "h00000.vweb.test", "120ms"), "saved")
	out := tell("word")
	require.Contains(t, out, "paused   true")
	require.Contains(t, out, "deny     "+denied)
	require.Contains(t, out, "delay    h00000.vweb.test 120ms")
	require.Contains(t, tell("drain", "late"), "saved")
	require.NoError(t, late.Wait(), "it ends in good order")
	require.Contains(t, tell("resume"), "processes follow")
	require.NoError(t, tr.crawl.Wait(t.Context(), 50*time.Millisecond))
	after := 0
	for url := range tr.pages() {
		if strings.Contains(url, denied) {
			after++
		}
	}
	require.Equal(t, before, after, "nothing more of the denied host")
	require.NotZero(t, tr.fates(t)["on the operator's deny list"]+tr.fates(t)["on the deny list"])
	tell("allow", denied)
	tell("add", "http://"+denied+"/new")
	tell("drain")
	require.NoError(t, one.Wait())
	require.NoError(t, two.Wait())
}

// TestCreateShowsInWhatACrawlDiffers also applies it, and has a process take it over.
func TestCreateShowsInWhatACrawlDiffers(t *testing.T) {
	t.Parallel()
	_, urls := lone(t, t.TempDir(), 0)
	tr := serveTrial(t, madeUp)
	create := func(more ...string) (int, string, string) {
		args := append([]string{"create", "-nats", urls, "-replicas", "1", "-loopback", "-scope", "any", "-dedupe",
			"1", "-hosts", "1", "-retries", "-1", "-stream-bytes", "16777216"}, more...)
		return do(t, append(args, tr.seeds...)...)
	}
	status, _, log := create("-fetch", "2", "-delay", "1h")
	require.Zero(t, status, log)
	start(t, nil, "run", "-nats", urls, "-name", "p", "-hosts", tr.hosts, "-web-port",
		strconv.Itoa(tr.port), "-dir", filepath.Join(t.TempDir(), "p"))
	status, _, log = create("-fetch", "2", "-delay", "1h")
	require.Zero(t, status, log, "the same again")
	require.Empty(t, log)
	status, _, log = create("-fetch", "2", "-delay", "1h", "-stream-bytes", "33554432")
	require.Zero(t, status, log)
	require.Contains(t, log, "stream-bytes is 16777216, not 33554432, and stays so")
	status, _, log = create("-fetch", "2", "-delay", "1h", "-stream-bytes", "33554432", "-apply")
	require.Zero(t, status, log)
	require.Empty(t, log, "the bounds were raised")
	status, _, log = create("-fetch", "2", "-delay", "1h", "-apply")
	require.Zero(t, status, log)
	require.Contains(t, log, "stream-bytes is 33554432, not 16777216, and stays so")
	status, _, log = create("-fetch", "2", "-delay", "1ms", "-depth", "-1")
	require.Equal(t, 1, status)
	require.Contains(t, log, "-delay is 1h0m0s, not 1ms\n")
	require.Contains(t, log, "-apply")
	status, _, log = create("-fetch", "3", "-delay", "1ms", "-apply")
	require.Equal(t, 1, status)
	require.Contains(t, log, "-fetch is 2, not 3 (cannot be changed any more)")
	require.Contains(t, log, "another -crawl NAME")
	status, out, log := create("-fetch", "2", "-delay", "1ms", "-depth", "-1", "-apply")
	require.Zero(t, status, log)
	require.Contains(t, out, "-delay is 1h0m0s, not 1ms\n")
	// With an hour between two requests to a host, that would take days.
	tr.waitFor(t, len(tr.reachable()))
}
