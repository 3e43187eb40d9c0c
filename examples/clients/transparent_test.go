package clients

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// nameServer answers that site.test has the address 127.0.0.1 and that nothing else exists.
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
			if strings.EqualFold(asked.Name.String(), "site.test.") { // resolvers may vary the case
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
		"fetch":                    guarded(),
		"all layers":               obedient(polite(keep(guarded()))),
		"all layers, upside down":  keep(polite(obedient(guarded()))),
		"all layers, with foreign": foreign{obedient(foreign{polite(foreign{keep(foreign{guarded()})})})},
	}
	for _, transport := range all {
		client := &http.Client{Transport: transport}
		t.Cleanup(client.CloseIdleConnections)
		for _, base := range ready {
			if resp, err := client.Get(base + "/robots.txt-known"); err == nil {
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
			e.add("GotConn %s reused %t idle %t", info.Conn.RemoteAddr(), info.Reused, info.WasIdle)
		},
		PutIdleConn:          func(err error) { e.add("PutIdleConn%s", failed(err)) },
		GotFirstResponseByte: func() { e.add("GotFirstResponseByte") },
		Got100Continue:       func() { e.add("Got100Continue") },
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			e.add("Got1xxResponse %d %s", code, header.Get("Link"))
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
		Wait100Continue:  func() { e.add("Wait100Continue") },
		WroteRequest:     func(info httptrace.WroteRequestInfo) { e.add("WroteRequest%s", failed(info.Err)) },
	}
}

// sorted returns the events of each request in an order that does not vary: net/http has header
// fields in no order over HTTP/2, and the response may begin while the end of the request is written.
func (e *events) sorted() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var wrote []string
	for _, event := range append(e.all, "==") {
		if strings.HasPrefix(event, "Wrote") || event == "Wait100Continue" {
			wrote = append(wrote, event)
			continue
		}
		if strings.HasPrefix(event, "==") {
			slices.Sort(wrote)
			all, wrote = append(all, wrote...), nil
		}
		all = append(all, event)
	}
	return all
}

// site answers as the paths say.
func site() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
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
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, "this is no gzip, though it is said to be")
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusFound)
	})
	mux.HandleFunc("/malformed", func(w http.ResponseWriter, r *http.Request) { hijack(w, "SSH-2.0-OpenSSH\r\n\r\n") })
	mux.HandleFunc("/nothing", func(w http.ResponseWriter, r *http.Request) { hijack(w, "") })
	return mux
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

// started starts the site.
func started(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(site())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	t.Cleanup(s.Close)
	return s
}

// TestTraces compares what httptrace reports, event by event.
func TestTraces(t *testing.T) {
	for kind, start := range map[string]func(*httptest.Server){
		"http":   (*httptest.Server).Start,
		"https":  (*httptest.Server).StartTLS,
		"HTTP/2": func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(kind, func(t *testing.T) {
			s := started(t, start)
			roots := x509.NewCertPool()
			address := s.URL
			site := named(s.URL, "site.test")
			if kind != "http" {
				roots.AddCert(s.Certificate())
				site = address // the name is not that of the certificate
			}
			var want []string
			all := sameFromOutside(t, roots, kind != "HTTP/2", site)
			names := slices.Sorted(maps.Keys(all))
			slices.SortStableFunc(names, func(a, b string) int { // net/http comes first
				return cmp.Compare(strings.Index("net/http", b), strings.Index("net/http", a))
			})
			require.Equal(t, "net/http", names[0])
			for _, name := range names {
				e := &events{}
				ctx := httptrace.WithClientTrace(t.Context(), e.trace())
				client := &http.Client{Transport: all[name]}
				for _, one := range []struct{ method, path, body, expect string }{
					{"GET", site + "/new", "", ""},
					{"GET", site + "/kept", "", ""},
					{"POST", site + "/post", "some text", ""},
					{"PUT", site + "/expect", "some text", "100-continue"},
					{"GET", site + "/hints", "", ""},
					{"GET", named(s.URL, "missing.test") + "/", "", ""},
				} {
					if strings.Contains(one.path, "missing") && strings.Contains(name, "all layers") {
						continue // not requested: its robots.txt is unreachable
					}
					var body io.Reader
					if one.body != "" {
						body = strings.NewReader(one.body)
					}
					r, err := http.NewRequestWithContext(ctx, one.method, one.path, body)
					require.NoError(t, err)
					if one.expect != "" {
						r.Header.Set("Expect", one.expect)
					}
					e.add("== %s %s", one.method, one.path)
					resp, err := client.Do(r)
					if err != nil {
						continue
					}
					_, err = io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
				}
				if want == nil {
					want = e.sorted()
					t.Log(strings.Join(want, "\n"))
					continue
				}
				got, want := e.sorted(), want
				if strings.Contains(name, "all layers") {
					missing := slices.IndexFunc(want, func(s string) bool { return strings.Contains(s, "missing") })
					want = append(slices.Clone(want[:missing]), "==")
				}
				require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"), name)
			}
		})
	}
}

// facts are what clients ask of an error.
func facts(err error) (all []string) {
	note := func(name string, ok bool) {
		if ok {
			all = append(all, name)
		}
	}
	if err == nil {
		return []string{"none"}
	}
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var netError net.Error
	note("os.IsTimeout", os.IsTimeout(err))
	note("net.Error that is a timeout", errors.As(err, &netError) && netError.Timeout())
	note("context.Canceled", errors.Is(err, context.Canceled))
	note("context.DeadlineExceeded", errors.Is(err, context.DeadlineExceeded))
	note("the caller's cause", errors.Is(err, errCause))
	note("io.EOF", errors.Is(err, io.EOF))
	note("io.ErrUnexpectedEOF", errors.Is(err, io.ErrUnexpectedEOF))
	note("ECONNREFUSED", errors.Is(err, syscall.ECONNREFUSED))
	note("net.OpError", errors.As(err, &op))
	note("net.DNSError not found", errors.As(err, &dns) && dns.IsNotFound)
	note("tls.CertificateVerificationError", errors.As(err, &certificate))
	note("x509.UnknownAuthorityError", errors.As(err, &unknown))
	note("x509.HostnameError", errors.As(err, &host))
	for _, words := range []string{
		"unsupported protocol scheme", "invalid header", "stopped after 10 redirects", "malformed HTTP", "gzip: invalid header",
		"no such host", "connection refused", "x509: ",
	} {
		note(words, strings.Contains(err.Error(), words))
	}
	return all
}

var errCause = errors.New("the caller's cause")

// TestErrors compares what clients ask of the errors.
func TestErrors(t *testing.T) {
	plain, secure := started(t, (*httptest.Server).Start), started(t, (*httptest.Server).StartTLS)
	closed := httptest.NewServer(nil)
	closed.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(secure.Certificate())
	base := named(plain.URL, "site.test")
	get := func(url string) func(*http.Client) error {
		return func(c *http.Client) error {
			resp, err := c.Get(url)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			return err
		}
	}
	with := func(url string, ctx context.Context, end func()) func(*http.Client) error {
		return func(c *http.Client) error {
			ctx := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
				WroteRequest: func(httptrace.WroteRequestInfo) { end() },
			})
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			resp, err := c.Do(r)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			return err
		}
	}
	soon := func(url string) func(*http.Client) error {
		return func(c *http.Client) error {
			again := *c
			again.Timeout = 50 * time.Millisecond
			return get(url)(&again)
		}
	}
	for name, tt := range map[string]struct {
		roots *x509.CertPool
		do    func(*http.Client) error
	}{
		"client timeout before the head":   {do: soon(base + "/slow")},
		"client timeout in the body":       {do: soon(base + "/drip")},
		"an unknown host":                  {do: get(named(plain.URL, "missing.test"))},
		"connection refused":               {do: get(closed.URL)},
		"an unknown authority":             {do: get(secure.URL)},
		"a certificate of another host":    {do: get(named(secure.URL, "site.test")), roots: trusted},
		"a body that is cut":               {do: get(base + "/cut")},
		"a connection that ends at once":   {do: get(base + "/nothing")},
		"not HTTP":                         {do: get(base + "/malformed")},
		"another scheme":                   {do: get("gopher://site.test/")},
		"too many redirects":               {do: get(base + "/loop")},
		"gzip that is none":                {do: get(base + "/gzip")},
		"a field that cannot be sent":      {do: func(c *http.Client) error { return invalidField(c, base) }},
		"canceled":                         {do: func(c *http.Client) error { return canceled(with, base, nil)(c) }},
		"canceled with a cause":            {do: func(c *http.Client) error { return canceled(with, base, errCause)(c) }},
		"a deadline that has passed":       {do: func(c *http.Client) error { return late(with, base, -time.Second)(c) }},
		"a deadline that passes meanwhile": {do: func(c *http.Client) error { return late(with, base, 50*time.Millisecond)(c) }},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.roots == nil {
				tt.roots = x509.NewCertPool()
			}
			all := sameFromOutside(t, tt.roots, true, base)
			want := facts(tt.do(&http.Client{Transport: all["net/http"]}))
			t.Logf("%s", strings.Join(want, ", "))
			for stack, transport := range all {
				err := tt.do(&http.Client{Transport: transport})
				require.Equal(t, want, facts(err), "%s: %v", stack, err)
			}
		})
	}
}

func invalidField(c *http.Client, base string) error {
	r, err := http.NewRequest(http.MethodGet, base, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Odd", "one\r\nX-Two: two")
	_, err = c.Do(r)
	return err
}

type withFunc = func(string, context.Context, func()) func(*http.Client) error

func canceled(with withFunc, base string, cause error) func(*http.Client) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	return with(base+"/slow", ctx, func() { cancel(cause) })
}

func late(with withFunc, base string, after time.Duration) func(*http.Client) error {
	return func(c *http.Client) error {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		defer cancel()
		return with(base+"/slow", ctx, func() {})(c)
	}
}
