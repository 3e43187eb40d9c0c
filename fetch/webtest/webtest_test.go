package webtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// start starts a web that ends with the test.
func start(t testing.TB, o Options) *Web {
	t.Helper()
	w, err := Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// client returns a client for a web that does nothing automatically: no redirects, no gzip.
func client(t testing.TB, w *Web) *http.Client {
	transport := &http.Transport{
		DialContext: w.Dial, DisableCompression: true, MaxResponseHeaderBytes: 1 << 16,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// response is the part of a response that tests check.
type response struct {
	status int
	header http.Header
	body   string
}

// get fetches a URL with header fields given as name, value, name, value.
func get(t testing.TB, c *http.Client, url string, fields ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := c.Do(r)
	require.NoError(t, err, url)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err, url)
	return response{resp.StatusCode, resp.Header, string(body)}
}

// everything fetches each page and robots.txt of a web and returns bodies and headers by URL.
func everything(t *testing.T, o Options) map[string]string {
	w := start(t, o)
	c := client(t, w)
	all := make(map[string]string)
	for h := range w.Hosts() {
		urls := append(slices.Collect(h.Pages()), h.URL()+"robots.txt")
		for _, u := range urls {
			r := get(t, c, u)
			require.Equal(t, 200, r.status, u)
			r.header.Del("Date")
			all[u] = fmt.Sprint(r.header) + r.body
		}
	}
	return all
}

func TestSameSeedSameBytes(t *testing.T) {
	o := Options{Seed: 7, Hosts: 9, Pages: 20}
	first := everything(t, o)
	require.Len(t, first, 9*21)
	o.Addrs = 2 // the address of a host does not affect its pages
	require.Equal(t, first, everything(t, o))

	o.Seed = 8
	other := everything(t, o)
	same := 0
	for u, body := range first {
		if other[u] == body {
			same++
		}
	}
	require.Equal(t, 9, same, "only the robots.txt of each host is the same for all seeds")
}

func TestHostsAndAddresses(t *testing.T) {
	w := start(t, Options{Hosts: 20, Addrs: 3, Traits: func(h int) Traits {
		return Traits{Refuse: h == 4}
	}})
	hosts := slices.Collect(w.Hosts())
	require.Len(t, hosts, 20)
	require.Equal(t, "h00000.vweb.test", hosts[0].Name)
	require.Equal(t, "www.site7.example", hosts[7].Name)
	require.Equal(t, netip.MustParseAddr("127.16.0.2"), hosts[1].Addr)
	require.Equal(t, hosts[1].Addr, hosts[7].Addr, "seven and one are equal modulo three")
	require.Equal(t, netip.MustParseAddr("127.32.0.5"), hosts[4].Addr)

	for _, name := range []string{"h00001.vweb.test", "H00001.VWEB.test", "h00001.vweb.test."} {
		addrs, err := w.Resolve(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, []netip.Addr{hosts[1].Addr}, addrs)
	}
	_, err := w.Resolve(t.Context(), "h00020.vweb.test")
	var dns *net.DNSError
	require.ErrorAs(t, err, &dns)
	require.True(t, dns.IsNotFound)
}

func TestVirtualAddrsAreDistinctAndHostLike(t *testing.T) {
	seen := make(map[netip.Addr]bool)
	for i := range 2000 {
		for _, first := range []uint32{firstServing, firstRefusing} {
			a := virtualAddr(first, i)
			require.True(t, a.IsLoopback())
			require.False(t, seen[a])
			require.NotContains(t, []byte{0, 255}, a.As4()[3])
			seen[a] = true
		}
	}
	last := virtualAddr(firstServing, maxAddrs-1)
	require.True(t, last.Less(virtualAddr(firstRefusing, 0)), "ranges do not overlap")
}

func TestDialNeverLeavesTheWeb(t *testing.T) {
	w := start(t, Options{Hosts: 2, Traits: func(h int) Traits { return Traits{Refuse: h == 1} }})
	refusing, _ := w.Host("h00001.vweb.test")
	for _, addr := range []string{
		"127.16.0.1:443", "127.0.0.1:80", "192.0.2.1:80", "127.16.0.3:80",
		refusing.Name + ":80", refusing.Addr.String() + ":80",
	} {
		_, err := w.Dial(t.Context(), "tcp", addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED, addr)
	}
	_, err := w.Dial(t.Context(), "tcp", "nobody.test:80")
	var dns *net.DNSError
	require.ErrorAs(t, err, &dns)
	_, err = w.Dial(t.Context(), "tcp", "127.16.0.1")
	require.Error(t, err, "no port")

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.Dial(canceled, "tcp", "127.16.0.1:80")
	require.ErrorIs(t, err, context.Canceled)
}

// Both ways of binding must be indistinguishable from outside.
func TestSystemsWithOneLoopbackAddress(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%t", shared), func(t *testing.T) {
			if !shared {
				needLoopbacks(t)
			}
			w := start(t, Options{Hosts: 6, Addrs: 3, shared: shared})
			c := client(t, w)
			for h := range w.Hosts() {
				require.Equal(t, 200, get(t, c, h.URL()).status)
			}
			for i, r := range w.Log() {
				require.Equal(t, virtualAddr(firstServing, i%3), r.Addr)
			}
			for _, behind := range w.listeners {
				require.Equal(t, shared, behind.Addr() == netip.MustParseAddr("127.0.0.1"))
			}
		})
	}
}

// needLoopbacks skips a test if the system only has 127.0.0.1.
func needLoopbacks(t *testing.T) {
	l, err := net.Listen("tcp4", "127.16.0.1:0")
	if err != nil {
		t.Skip("127.16.0.1 is not available:", err)
	}
	l.Close()
}

func TestPortIsBoundOnEveryAddress(t *testing.T) {
	needLoopbacks(t)
	probe := start(t, Options{Hosts: 1})
	port := int(probe.listeners[virtualAddr(firstServing, 0)].Port())
	_, err := Start(Options{Hosts: 1, Port: port})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, probe.Close())

	w := start(t, Options{Hosts: 4, Port: port})
	for h := range w.Hosts() { // without Dial, like another program
		conn, err := net.Dial("tcp", netip.AddrPortFrom(h.Addr, uint16(port)).String())
		require.NoError(t, err)
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n", h.Name, port)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(answer), "200 OK")
		conn.Close()
	}
}

func TestStartRefusesNonsense(t *testing.T) {
	for _, o := range []Options{
		{Hosts: -1}, {Pages: -1}, {Addrs: -1}, {Size: -1}, {Addrs: maxAddrs + 1},
		{Hosts: maxHosts + 1}, {Pages: math.MaxInt}, {Port: -1}, {Port: 1 << 16},
		{Static: "testdata/absent"}, {Static: t.TempDir()},
	} {
		w, err := Start(o)
		require.Error(t, err, "%+v", o)
		require.Nil(t, w)
	}
}

func TestProxyForm(t *testing.T) {
	w := start(t, Options{Hosts: 3})
	behind := w.listeners[virtualAddr(firstServing, 0)]
	proxy := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: behind.String()})}
	defer proxy.CloseIdleConnections()
	direct := client(t, w)
	for h := range w.Hosts() {
		for page := range h.Pages() {
			want := get(t, direct, page)
			got := get(t, &http.Client{Transport: proxy}, page)
			require.Equal(t, want.body, got.body)
		}
	}
	for _, r := range w.Log() {
		h, _ := w.Host(r.Host)
		require.Equal(t, h.Addr, r.Addr, "a proxied request counts for the host's address")
		require.True(t, w.IsPage(r.URL()), r.URL())
	}
	require.Equal(t, 421, get(t, &http.Client{Transport: proxy}, "http://nobody.test/").status)
}

func TestOnlyGetAndHead(t *testing.T) {
	w := start(t, Options{Hosts: 1})
	c := client(t, w)
	url := "http://h00000.vweb.test/"
	resp, err := c.Head(url)
	require.NoError(t, err)
	resp.Body.Close()
	page := get(t, c, url)
	require.EqualValues(t, len(page.body), resp.ContentLength)
	require.Equal(t, page.header.Get("Etag"), resp.Header.Get("Etag"))
	resp, err = c.Post(url, "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 405, resp.StatusCode)
}

func TestManyClientsAtOnce(t *testing.T) {
	w := start(t, Options{Hosts: 8, Addrs: 4, Pages: 10, Traits: func(h int) Traits {
		return Traits{Gzip: h%2 == 0}
	}})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			c := client(t, w)
			for h := range w.Hosts() {
				for page := range h.Pages() {
					if resp, err := c.Get(page); err == nil {
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				}
			}
		})
	}
	clients.Wait()
	log := w.Log()
	require.Len(t, log, 8*8*10)
	for _, r := range log {
		require.Equal(t, 200, r.Status)
	}
}

// stacks returns the stacks of goroutines, except the test's own, that contain this package.
func stacks() (ours []string) {
	buf := make([]byte, 1<<20)
	for s := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(s, "webtest.(*") && !strings.Contains(s, "testing.tRunner") {
			ours = append(ours, s)
		}
	}
	return ours
}

func TestCloseStopsAllGoroutines(t *testing.T) {
	w, err := Start(Options{Hosts: 1, Traits: func(int) Traits {
		return Traits{Traps: TrapAll, Robots: Robots{Mode: RobotsTimeout}}
	}})
	require.NoError(t, err)
	paths := []string{
		"trap/hang", "robots.txt", "trap/endless", "trap/headers", "trap/drip", "trap/huge",
		"trap/bomb", "",
	}
	var conns []net.Conn
	for _, path := range paths {
		conn, err := w.Dial(t.Context(), "tcp", "127.16.0.1:80")
		require.NoError(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: h00000.vweb.test\r\n\r\n", path)
		conns = append(conns, conn)
	}
	for _, conn := range conns[2:] { // the first two never answer
		_, err := bufio.NewReaderSize(conn, 16).ReadByte()
		require.NoError(t, err)
	}
	for len(w.Log()) < len(paths) {
		runtime.Gosched()
	}
	require.NotEmpty(t, stacks())
	require.NoError(t, w.Close())
	for len(stacks()) > 0 { // a goroutine may signal Close just before it returns
		time.Sleep(time.Millisecond) // one that stays runs into the timeout of the test
	}
	require.NoError(t, w.Close(), "a second Close does nothing")
	_, err = w.Dial(t.Context(), "tcp", "127.16.0.1:80")
	require.ErrorIs(t, err, net.ErrClosed)
	require.Len(t, w.Log(), len(paths), "the log is available after Close")
}

// Close may be called at any time, even while requests are served.
func TestCloseUnderLoad(t *testing.T) {
	w, err := Start(Options{Hosts: 4, Addrs: 2, Traits: func(int) Traits {
		return Traits{Traps: TrapAll}
	}})
	require.NoError(t, err)
	paths := []string{"", "trap/endless", "trap/headers", "trap/garbage", "trap/hang"}
	var clients sync.WaitGroup
	answered := make(chan bool, 1000)
	for i := range 6 {
		c := client(t, w)
		clients.Go(func() {
			for n := i; w.ctx.Err() == nil; n++ {
				if resp, err := c.Get(first + paths[n%len(paths)]); err == nil {
					io.CopyN(io.Discard, resp.Body, 1<<16)
					resp.Body.Close()
					select {
					case answered <- true:
					default:
					}
				}
			}
		})
	}
	for range 2 { // the six clients start at five paths, so at least two get answers
		<-answered
	}
	closed := make(chan error)
	for range 2 {
		go func() { closed <- w.Close() }()
	}
	require.NoError(t, <-closed)
	require.NoError(t, <-closed)
	after := len(w.Log())
	clients.Wait()
	require.Len(t, w.Log(), after, "nothing is served after Close")
}

func TestIterationsMayEndEarly(t *testing.T) {
	w := start(t, Options{Hosts: 3, Pages: 3})
	n := 0
	for h := range w.Hosts() {
		for range h.Pages() {
			n++
			break
		}
		if h.Index == 1 {
			break
		}
	}
	require.Equal(t, 2, n)
}

func TestDefaultsMatchTheDocs(t *testing.T) {
	w := start(t, Options{})
	hosts := slices.Collect(w.Hosts())
	require.Len(t, hosts, 100)
	addrs := make(map[netip.Addr]bool)
	for _, h := range hosts {
		addrs[h.Addr] = true
		require.Len(t, slices.Collect(h.Pages()), 50)
	}
	require.Len(t, addrs, 100)
	require.Len(t, start(t, Options{Hosts: 300, Pages: 1}).listeners, 250)
}

func TestIsPage(t *testing.T) {
	w := start(t, Options{Hosts: 1})
	page := slices.Collect(w.hosts[0].Pages())[17]
	for url, want := range map[string]bool{
		first: true, page: true, page + "#here": true, page + "?": false,
		first + "robots.txt":        false,
		"https://h00000.vweb.test/": false, "http://nobody.test/": false, "http://%": false,
		first + "r/17": false, first + "trap/huge": false, "": false,
	} {
		require.Equal(t, want, w.IsPage(url), url)
	}
}

// These requests are written by hand, because no client library sends them.
func TestRequestsByHand(t *testing.T) {
	w := start(t, Options{Hosts: 1})
	for _, tt := range []struct{ name, request, want string }{
		{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: h00000.vweb.test\r\n\r\n", "200 OK"},
		{"no Host field", "GET / HTTP/1.0\r\n\r\n", "421 Misdirected Request"},
		{"an address as the host", "GET / HTTP/1.0\r\nHost: 127.16.0.1:80\r\n\r\n",
			"301 Moved Permanently"},
		{"another address", "GET / HTTP/1.0\r\nHost: 127.16.0.2:80\r\n\r\n", "421 Misdirected Request"},
		{"an IPv6 address", "GET / HTTP/1.0\r\nHost: [::1]\r\n\r\n", "421 Misdirected Request"},
		{"the target's host takes precedence", "GET http://h00000.vweb.test/ HTTP/1.1\r\n" +
			"Host: nobody.test\r\nConnection: close\r\n\r\n", "200 OK"},
		{"a tunnel to nobody", "CONNECT nobody.test:80 HTTP/1.0\r\n\r\n", "421 Misdirected Request"},
		{"no HTTP", "hello\r\n\r\n", "400 Bad Request"},
		{"an escaped slash is another path", "GET /%2F HTTP/1.0\r\nHost: h00000.vweb.test\r\n\r\n",
			"404 Not Found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(w.Log())
			conn, err := w.Dial(t.Context(), "tcp", "127.16.0.1:80")
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, tt.request)
			require.NoError(t, err)
			answer, err := io.ReadAll(conn)
			require.NoError(t, err)
			status, _, _ := strings.Cut(string(answer), "\r\n")
			require.Contains(t, status, tt.want)
			if log := w.Log(); tt.want != "400 Bad Request" {
				require.Len(t, log, before+1)
				require.Contains(t, tt.want, fmt.Sprint(log[before].Status))
			}
		})
	}
}
