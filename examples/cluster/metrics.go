package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
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
	server := &http.Server{Handler: addressed(mux), ReadHeaderTimeout: 10 * time.Second}
	unhook := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer unhook()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// addressed refuses requests for a name other than localhost: a page of another origin can make a
// browser send them, with a name that it resolves to this server.
func addressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if net.ParseIP(strings.Trim(host, "[]")) == nil && host != "localhost" {
			http.Error(w, "address this server by its IP address or as localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// metrics writes the snapshot in the Prometheus text format.
func (l *look) metrics(w io.Writer) {
	for _, g := range []struct {
		name, help string
		value      func(p *crawl.Part) float64
	}{
		{"lag_messages", "messages not yet in the state", func(p *crawl.Part) float64 {
			return float64(p.Lag())
		}},
		{"messages_total", "messages sent to the partition", func(p *crawl.Part) float64 {
			return float64(p.Root.Last)
		}},
		{"waiting_items", "items that wait for an answer or a delay", func(p *crawl.Part) float64 {
			return float64(p.Root.Open)
		}},
		{"full_ratio", "used share of the stream's bound", func(p *crawl.Part) float64 {
			return p.Root.Full
		}},
		{"epoch", "owners that the partition has had", func(p *crawl.Part) float64 {
			return float64(p.Epoch)
		}},
	} {
		describe(w, "partition_"+g.name, g.help)
		for i := range l.parts {
			p := &l.parts[i]
			fmt.Fprintf(w, "cluster_partition_%s{module=%q,part=\"%d\"} %g\n",
				g.name, p.Module, p.Part, g.value(p))
		}
	}
	describe(w, "outcomes_total", "URLs and links, by outcome")
	counts := l.counts()
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "cluster_outcomes_total{what=%q} %d\n", what, counts[what])
	}
	describe(w, "answers_total", "responses that a process has stored")
	for _, m := range l.members {
		fmt.Fprintf(w, "cluster_answers_total{process=%q} %d\n", m.ID, m.Visits)
	}
	describe(w, "process_partitions", "partitions that a process owns")
	for _, m := range l.members {
		fmt.Fprintf(w, "cluster_process_partitions{process=%q} %d\n", m.ID, m.Owned)
	}
	describe(w, "sent_total", "messages that a process has sent to partitions")
	for _, m := range l.members {
		fmt.Fprintf(w, "cluster_sent_total{process=%q} %d\n", m.ID, m.Sent)
	}
	describe(w, "heap_bytes", "live heap of a process at its last garbage collection")
	for _, m := range l.members {
		fmt.Fprintf(w, "cluster_heap_bytes{process=%q} %d\n", m.ID, m.Heap)
	}
	describe(w, "resident_bytes", "resident memory of a process")
	for _, m := range l.members {
		fmt.Fprintf(w, "cluster_resident_bytes{process=%q} %d\n", m.ID, m.Resident)
	}
	s := l.summary(look{})
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{"processes", "processes that are alive", float64(len(l.members))},
		{"partitions_without_owner", "partitions without a live owner", float64(len(s.ownerless))},
		{"items_lost_total", "items that the brokers acknowledged and lost", float64(s.lost)},
		{"paused", "1 while the crawl is paused", b2f(l.settings.Paused)},
	} {
		describe(w, g.name, g.help)
		fmt.Fprintf(w, "cluster_%s %g\n", g.name, g.value)
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// describe writes the header of a metric. By convention, the name of a counter ends in _total.
func describe(w io.Writer, name, help string) {
	kind := "gauge"
	if strings.HasSuffix(name, "_total") {
		kind = "counter"
	}
	fmt.Fprintf(w, "# HELP cluster_%s %s\n# TYPE cluster_%[1]s %[3]s\n", name, help, kind)
}
