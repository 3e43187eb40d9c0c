package webtest

import (
	"context"
	"fmt"
	"html"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// GraphOptions says how a [GraphWeb] is served. The zero GraphOptions gives each host an address
// of its own.
type GraphOptions struct {
	Addrs   int           // addresses that all hosts share in turn; 0 means one per host, at most 250
	Port    int           // bound on every address; 0 means a free one
	Latency time.Duration // before each answer; 0 means none
}

// GraphWeb serves the pages of a [Graph] under the names of their hosts, each with its links and
// nothing else. There is no robots.txt, and what is no page is not found. Names and addresses are
// those of this web alone: nothing outside of loopback is asked for. Its methods are safe for
// concurrent use.
type GraphWeb struct {
	*Graph
	log       *recorder
	latency   time.Duration
	addrs     map[string]netip.Addr         // of the hosts
	listeners map[netip.Addr]netip.AddrPort // virtual address → real one
	virtual   map[netip.AddrPort]netip.Addr // and back
	server    *http.Server
	serving   sync.WaitGroup
	closed    atomic.Bool
}

// StartGraph brings up a web. It listens once StartGraph returns.
func StartGraph(g *Graph, o GraphOptions) (*GraphWeb, error) {
	addrs := o.Addrs
	if addrs == 0 {
		addrs = max(1, min(len(g.names), 250))
	}
	if addrs < 0 || addrs > maxAddrs || o.Port < 0 || o.Port > 65535 {
		return nil, fmt.Errorf("webtest: start graph on %d addresses, port %d: out of range", addrs, o.Port)
	}
	all, err := listen(addrs, o.Port, false)
	if err != nil {
		return nil, err
	}
	w := &GraphWeb{
		Graph: g, log: newRecorder(true, nil), latency: o.Latency,
		addrs:     make(map[string]netip.Addr, len(g.names)),
		listeners: make(map[netip.Addr]netip.AddrPort, addrs),
		virtual:   make(map[netip.AddrPort]netip.Addr, addrs),
	}
	for i, name := range g.names {
		w.addrs[name] = virtualAddr(firstServing, i%addrs)
	}
	for i, l := range all {
		addr, behind := virtualAddr(firstServing, i), l.Addr().(*net.TCPAddr).AddrPort()
		w.listeners[addr], w.virtual[behind] = behind, addr
	}
	w.server = &http.Server{
		Handler: http.HandlerFunc(w.handle),
		// Clients that vanish are the normal case here, as in Web.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	for _, l := range all {
		w.serving.Go(func() { w.server.Serve(l) })
	}
	return w, nil
}

// handle logs a request before it does anything that takes time.
func (w *GraphWeb) handle(rw http.ResponseWriter, r *http.Request) {
	entry := Request{
		Time: time.Now(), Host: hostOf(r.Host), Method: r.Method,
		// The whole URL comes to a proxy, and from net/http for a path that begins with "//".
		Path:      strings.TrimPrefix(r.RequestURI, "http://"+r.Host),
		UserAgent: r.UserAgent(), RemotePort: portOf(r.RemoteAddr),
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		entry.Addr = w.virtual[local.AddrPort()]
	}
	logged := w.log.begin(entry)
	if w.latency > 0 {
		wait := time.NewTimer(w.latency)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.Context().Done():
			return
		}
	}
	status, body := http.StatusNotFound, []byte("<!doctype html><title>Not Found</title>\n")
	if page, ok := w.index[entry.URL()]; ok {
		status, body = http.StatusOK, w.render(page)
	}
	rw.Header()["Content-Type"] = typeHTML
	rw.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	// What a client has seen is in the log, so the status goes there first.
	w.log.end(logged, status)
	rw.WriteHeader(status)
	rw.Write(body) // a client that has left is no matter of ours
}

// render makes a page. Links are written in full, so that they mean the same whatever its address.
func (w *GraphWeb) render(page int32) []byte {
	b := fmt.Appendf(nil, "<!doctype html><title>%s</title>\n", html.EscapeString(w.urls[page]))
	for _, to := range w.links[page] {
		url := html.EscapeString(w.urls[to])
		b = fmt.Appendf(b, "<a href=\"%s\">%s</a>\n", url, url)
	}
	return b
}

// Hosts returns all hosts, in the order of their first pages. What their pages are, the [Graph] knows.
func (w *GraphWeb) Hosts() iter.Seq[Host] {
	return func(yield func(Host) bool) {
		for i, name := range w.names {
			if !yield(Host{Name: name, Addr: w.addrs[name], Index: i}) {
				return
			}
		}
	}
}

// IsPage reports whether a URL is that of a page, written as in [Graph.Reachable].
func (w *GraphWeb) IsPage(url string) bool {
	_, ok := w.index[url]
	return ok
}

// Log returns all requests so far, in the order of their arrival.
func (w *GraphWeb) Log() []Request { return w.log.all() }

// Resolve returns the address of a host. An unknown one is a *net.DNSError with IsNotFound.
func (w *GraphWeb) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if addr, ok := w.addrs[host]; ok {
		return []netip.Addr{addr}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// Dial connects to a virtual address, such as 127.16.0.9:80, or to a host by name. It fits
// http.Transport.DialContext and never leaves the web: what is not part of it refuses.
func (w *GraphWeb) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("webtest: dial: %w", err)
	}
	virtual, err := netip.ParseAddr(host)
	if err != nil {
		virtual = w.addrs[host]
	}
	if w.closed.Load() { // the port may belong to a stranger by now
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.ErrClosed}
	}
	behind, ok := w.listeners[virtual]
	if !ok || port != "80" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp4", behind.String())
}

// Close ends every connection and returns when nothing of the web listens any more. The log stays
// readable.
func (w *GraphWeb) Close() error {
	w.closed.Store(true)
	err := w.server.Close()
	w.serving.Wait()
	return err
}
