package clients

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// foreign is a layer that knows nothing of others.
type foreign struct{ base http.RoundTripper }

func (f foreign) RoundTrip(r *http.Request) (*http.Response, error) { return f.base.RoundTrip(r) }

func (f foreign) CloseIdleConnections() {
	(&http.Client{Transport: f.base}).CloseIdleConnections()
}

// nameServer answers that site.test and example.com have the address 127.0.0.1 and that nothing else
// exists.
func nameServer(t *testing.T) netip.AddrPort {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var query dnsmessage.Message
			if query.Unpack(buf[:n]) != nil || len(query.Questions) != 1 {
				continue
			}
			asked := query.Questions[0]
			answer := dnsmessage.Message{Questions: query.Questions, Header: dnsmessage.Header{
				ID: query.ID, Response: true, RecursionAvailable: true, RCode: dnsmessage.RCodeNameError,
			}}
			switch strings.ToLower(asked.Name.String()) { // resolvers may vary the case
			case "site.test.", "example.com.":
				answer.RCode = dnsmessage.RCodeSuccess
				if asked.Type == dnsmessage.TypeA {
					answer.Answers = []dnsmessage.Resource{{
						Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET, TTL: 60},
						Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
					}}
				}
			}
			if packed, err := answer.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// sameFromOutside returns transports that a client should not be able to tell apart: that of net/http, ours,
// and ours below and between others. robots.txt is known for the hosts of ready.
func sameFromOutside(t *testing.T, roots *x509.CertPool, http1 bool, ready ...string) map[string]http.RoundTripper {
	t.Helper()
	server := nameServer(t)
	std := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.String())
	}}
	config := &tls.Config{RootCAs: roots}
	if http1 {
		config.NextProtos = []string{"http/1.1"}
	}
	dialer := &net.Dialer{Resolver: std}
	plain := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: config.Clone(), ForceAttemptHTTP2: !http1,
		ExpectContinueTimeout: time.Second,
	}
	guarded := func() http.RoundTripper {
		names := resolve.New(resolve.Options{Servers: []netip.AddrPort{server}, MinTTL: -1, MaxTTL: 1})
		client, err := fetch.New(fetch.Options{
			Reach: fetch.Loopback, TLSConfig: config.Clone(), HTTP1: http1,
			Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
				return names.LookupNetIP(ctx, "ip", host)
			},
		})
		require.NoError(t, err)
		return client.Transport()
	}
	keep := func(base http.RoundTripper) http.RoundTripper {
		kept, err := archive.Open(t.TempDir(), archive.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, kept.Close()) })
		return archivehttp.NewTransport(base, kept)
	}
	polite := func(base http.RoundTripper) http.RoundTripper {
		return schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: -1})
	}
	obedient := func(base http.RoundTripper) http.RoundTripper {
		return robotshttp.NewTransport(base, robots.Options{Agent: agent})
	}
	all := map[string]http.RoundTripper{
		"net/http":                 plain,
		"archivehttp on net/http":  keep(plain.Clone()),
		"schedulerhttp alone":      polite(plain.Clone()),
		"robotshttp alone":         obedient(plain.Clone()),
		"fetch":                    guarded(),
		"all layers":               obedient(polite(keep(guarded()))),
		"all layers, upside down":  keep(polite(obedient(guarded()))),
		"all layers, with foreign": foreign{obedient(foreign{polite(foreign{keep(foreign{guarded()})})})},
	}
	for _, transport := range all {
		client := &http.Client{Transport: transport}
		t.Cleanup(client.CloseIdleConnections)
		for _, base := range ready {
			r, err := http.NewRequest(http.MethodGet, base+"/robots.txt-known", nil)
			require.NoError(t, err)
			r.Close = true // the first traced request gets a new connection
			if resp, err := client.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		client.CloseIdleConnections()
	}
	return all
}

// events are those of httptrace, in words. Its methods are safe for concurrent use.
type events struct {
	mu  sync.Mutex
	all []string

	wrote, waiting chan struct{} // what the server waits for, see answer
}

func newEvents() *events {
	return &events{wrote: make(chan struct{}, 1), waiting: make(chan struct{}, 1)}
}

// answer reads the body of a request, and waits until the client knows that it has sent the request.
// If a server answers earlier, the events of the answer come in between, and net/http may not use the
// connection again.
func (e *events) answer(r *http.Request) {
	if r.URL.Path == "/expect" { // the server of HTTP/2 removes the field
		take(r, e.waiting)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	take(r, e.wrote)
}

func take(r *http.Request, token chan struct{}) {
	select {
	case <-token:
	case <-r.Context().Done():
	}
}

func give(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, fmt.Sprintf(format, args...))
}

// failed returns whether there was an error.
func failed(err error) string {
	if err != nil {
		return " failed"
	}
	return ""
}

func (e *events) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(hostPort string) { e.add("GetConn %s", hostPort) },
		GotConn: func(info httptrace.GotConnInfo) {
			e.add("GotConn %s reused %t", info.Conn.RemoteAddr(), info.Reused)
		},
		PutIdleConn:          func(err error) { e.add("PutIdleConn%s", failed(err)) },
		GotFirstResponseByte: func() { e.add("GotFirstResponseByte") },
		Got100Continue:       func() { e.add("Got100Continue") },
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			if code != http.StatusContinue { // which may come before or after WroteRequest
				e.add("Got1xxResponse %d %s", code, header.Get("Link"))
			}
			return nil
		},
		DNSStart: func(info httptrace.DNSStartInfo) { e.add("DNSStart %s", info.Host) },
		DNSDone: func(info httptrace.DNSDoneInfo) {
			e.add("DNSDone %v%s", info.Addrs, failed(info.Err))
		},
		ConnectStart:      func(network, addr string) { e.add("ConnectStart %s %s", network, addr) },
		ConnectDone:       func(network, addr string, err error) { e.add("ConnectDone %s %s%s", network, addr, failed(err)) },
		TLSHandshakeStart: func() { e.add("TLSHandshakeStart") },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			e.add("TLSHandshakeDone %s%s", state.NegotiatedProtocol, failed(err))
		},
		WroteHeaderField: func(key string, _ []string) { e.add("WroteHeaderField %s", key) },
		WroteHeaders:     func() { e.add("WroteHeaders") },
		Wait100Continue: func() {
			e.add("Wait100Continue")
			give(e.waiting)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			e.add("WroteRequest%s", failed(info.Err))
			give(e.wrote)
		},
	}
}

// text returns the events. HTTP/2 has header fields in no order.
func (e *events) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.Clone(e.all)
	for i := 0; i < len(all); i++ {
		from := i
		for i < len(all) && strings.HasPrefix(all[i], "WroteHeaderField") {
			i++
		}
		slices.Sort(all[from:i])
	}
	return strings.Join(all, "\n")
}

// site answers as the paths say.
func site() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
	})
	mux.HandleFunc("/robots.txt", http.NotFound)
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "hello")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "hello")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // or it would answer
	})
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, "this is no gzip, though it is said to be")
	})
	mux.HandleFunc("/cut-gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped()[:20])
	})
	mux.HandleFunc("/bad-gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzipped()
		packed[len(packed)-8]++
		_, _ = w.Write(packed)
	})
	mux.HandleFunc("/cut-chunk", func(w http.ResponseWriter, r *http.Request) {
		hijack(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhello")
	})
	mux.HandleFunc("/reset", func(w http.ResponseWriter, r *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusFound)
	})
	mux.HandleFunc("/malformed", func(w http.ResponseWriter, r *http.Request) { hijack(w, "SSH-2.0-OpenSSH\r\n\r\n") })
	mux.HandleFunc("/nothing", func(w http.ResponseWriter, r *http.Request) { hijack(w, "") })
	return mux
}

func gzipped() []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, strings.Repeat("all work and no play ", 10))
	_ = z.Close()
	return packed.Bytes()
}

// hijack answers with text and closes the connection.
func hijack(w http.ResponseWriter, text string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	buf := bufio.NewWriter(conn)
	_, _ = buf.WriteString(text)
	_ = buf.Flush()
	_ = conn.Close()
}

// named returns a URL of a test server with another host name.
func named(url, host string) string {
	_, port, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://"), ":")
	scheme, _, _ := strings.Cut(url, "://")
	return scheme + "://" + host + ":" + port
}

// started starts the site. It calls ready, if that is not nil, before it answers with more than
// nothing.
func started(t *testing.T, start func(*httptest.Server), ready func(*http.Request)) *httptest.Server {
	pages := site()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ready != nil && r.URL.Path != "/robots.txt" && r.URL.Path != "/slow" {
			ready(r)
		}
		pages.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	t.Cleanup(s.Close)
	return s
}

// A traced request is one of those whose traces are compared.
type traced struct{ method, url, body, expect string }

func (r traced) send(t *testing.T, client *http.Client, e *events) {
	t.Helper()
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if strings.HasSuffix(r.url, "/slow") {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { cancel() },
		})
	}
	ctx = httptrace.WithClientTrace(ctx, e.trace()) // whose functions are called first
	request, err := http.NewRequestWithContext(ctx, r.method, r.url, body)
	require.NoError(t, err)
	if r.expect != "" {
		request.Header.Set("Expect", r.expect)
	}
	e.add("== %s %s", r.method, r.url)
	resp, err := client.Do(request)
	if err != nil {
		e.add("failed")
		return
	}
	_, err = io.ReadAll(resp.Body)
	e.add("read%s", failed(err))
	require.NoError(t, resp.Body.Close())
}

// complete returns how many of some requests, which come first, get a whole response. With each of
// them, net/http keeps the connection, unless its goroutine that writes is so late to report that it
// has written the request that it does not wait for that: a trace of this case is made again.
func complete(requests []traced) int {
	return max(0, slices.IndexFunc(requests, func(r traced) bool { return strings.HasSuffix(r.url, "/cut") }))
}

// TestTraces compares what httptrace reports, event by event.
func TestTraces(t *testing.T) {
	for kind, start := range map[string]func(*httptest.Server){
		"http":   (*httptest.Server).Start,
		"https":  (*httptest.Server).StartTLS,
		"HTTP/2": func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(kind, func(t *testing.T) {
			var current atomic.Pointer[events]
			s := started(t, start, func(r *http.Request) {
				if e := current.Load(); e != nil {
					e.answer(r)
				}
			})
			roots := x509.NewCertPool()
			if kind != "http" {
				roots.AddCert(s.Certificate())
			}
			closed := httptest.NewServer(nil)
			closed.Close()
			base := named(s.URL, "example.com") // the host of the certificate
			known := []traced{
				{"GET", base + "/new", "", ""},
				{"GET", base + "/kept", "", ""},
				{"POST", base + "/post", "some text", ""},
				{"PUT", base + "/expect", "some text", "100-continue"},
				{"GET", base + "/hints", "", ""},
				{"GET", base + "/cut", "", ""},
				{"GET", base + "/slow", "", ""},
				{"GET", base + "/nothing", "", ""},
				{"GET", base + "/malformed", "", ""},
			}
			unknown := []traced{ // whose robots.txt is unreachable
				{"GET", named(s.URL, "missing.test") + "/", "", ""},
				{"GET", named(s.URL, "site.test") + "/", "", ""}, // a bad certificate, if any
				{"GET", named(closed.URL, "site.test") + "/", "", ""},
				{"GET", strings.Replace(base, "https:", "gopher:", 1) + "/", "", ""},
			}
			all := sameFromOutside(t, roots, kind != "HTTP/2", base)
			once := func(name string, requests []traced) string {
				e := newEvents()
				current.Store(e)
				defer current.Store(nil)
				client := &http.Client{Transport: all[name]}
				defer client.CloseIdleConnections()
				for _, r := range requests {
					r.send(t, client, e)
				}
				return e.text()
			}
			trace := func(name string, requests []traced) (text string) {
				for range 20 {
					text = once(name, requests)
					if kind == "HTTP/2" || strings.Count(text, "PutIdleConn\nread") == complete(requests) {
						break
					}
				}
				return text
			}
			for _, requests := range [][]traced{known, unknown} {
				want := trace("net/http", requests)
				t.Log(want)
				for name := range all {
					obedient := strings.Contains(name, "all layers") || strings.Contains(name, "robotshttp")
					if !obedient || requests[0] == known[0] {
						require.Equal(t, want, trace(name, requests), name)
					}
				}
			}
		})
	}
}
