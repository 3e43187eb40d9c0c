package webtest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpfield"
)

// arrival is the key of the virtual address at which a request came in: the zero Addr at the proxy.
type arrival struct{}

// serve starts the accept loops.
func (w *Web) serve(all []net.Listener) {
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.server = &http.Server{
		Handler: http.HandlerFunc(w.handle),
		BaseContext: func(l net.Listener) context.Context {
			return context.WithValue(w.ctx, arrival{}, w.virtual[l.Addr().(*net.TCPAddr).AddrPort()])
		},
		ConnState: w.countConn,
		// The log has OPTIONS * as well.
		DisableGeneralOptionsHandler: true,
		// Clients that vanish are normal here, and not worth a line on stderr.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	for _, l := range all {
		if w.authority != nil {
			l = tls.NewListener(l, w.tlsConfig())
		}
		w.serving.Go(func() { w.server.Serve(l) })
	}
}

// countConn lets Close wait for connections. One that a handler of the caller has hijacked is the
// caller's.
func (w *Web) countConn(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		w.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		w.conns.Done()
	}
}

// enter counts a request over HTTP/2 among the connections, since its handler may outlive its own. It is
// false if the web is closing.
func (w *Web) enter() bool {
	w.mu.Lock() // Close takes it between the end of ctx and its wait
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return false
	}
	w.conns.Add(1)
	return true
}

// goServe runs f until it returns, which Close waits for. It is false, without f, if the web is closing.
func (w *Web) goServe(f func()) bool {
	w.mu.Lock() // as in enter
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return false
	}
	w.serving.Go(f)
	return true
}

// exchange is one request being answered.
type exchange struct {
	web    *Web
	host   int
	target string   // path and query as the client wrote them
	logged *Request // its entry in the log, not yet complete
	w      http.ResponseWriter
	r      *http.Request
	taken  net.Conn // hijacked by raw; nil means that the server still has it

	version uint64 // of the page
}

// handle is the only entry point: it logs the arrival before it does anything that takes time. A
// proxy request arrives at whatever address the proxy setting names; for politeness it counts at
// the address of its host. A tunnel through the proxy is not logged, but the requests in it are.
func (w *Web) handle(rw http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		if !w.enter() {
			panic(http.ErrAbortHandler)
		}
		defer w.conns.Done()
	}
	entry := Request{
		Time: time.Now(), Method: r.Method, UserAgent: r.UserAgent(),
		Proto: r.Proto, TLS: r.TLS != nil,
	}
	x := &exchange{web: w, target: r.RequestURI, w: rw, r: r}
	switch {
	case r.Method == http.MethodConnect:
		x.target = "" // what is to come is in the tunnel
	case r.URL.Host != "":
		x.target = r.URL.RequestURI()
	}
	entry.Host, entry.Path = hostOf(r.Host), x.target
	host, known := w.byName[entry.Host]
	if x.host = host; known {
		entry.Host = w.hosts[host].Name
	}
	entry.Addr, _ = r.Context().Value(arrival{}).(netip.Addr)
	if proxied := r.URL.Host != "" || !entry.Addr.IsValid(); proxied && known {
		entry.Addr = w.hosts[host].Addr
	} else if proxied {
		entry.Addr, _ = netip.ParseAddr(entry.Host) // the zero Addr for a name without a host
	}
	if r.Method == http.MethodConnect && known {
		x.logged = new(Request)
	} else {
		x.logged = w.log.begin(entry)
	}
	switch {
	case !known:
		x.stranger(entry.Addr)
	case r.Method == http.MethodConnect:
		x.tunnel()
	case w.hosts[host].traits.Refuse: // only a proxy can get here
		x.fail(http.StatusBadGateway)
	case x.answer() == 0: // the others have called begin
		w.log.end(x.logged, Request{})
	}
	if x.taken != nil {
		w.conns.Done() // last of all: Close closes the log after this
	}
}

// stranger answers a request for what is not the name of a host. For one of the web's addresses it
// leads to the first host there, as a server with a default host does.
func (x *exchange) stranger(addr netip.Addr) int {
	if named, err := netip.ParseAddr(hostOf(x.r.Host)); err == nil && named == addr {
		for i := range x.web.hosts {
			if h := x.web.hosts[i].Host; h.Addr == addr {
				return x.redirect(http.StatusMovedPermanently, h.URL())
			}
		}
	}
	return x.fail(http.StatusMisdirectedRequest)
}

// answer sends the response for the target. It returns the status, or 0 if begin was never called:
// the client left before, or the response was not HTTP.
func (x *exchange) answer() int {
	h := &x.web.hosts[x.host]
	switch {
	case x.web.authority != nil && x.r.TLS == nil:
		return x.redirect(http.StatusMovedPermanently, "https://"+h.Name+x.target)
	case h.handler == nil && x.r.Method != http.MethodGet && x.r.Method != http.MethodHead:
		return x.fail(http.StatusMethodNotAllowed)
	}
	if !x.sleep(x.web.latency(h, x.target)) {
		return 0
	}
	path, _, _ := strings.Cut(x.target, "?")
	isRobots := path == robotsPath || path == robotsCopy
	switch {
	case !isRobots && h.throttled():
		return x.retryLater(h.traits.Throttle)
	case h.handler != nil:
		return x.handled(h.handler)
	case x.host >= x.web.generated:
		return x.static()
	case path == robotsPath:
		return x.robots(h.traits.Robots)
	case path == robotsCopy:
		return x.rules(0)
	case strings.HasPrefix(path, trapDir):
		return x.trap(path[len(trapDir):])
	case strings.HasPrefix(path, goDir):
		return x.goTo(path[len(goDir):])
	}
	if page, ok := x.web.findPage(x.host, x.target); ok {
		return x.page(page)
	}
	if answer, ok := x.findSitemap(path); ok {
		return answer()
	}
	return x.fail(http.StatusNotFound)
}

// handled leaves the answer to a handler of the caller.
func (x *exchange) handled(h http.Handler) int {
	noted := &noter{ResponseWriter: x.w, x: x}
	h.ServeHTTP(noted, x.r)
	if noted.status == 0 && !noted.hijacked {
		noted.WriteHeader(http.StatusOK)
	}
	return noted.status
}

// begin logs the status and then sends the header. So whatever a client has seen is in the log, and
// tests that read it after a request need not wait.
func (x *exchange) begin(status int) int {
	answer := Request{Status: status, Version: x.version}
	switch h := x.w.Header(); {
	case status >= 400:
		answer.RetryAfter = httpfield.RetryAfter(h, time.Now())
	case status >= 300:
		answer.Location = h.Get("Location")
	}
	x.web.log.end(x.logged, answer)
	x.w.WriteHeader(status)
	return status
}

// goTo redirects to a page by its number.
func (x *exchange) goTo(number string) int {
	page, err := strconv.Atoi(number)
	if err != nil || page < 0 || page >= x.web.hosts[x.host].pages {
		return x.fail(http.StatusNotFound)
	}
	return x.redirect(http.StatusMovedPermanently, string(x.web.appendPath(nil, x.host, page)))
}

// Header values that never change are shared by all responses.
var (
	typeHTML  = []string{"text/html; charset=utf-8"}
	typePlain = []string{"text/plain; charset=utf-8"}
	gzipped   = []string{"gzip"}
	varying   = []string{"Accept-Encoding"}
)

// fail answers with a status and a small page that names it.
func (x *exchange) fail(status int) int {
	x.w.Header()["Content-Type"] = typeHTML
	x.begin(status)
	io.WriteString(x.w, "<!doctype html><title>"+http.StatusText(status)+"</title>\n")
	return status
}

// redirect leaves the location as it is: some of them are meant to be odd.
func (x *exchange) redirect(status int, location string) int {
	x.w.Header()["Location"] = []string{location}
	return x.fail(status)
}

// send answers 200 with a whole body.
func (x *exchange) send(contentType []string, body []byte) int {
	h := x.w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.begin(http.StatusOK)
	x.w.Write(body) // a client that has left does not matter
	return http.StatusOK
}

// sleep waits, and reports whether the client is still there and the web still open.
func (x *exchange) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.r.Context().Done():
		return false
	}
}

// hostOf converts a Host header to the form of the names.
func hostOf(header string) string {
	if i := strings.LastIndexByte(header, ':'); i >= 0 && !strings.HasSuffix(header, "]") {
		header = header[:i]
	}
	return strings.TrimSuffix(strings.ToLower(header), ".")
}
