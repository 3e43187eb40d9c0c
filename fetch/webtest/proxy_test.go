package webtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/memnet"
)

// through returns a client that reaches a web by its proxy only.
func through(t *testing.T, w *Web) *http.Client {
	proxy, err := w.Proxy()
	require.NoError(t, err)
	transport := &http.Transport{
		Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: w.Roots()},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

func TestProxy(t *testing.T) {
	w := start(t, Options{Hosts: 3, Addrs: 2, Traits: func(h int) Traits { return Traits{Refuse: h == 2} }})
	c := through(t, w)
	for _, tt := range []struct {
		url    string
		status int
		addr   netip.Addr
	}{
		{"http://h00000.vweb.test/", 200, w.hosts[0].Addr},
		{"http://h00001.vweb.test/nosuch", 404, w.hosts[1].Addr},
		{"http://h00002.vweb.test/", 502, w.hosts[2].Addr},
		{"http://" + w.hosts[0].Addr.String() + "/", 301, w.hosts[0].Addr},
		{"http://192.168.0.1/x", 421, netip.MustParseAddr("192.168.0.1")},
		{"http://nobody.test/", 421, netip.Addr{}},
	} {
		require.Equal(t, tt.status, get(t, c, tt.url).status, tt.url)
		log := w.Log()
		last := log[len(log)-1]
		require.Equal(t, tt.url, last.URL())
		require.Equal(t, tt.status, last.Status)
		require.Equal(t, tt.addr, last.Addr, "a proxied request counts for the host's address")
	}
}

// TestProxyTunnels reaches https, by requests that are logged where they arrive in the end.
func TestProxyTunnels(t *testing.T) {
	w := start(t, Options{Hosts: 2, TLS: true})
	c := through(t, w)
	require.Equal(t, 200, get(t, c, "https://h00001.vweb.test/").status)
	_, err := c.Get("https://nobody.test/")
	require.Error(t, err)
	log := w.Log()
	require.Len(t, log, 2)
	require.Equal(t, w.hosts[1].Addr, log[0].Addr)
	require.True(t, log[0].TLS)
	require.Equal(t, []any{"CONNECT", "nobody.test", 421}, []any{log[1].Method, log[1].Host, log[1].Status})
	require.NoError(t, w.Close(), "a tunnel that is still open does not hold it up")
}

// A tunnel is in neither log, also if there is none. One to nobody has the URL of what it would lead to.
func TestTunnelsThatFail(t *testing.T) {
	var tsv bytes.Buffer
	w, err := Start(Options{Hosts: 2, TLS: true, LogTSV: &tsv, Traits: func(host int) Traits { return Traits{Refuse: host == 1} }})
	require.NoError(t, err)
	c := through(t, w)
	for _, url := range []string{"https://h00001.vweb.test/", "https://h00000.vweb.test:22/", "https://10.0.0.1/"} {
		_, err := c.Get(url)
		require.Error(t, err, url)
	}
	require.NoError(t, w.Close())
	require.Equal(t, 1, strings.Count(tsv.String(), "\n"), tsv.String())
	require.Contains(t, tsv.String(), "\t10.0.0.1\t10.0.0.1\tCONNECT\thttp://10.0.0.1\t421\t")
	require.Len(t, w.Log(), 1)
}

// TestCloseEndsUnreadTunnels leaves a tunnel open from which nobody reads.
func TestCloseEndsUnreadTunnels(t *testing.T) {
	w, err := Start(Options{Hosts: 1, Traits: func(int) Traits { return Traits{Traps: TrapHuge} }})
	require.NoError(t, err)
	proxy, err := w.Proxy()
	require.NoError(t, err)
	conn, err := net.Dial("tcp", proxy.Host)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "CONNECT h00000.vweb.test:80 HTTP/1.1\r\nHost: h00000.vweb.test:80\r\n\r\n")
	require.NoError(t, err)
	answer := bufio.NewReader(conn)
	line, err := answer.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "200")
	_, err = io.WriteString(conn, "GET /trap/huge HTTP/1.1\r\nHost: h00000.vweb.test\r\n\r\n")
	require.NoError(t, err)
	for len(w.Log()) == 0 || w.Log()[0].Status == 0 {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, w.Close())
}

func TestAnEmptyLookupHasNoAddress(t *testing.T) {
	w, err := Start(Options{Hosts: 1, Traits: func(int) Traits {
		return Traits{Lookup: func(int) ([]netip.Addr, error) { return []netip.Addr{}, nil }}
	}})
	require.NoError(t, err)
	defer w.Close()
	_, err = w.Dial(t.Context(), "tcp", "h00000.vweb.test:80")
	require.ErrorContains(t, err, "no address")
}

func TestResolver(t *testing.T) {
	w := start(t, Options{Hosts: 2, Traits: func(h int) Traits {
		if h == 0 {
			return Traits{}
		}
		return Traits{Lookup: func(int) ([]netip.Addr, error) { return nil, net.ErrClosed }}
	}})
	server, err := w.Resolver()
	require.NoError(t, err)
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("udp4", server.String())
	}}
	addrs, err := resolver.LookupNetIP(t.Context(), "ip", "h00000.vweb.test")
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{w.hosts[0].Addr}, addrs)
	var failed *net.DNSError
	_, err = resolver.LookupNetIP(t.Context(), "ip", "nobody.test.")
	require.ErrorAs(t, err, &failed)
	require.True(t, failed.IsNotFound)
	_, err = resolver.LookupNetIP(t.Context(), "ip", "h00001.vweb.test.")
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.IsNotFound)
	for _, query := range []string{"", "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", "\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x09a",
		"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01",
		"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00"} {
		_, ok := w.dnsAnswer([]byte(query))
		require.False(t, ok, "%q", query)
	}
}

// A name whose Lookup is late holds up no other name.
func TestResolverAnswersEachNameByItself(t *testing.T) {
	asked, late := make(chan struct{}), make(chan struct{})
	w := start(t, Options{Hosts: 2, Traits: func(h int) Traits {
		if h == 0 {
			return Traits{}
		}
		return Traits{Lookup: func(int) ([]netip.Addr, error) {
			close(asked)
			<-late
			return nil, nil
		}}
	}})
	server, err := w.Resolver()
	require.NoError(t, err)
	conn, err := net.Dial("udp4", server.String())
	require.NoError(t, err)
	defer conn.Close()
	for _, name := range []string{"\x06h00001", "\x06h00000"} {
		_, err = conn.Write([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + name + "\x04vweb\x04test\x00\x00\x01\x00\x01"))
		require.NoError(t, err)
		<-asked
	}
	answer := make([]byte, 1<<10)
	n, err := conn.Read(answer)
	close(late)
	require.NoError(t, err)
	require.Contains(t, string(answer[:n]), "h00000")
}

// FuzzDNS asserts that no query does harm, and that an answer repeats its question.
func FuzzDNS(f *testing.F) {
	w, err := Start(Options{Hosts: 1, Network: memnet.New()})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, w.Close()) })
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06h00000\x04vweb\x04test\x00\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, query []byte) {
		if answer, ok := w.dnsAnswer(query); ok && (len(answer) < 17 || string(answer[:2]) != string(query[:2])) {
			t.Errorf("%q for %q", answer, query)
		}
	})
}

func TestAWebWithoutSocketsHasNeither(t *testing.T) {
	w := start(t, Options{Hosts: 1, Network: memnet.New()})
	_, err := w.Proxy()
	require.ErrorIs(t, err, errNoSockets)
	_, err = w.Resolver()
	require.ErrorIs(t, err, errNoSockets)
}

// TestWaysInWhileClosing opens ways into webs that close meanwhile, which the race detector watches.
func TestWaysInWhileClosing(t *testing.T) {
	for range 50 {
		w := start(t, Options{Hosts: 1, Pages: 1})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 10 {
					_, _ = w.Proxy()
					_, _ = w.Resolver()
				}
			})
		}
		require.NoError(t, w.Close())
		all.Wait()
		_, err := w.Proxy()
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = w.Resolver()
		require.ErrorIs(t, err, net.ErrClosed)
	}
}
