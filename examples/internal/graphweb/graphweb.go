package graphweb

import (
	"fmt"
	"html"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// Options describes a [Web]. The zero Options has an address for each host, 250 at most.
type Options struct {
	Addrs   int           // addresses that all hosts share in turn; 0 means one per host
	Port    int           // bound on every address; 0 means a free one
	Latency time.Duration // before each response; 0 means none
}

// Web serves the pages of a [Graph] under the names of their hosts, each with its links and
// nothing else. There is no robots.txt, and other URLs are not found. Its methods are safe for
// concurrent use.
type Web struct {
	*webtest.Web
	graph *Graph
}

// Start starts a web. It listens when Start returns.
func Start(g *Graph, o Options) (*Web, error) {
	handlers := make(map[string]http.Handler, len(g.names))
	for _, name := range g.names {
		handlers[name] = http.HandlerFunc(g.serve)
	}
	web, err := webtest.Start(webtest.Options{
		Addrs: o.Addrs, Port: o.Port, Handlers: handlers,
		Traits: func(int) webtest.Traits {
			return webtest.Traits{Latency: webtest.Latency{Median: o.Latency}}
		},
	})
	if err != nil {
		return nil, err
	}
	return &Web{web, g}, nil
}

// serve responds with a page of the graph.
func (g *Graph) serve(w http.ResponseWriter, r *http.Request) {
	// A proxy gets the whole URL, and so does a path that starts with "//" in net/http.
	url := "http://" + plainHost(r.Host) + strings.TrimPrefix(r.RequestURI, "http://"+r.Host)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	page, ok := g.index[url]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintln(w, "<!doctype html><title>Not Found</title>")
		return
	}
	_, _ = w.Write(g.render(page)) // a client that has left does not matter
}

// render makes a page. Links are absolute, so that they do not depend on its URL.
func (g *Graph) render(page int32) []byte {
	b := fmt.Appendf(nil, "<!doctype html><title>%s</title>\n", html.EscapeString(g.urls[page]))
	for _, to := range g.links[page] {
		url := html.EscapeString(g.urls[to])
		b = fmt.Appendf(b, "<a href=\"%s\">%s</a>\n", url, url)
	}
	return b
}

// Hosts returns all hosts, in the order of their first pages.
func (w *Web) Hosts() iter.Seq[webtest.Host] {
	return func(yield func(webtest.Host) bool) {
		for _, name := range w.graph.names {
			if host, ok := w.Host(name); !ok || !yield(host) {
				return
			}
		}
	}
}

// Reachable returns, sorted, the URLs of the pages reachable from the seeds, including the seeds.
func (w *Web) Reachable(seeds ...string) []string { return w.graph.Reachable(seeds...) }

// IsPage reports whether a URL is that of a page, written as in [Graph.Reachable].
func (w *Web) IsPage(url string) bool {
	_, ok := w.graph.index[url]
	return ok
}
