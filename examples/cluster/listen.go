package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
)

// newLog returns the log of a process: lines of key=value, for people and log collectors.
func newLog(out io.Writer, level slog.Level, name string) *slog.Logger {
	handler := slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})
	return slog.New(handler).With("process", name)
}

// listenWorker serves /metrics for Prometheus, /debug/pprof/ and /healthz, which is 200 while the
// process holds its session. None of them shows pages or URLs, but pprof is for the operator alone:
// listen on loopback, or behind a firewall.
func listenWorker(ctx context.Context, addr string, w *crawl.Worker, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		writeWorker(out, w.Report())
	})
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) {
		if err := w.Check(); err != nil {
			http.Error(out, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(out, "ok")
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	log.Info("listening", "metrics", fmt.Sprintf("http://%s/metrics", l.Addr()))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }() // it ends with ctx
	return nil
}

// writeWorker writes the metrics of one process in the Prometheus text format.
func writeWorker(w io.Writer, r crawl.Report) {
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"worker_answers_total", "responses that the process has stored", float64(r.Visits)},
		{"worker_partitions", "partitions that the process owns", float64(r.Owned)},
		{"worker_heap_bytes", "live heap at the last garbage collection", float64(r.Heap)},
		{"worker_resident_bytes", "resident memory of the process", float64(r.Resident)},
		{"worker_settings_revision", "revision of the settings that the process follows", float64(r.Revision)},
		{"worker_start_seconds", "start time of the process, in Unix time", float64(r.Started.Unix())},
	} {
		describe(w, m.name, m.help)
		fmt.Fprintf(w, "cluster_%s %g\n", m.name, m.value)
	}
}
