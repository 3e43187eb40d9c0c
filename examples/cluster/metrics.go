package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
)

// serveStatus serves the status as a page (with each partition at /?partitions), and as metrics for
// Prometheus at /metrics, until ctx ends. Each request queries the brokers.
func serveStatus(ctx context.Context, addr string, c *crawl.Crawl, out io.Writer) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s/ and http://%[1]s/metrics\n", l.Addr())
	answer := func(write func(now look, w io.Writer, asked url.Values)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			now, err := lookAt(r.Context(), c)
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			write(now, w, r.URL.Query())
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", answer(func(now look, w io.Writer, asked url.Values) {
		now.show(w, look{}, asked.Has("partitions"))
	}))
	mux.HandleFunc("GET /metrics", answer(func(now look, w io.Writer, _ url.Values) {
		now.metrics(w)
	}))
	server := &http.Server{Handler: addressed(mux, addr), ReadHeaderTimeout: 10 * time.Second}
	unhook := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer unhook()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// addressed refuses requests for a name other than localhost, that of the machine and the one in the
// address to listen on: a page of another origin can make a browser send them, with a name that it
// resolves to this server.
func addressed(next http.Handler, listen string) http.Handler {
	own, _, _ := net.SplitHostPort(listen)
	machine, _ := os.Hostname()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if net.ParseIP(strings.Trim(host, "[]")) == nil && !slices.Contains([]string{"localhost", own, machine}, host) {
			http.Error(w, "address this server by its IP address, or by the name in -listen", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// metrics writes the snapshot in the Prometheus text format.
func (l *look) metrics(w io.Writer) {
	for name, value := range map[string]func(p *crawl.Part) float64{
		"lag_messages":  func(p *crawl.Part) float64 { return float64(p.Lag()) },     // not yet in the state
		"waiting_items": func(p *crawl.Part) float64 { return float64(p.Root.Open) }, // for an answer or a delay
		"epoch":         func(p *crawl.Part) float64 { return float64(p.Epoch) },
	} {
		describe(w, "partition_"+name)
		for i := range l.parts {
			p := &l.parts[i]
			fmt.Fprintf(w, "cluster_partition_%s{module=%q,part=\"%d\"} %g\n", name, p.To, p.Part, value(p))
		}
	}
	for name, value := range map[string]func(m *crawl.Member) float64{
		"answers_total":      func(m *crawl.Member) float64 { return float64(m.Visits) }, // responses stored
		"process_partitions": func(m *crawl.Member) float64 { return float64(m.Owned) },
		"sent_total":         func(m *crawl.Member) float64 { return float64(m.Sent) },
		"heap_bytes":         func(m *crawl.Member) float64 { return float64(m.Heap) },
		"resident_bytes":     func(m *crawl.Member) float64 { return float64(m.Resident) },
	} {
		describe(w, name)
		for i := range l.members {
			m := &l.members[i]
			fmt.Fprintf(w, "cluster_%s{process=%q} %g\n", name, m.ID, value(m))
		}
	}
	describe(w, "outcomes_total")
	for what, n := range l.counts() {
		fmt.Fprintf(w, "cluster_outcomes_total{what=%q} %d\n", what, n)
	}
	paused := 0.0
	if l.settings.Paused {
		paused = 1
	}
	for name, value := range map[string]float64{
		"processes":                float64(len(l.members)),
		"partitions_without_owner": float64(len(l.summary(look{}).ownerless)),
		"stream_full_ratio":        l.full,
		"paused":                   paused,
	} {
		describe(w, name)
		fmt.Fprintf(w, "cluster_%s %g\n", name, value)
	}
}

// describe writes the type of a metric. By convention, the name of a counter ends in _total.
func describe(w io.Writer, name string) {
	kind := "gauge"
	if strings.HasSuffix(name, "_total") {
		kind = "counter"
	}
	fmt.Fprintf(w, "# TYPE cluster_%s %s\n", name, kind)
}
