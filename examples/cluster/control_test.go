package main

import (
	"path/filepath"
	"strconv"
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
	require.Contains(t, tell("pause"), "2 processes follow")
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
	require.Contains(t, tell("deny", denied), "3 processes follow")
	require.Contains(t, tell("delay", "h00000.vweb.test", "120ms"), "saved")
	out := tell("settings")
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
	require.Equal(t, before, after, "the denied host gets no more requests")
	require.NotZero(t, tr.fates(t)["on the operator's deny list"]+tr.fates(t)["on the deny list"])
	tell("allow", denied)
	tell("add", "http://"+denied+"/new")
	tell("drain")
	require.NoError(t, one.Wait())
	require.NoError(t, two.Wait())
}

// TestCreateListsDifferences also applies them, and requires a running process to adopt them.
func TestCreateListsDifferences(t *testing.T) {
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
	require.Zero(t, status, log, "the same options again")
	require.Empty(t, log)
	status, _, log = create("-fetch", "2", "-delay", "1h", "-stream-bytes", "33554432")
	require.Zero(t, status, log)
	require.Contains(t, log, "stream-bytes is 16777216, not 33554432, unchanged")
	status, _, log = create("-fetch", "2", "-delay", "1h", "-stream-bytes", "33554432", "-apply")
	require.Zero(t, status, log)
	require.Empty(t, log, "the bounds were raised")
	status, _, log = create("-fetch", "2", "-delay", "1h", "-apply")
	require.Zero(t, status, log)
	require.Contains(t, log, "stream-bytes is 33554432, not 16777216, unchanged")
	status, _, log = create("-fetch", "2", "-delay", "1ms", "-depth", "-1")
	require.Equal(t, 1, status)
	require.Contains(t, log, "-delay is 1h0m0s, not 1ms\n")
	require.Contains(t, log, "-apply")
	status, _, log = create("-fetch", "3", "-delay", "1ms", "-apply")
	require.Equal(t, 1, status)
	require.Contains(t, log, "-fetch is 2, not 3 (cannot be changed)")
	require.Contains(t, log, "another -crawl NAME")
	status, out, log := create("-fetch", "2", "-delay", "1ms", "-depth", "-1", "-apply")
	require.Zero(t, status, log)
	require.Contains(t, out, "-delay is 1h0m0s, not 1ms\n")
	// With a delay of an hour, this would take days.
	tr.waitFor(t, len(tr.reachable()))
}
