package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// A notebook is a server that records its requests.
type notebook struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

func newNotebook(t *testing.T) *notebook {
	n := &notebook{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.requests = append(n.requests, r)
		n.mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
	}))
	t.Cleanup(n.Close)
	return n
}

// page returns a recorded request that is not for robots.txt.
func (n *notebook) page(t *testing.T) *http.Request {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.requests, func(r *http.Request) bool { return r.URL.Path != "/robots.txt" })
	require.GreaterOrEqual(t, at, 0, "no page was requested")
	return n.requests[at]
}

// crawlWith runs the program with the flags until it has fetched one page.
func crawlWith(t *testing.T, flags ...string) {
	t.Helper()
	var output bytes.Buffer
	flags = append([]string{"-out", t.TempDir(), "-delay", "1ms", "-pages", "1", "-wait", "0"}, flags...)
	require.Zero(t, command(t.Context(), flags, &output, &output), &output)
}

// TestRequestHeaders: flags set header fields, cookies and a signature; otherwise there are none.
func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	server := newNotebook(t)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	cookies := write(t, "# Netscape HTTP Cookie File\n"+at.Hostname()+"\tFALSE\t/\tFALSE\t0\tsession\tabc\n")
	crawlWith(t, "-header", "Accept-Language: de", "-cookies", cookies, "-identity", write(t, signingKey),
		"-contact", "https://me.example/bot", server.URL)
	r := server.page(t)
	require.Equal(t, "de", r.Header.Get("Accept-Language"))
	require.Equal(t, "session=abc", r.Header.Get("Cookie"))
	require.Contains(t, r.Header.Get("Signature-Input"), `tag="web-bot-auth"`)
	require.NotEmpty(t, r.Header.Get("Signature"))
	require.Equal(t, `sig1="https://me.example/.well-known/http-message-signatures-directory"`, r.Header.Get("Signature-Agent"))
	require.Contains(t, r.UserAgent(), "https://me.example/bot")

	plain := newNotebook(t)
	crawlWith(t, plain.URL)
	for _, name := range []string{"Accept-Language", "Cookie", "Signature", "Signature-Input"} {
		require.Empty(t, plain.page(t).Header.Get(name), name)
	}
}

// TestSecretsStayWithTheirHost: no other host gets them, nor does the archive.
func TestSecretsStayWithTheirHost(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		server, dir := newNotebook(t), t.TempDir()
		cookies := write(t, "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\thushed\n")
		crawlWith(t, "-out", dir, "-cookies", cookies, "-header", "127.0.0.1 Authorization: Bearer hushed",
			"-header", "127.0.0.1 X-Key: hushed", "-header", "other.test Authorization: not here", "-header", "X-All: told",
			fmt.Sprint("-keep-secrets=", keep), server.URL)
		r := server.page(t)
		require.Equal(t, []string{"Bearer hushed", "hushed", "session=hushed", "told"}, []string{r.Header.Get("Authorization"),
			r.Header.Get("X-Key"), r.Header.Get("Cookie"), r.Header.Get("X-All")})
		requests := 0
		for _, rec := range readArchive(t, dir) {
			require.Equal(t, keep && rec.kind == "request", strings.Contains(string(rec.block), "hushed"), "%s", rec.block)
			if rec.kind == "request" {
				requests++
				require.Contains(t, string(rec.block), "X-All: told\r\n")
				require.Equal(t, !keep, strings.Contains(string(rec.block), "Authorization: redacted\r\n"), "%s", rec.block)
			}
		}
		require.Positive(t, requests)
	}
}

// TestRequestsGoThroughTheProxy, even those for a server that does not exist.
func TestRequestsGoThroughTheProxy(t *testing.T) {
	t.Parallel()
	proxy := newNotebook(t)
	crawlWith(t, "-proxy", proxy.URL, "http://127.0.0.1:8123/page")
	require.Equal(t, "http://127.0.0.1:8123/page", proxy.page(t).URL.String())
}

// TestTheDNSFlag: only the name server given with -dns knows the name.
func TestTheDNSFlag(t *testing.T) {
	t.Parallel()
	server := newNotebook(t)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	asked := make(chan string, 100)
	crawlWith(t, "-dns", oneNameServer(t, asked), "-private", "-own", "-contact", "me@example.org",
		"http://only.here.test:"+port+"/")
	require.Equal(t, "only.here.test:"+port, server.page(t).Host)
	require.Equal(t, "only.here.test.", strings.ToLower(<-asked))
}

// oneNameServer resolves every name to this machine, and returns its own address.
func oneNameServer(t *testing.T, asked chan<- string) (at string) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() {
		for packet := make([]byte, 1<<16); ; {
			n, from, err := conn.ReadFromUDPAddrPort(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			asked <- q.Name.String()
			m.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 600},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			answer, err := m.Pack()
			if err == nil {
				_, _ = conn.WriteToUDPAddrPort(answer, from) // a resolver without an answer retries
			}
		}
	}()
	return conn.LocalAddr().String()
}

// TestHTTP1: HTTP/2 is used if the server supports it, unless the flag disables it.
func TestHTTP1(t *testing.T) {
	t.Parallel()
	for proto, flags := range map[string][]string{"HTTP/2.0": nil, "HTTP/1.1": {"-http1"}} {
		web := serve(t, webtest.Options{Seed: 1, Hosts: 1, Pages: 3, TLS: true})
		cfg := testConfig(t, web)
		parsed, err := cockpit.ParseFlags(append(flags, "http://127.0.0.1/"), &bytes.Buffer{})
		require.NoError(t, err)
		cfg.HTTP1 = parsed.HTTP1
		crawlWeb(t, web, cfg)
		log := web.Log()
		require.NotEmpty(t, log)
		for _, r := range log {
			if strings.HasPrefix(r.URL(), "https:") {
				require.Equal(t, proto, r.Proto, r.URL())
			}
		}
	}
}

// TestTheLedgerFlag: a ledger of that size is renamed, and no line is lost.
func TestTheLedgerFlag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	crawlWith(t, "-ledger", "1B", "-out", dir, newNotebook(t).URL)
	files, err := filepath.Glob(filepath.Join(dir, "fates-*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Contains(t, string(text), `"fate":"fetched"`)
}

// TestNoBlockDigest: a page has two digests; with the flag, only that of the payload.
func TestNoBlockDigest(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"-no-block-digest"}} {
		dir := t.TempDir()
		crawlWith(t, append(flags, "-out", dir, newNotebook(t).URL)...)
		names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
		require.NoError(t, err)
		require.Len(t, names, 1)
		file, err := os.Open(names[0])
		require.NoError(t, err)
		defer file.Close()
		plain, err := gzip.NewReader(file)
		require.NoError(t, err)
		text, err := io.ReadAll(plain)
		require.NoError(t, err)
		_, pages, _ := strings.Cut(string(text), "WARC-Type: request") // after the record of the file
		require.Contains(t, pages, "WARC-Payload-Digest: ")
		require.Equal(t, flags == nil, strings.Contains(pages, "WARC-Block-Digest: "))
	}
}
