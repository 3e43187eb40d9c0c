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

// newLog returns the log of a process: lines of key=value, for a person and for a collector.
func newLog(out io.Writer, level slog.Level, name string) *slog.Logger {
	handler := slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})
	return slog.New(handler).With("process", name)
}

// listenWorker serves what one process can say of itself: /metrics for Prometheus, /debug/pprof/
// and /healthz, which is 200 as long as the process has the right to work. It never shows pages or
// URLs, but pprof is for the operator alone: listen on loopback, or behind a firewall.
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

// writeWorker writes the figures of one process in the text format of Prometheus.
func writeWorker(w io.Writer, r crawl.Report) {
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"worker_answers_total", "answers that the process has kept", float64(r.Visits)},
		{"worker_partitions", "partitions that the process owns", float64(r.Owned)},
		{"worker_heap_bytes", "memory that was in use at the last collection", float64(r.Heap)},
		{"worker_resident_bytes", "memory that the process takes of the machine", float64(r.Resident)},
		{"worker_word_revision", "revision of the word that the process follows", float64(r.Word)},
		{"worker_start_seconds", "when the process began, in Unix time", float64(r.Started.Unix())},
	} {
		describe(w, m.name, m.help)
		fmt.Fprintf(w, "cluster_%s %g\n", m.name, m.value)
	}
}
