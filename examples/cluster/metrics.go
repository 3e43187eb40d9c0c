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
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// serveStatus serves the tables of status as a page, with /?partitions those of each partition too,
// and their figures for Prometheus below /metrics, until ctx ends. Each request looks at the broker anew.
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
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	unhook := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer unhook()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// metrics writes what was seen in the text format of Prometheus.
func (l *look) metrics(w io.Writer) {
	for _, g := range []struct {
		name, help string
		value      func(p *crawl.Part) float64
	}{
		{"lag_messages", "messages that are not in the state yet", func(p *crawl.Part) float64 {
			return float64(p.Lag())
		}},
		{"messages_total", "messages that the partition was sent", func(p *crawl.Part) float64 {
			return float64(p.Level.Last)
		}},
		{"waiting_items", "items that wait for an answer or a delay", func(p *crawl.Part) float64 {
			return float64(p.Root.Open)
		}},
		{"full_ratio", "share of the stream's bound that is used", func(p *crawl.Part) float64 {
			return p.Level.Share
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
	describe(w, "outcomes_total", "what became of URLs and links")
	counts := l.counts()
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "cluster_outcomes_total{what=%q} %d\n", what, counts[what])
	}
	describe(w, "answers_total", "answers that a process has kept")
	for _, m := range l.members {
		fmt.Fprintf(w, "cluster_answers_total{process=%q} %d\n", m.ID, m.Visits)
	}
	l.workMetrics(w)
	describe(w, "heap_bytes", "memory of a process that was in use at its last collection")
	for _, m := range l.members {
		fmt.Fprintf(w, "cluster_heap_bytes{process=%q} %d\n", m.ID, m.Heap)
	}
	describe(w, "resident_bytes", "memory that a process takes of its machine")
	for _, m := range l.members {
		fmt.Fprintf(w, "cluster_resident_bytes{process=%q} %d\n", m.ID, m.Resident)
	}
	s := l.summary(look{})
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{"processes", "processes that are alive", float64(len(l.members))},
		{"partitions_without_owner", "partitions that nobody works on", float64(len(s.ownerless))},
		{"messages_lost_total", "messages that the brokers acknowledged and lost", float64(s.lost)},
		{"paused", "1 while the operator has paused the crawl", b2f(l.word.Paused)},
	} {
		describe(w, g.name, g.help)
		fmt.Fprintf(w, "cluster_%s %g\n", g.name, g.value)
	}
}

// workMetrics writes what each process owns, and how much work that is.
func (l *look) workMetrics(w io.Writer) {
	for _, g := range []struct {
		name, help string
		value      func(work crawl.Work) float64
	}{
		{"process_partitions", "partitions of a module that a process owns",
			func(work crawl.Work) float64 { return float64(work.Parts) }},
		{"process_load", "seconds that a process works for a module per second, all partitions added up",
			func(work crawl.Work) float64 { return work.Load }},
	} {
		describe(w, g.name, g.help)
		for _, m := range l.members {
			for _, module := range message.Partitioned() {
				fmt.Fprintf(w, "cluster_%s{process=%q,module=%q} %g\n",
					g.name, m.ID, module, g.value(m.Work[module]))
			}
		}
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// describe begins a metric. By the custom of Prometheus, the name of what only grows ends in total.
func describe(w io.Writer, name, help string) {
	kind := "gauge"
	if strings.HasSuffix(name, "_total") {
		kind = "counter"
	}
	fmt.Fprintf(w, "# HELP cluster_%s %s\n# TYPE cluster_%[1]s %[3]s\n", name, help, kind)
}
