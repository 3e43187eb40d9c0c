package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// TestMissingBrokersAreReportedAtOnce: a command that waits must say what it waits for.
func TestMissingBrokersAreReportedAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, log lockedBuffer
	ended := make(chan int, 1)
	go func() { ended <- command(ctx, []string{"status", "-nats", "nats://127.0.0.1:1"}, &out, &log) }()
	for log.String() == "" {
		time.Sleep(time.Millisecond)
	}
	require.Contains(t, log.String(), "no answer from nats://127.0.0.1:1: ")
	require.Contains(t, log.String(), "waiting until a broker is there")
	cancel()
	<-ended
}

// TestAProcessServesItsStatus requests each page that a process serves.
func TestAProcessServesItsStatus(t *testing.T) {
	t.Parallel()
	_, urls := lone(t, t.TempDir(), 0)
	tr := begin(t, urls, 1)
	w, err := tr.crawl.NewWorker(crawl.WorkerOptions{Modules: []message.Module{message.Dedupe}})
	require.NoError(t, err)
	var log lockedBuffer
	require.NoError(t, listenWorker(t.Context(), "127.0.0.1:0", w, newLog(&log, slog.LevelInfo, "p")))
	base := regexp.MustCompile(`http://[0-9.:]+/`).FindString(log.String())
	get := func(path string) (int, string) {
		resp, err := http.Get(base + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	status, body := get("metrics")
	require.Equal(t, http.StatusOK, status)
	require.Regexp(t, `\ncluster_worker_resident_bytes [1-9]`, body)
	require.Contains(t, body, "\n# TYPE cluster_worker_answers_total counter\n")
	status, _ = get("healthz")
	require.Equal(t, http.StatusServiceUnavailable, status, "it has no session yet")
	status, _ = get("debug/pprof/goroutine?debug=1")
	require.Equal(t, http.StatusOK, status)
	var line bytes.Buffer
	newLog(&line, slog.LevelWarn, "p").Info("nothing")
	require.Empty(t, line.String())
}
