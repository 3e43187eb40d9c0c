package fetch_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// heads returns a server that records the heads of its requests.
func heads(t *testing.T) (base string, asked *[]string) {
	asked = new([]string)
	return listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			*asked = append(*asked, head)
			s.say(ok + "Content-Length: 2\r\n\r\nok")
		}
	}), asked
}

func TestOptionsHeader(t *testing.T) {
	base, asked := heads(t)
	c := newClient(t, fetch.Options{Header: http.Header{"accept-language": {"ja, en;q=0.5"}, "Accept": {"text/*"}}})
	get(t, c, base)
	require.Contains(t, (*asked)[0], "\r\nAccept-Language: ja, en;q=0.5\r\n")
	require.Contains(t, (*asked)[0], "\r\nAccept: text/*\r\n")
	_, err := c.Do(t.Context(), fetch.Request{URL: base, Header: http.Header{"Accept-Language": {"de"}}})
	require.NoError(t, err)
	require.Contains(t, (*asked)[1], "\r\nAccept-Language: de\r\n")
	for _, bad := range []http.Header{{"X y": {"1"}}, {"X": {"a\nb"}}, {"Accept": {"a"}, "accept": {"b"}}} {
		_, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Header: bad})
		require.Error(t, err)
		_, err = c.Do(t.Context(), fetch.Request{URL: base, Header: bad})
		require.ErrorIs(t, err, fetch.BadURL)
	}
}

// A part of a page is not asked for in a coding, from the middle of which nobody could decode it.
func TestRangesAreNotCoded(t *testing.T) {
	base, asked := heads(t)
	c := newClient(t, fetch.Options{})
	for _, h := range []http.Header{{"range": {"bytes=0-1"}}, {"Range": {"bytes=0-1"}, "Accept-Encoding": {"gzip"}}, {"X": {"1"}}} {
		_, err := c.Do(t.Context(), fetch.Request{URL: base, Header: h})
		require.NoError(t, err)
	}
	require.NotContains(t, (*asked)[0], "Accept-Encoding")
	require.Contains(t, (*asked)[1], "\r\nAccept-Encoding: gzip\r\n", "as the caller wants it")
	require.Contains(t, (*asked)[2], "\r\nAccept-Encoding: gzip, ")
}

func TestHTTP1Only(t *testing.T) {
	base, opts := tlsServer(t, true)
	require.Equal(t, "HTTP/2.0", get(t, newClient(t, opts), base).Proto)
	opts.HTTP1 = true
	require.Equal(t, "HTTP/1.1", get(t, newClient(t, opts), base).Proto)
}

// proxied records the requests to a proxy.
type proxied struct{ asked []string }

// httpProxy is a proxy (RFC 9110, 9.3.6) that requires a password and knows one host.
func httpProxy(t *testing.T, behind string) (string, *proxied) {
	p := &proxied{}
	return listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			line, _, _ := strings.Cut(head, "\r\n")
			p.asked = append(p.asked, line)
			target := strings.Fields(line)[1]
			switch {
			case !strings.Contains(head, "Proxy-Authorization: Basic dTpw\r\n"):
				s.say("HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")
			case strings.Contains(target, "dead.test"):
				s.say("HTTP/1.1 502 Dead\r\nContent-Length: 0\r\n\r\n")
			case strings.HasPrefix(line, "CONNECT"):
				s.say("HTTP/1.1 200 OK\r\n\r\n")
				relay(s, behind)
				return
			default:
				s.say(ok + "Content-Length: 7\r\n\r\nproxied")
			}
		}
	}), p
}

func relay(s *session, to string) {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, s.br)
		conn.Close()
	}()
	_, _ = io.Copy(s, conn)
}

func TestHTTPProxy(t *testing.T) {
	secure, opts := tlsServer(t, true)
	behind := strings.TrimPrefix(secure, "https://")
	base, p := httpProxy(t, behind)
	proxy := strings.TrimPrefix(base, "http://")
	opts.Reach, opts.UserAgent = fetch.Public, "testbot (bot@a.test)"
	opts.TLSConfig.ServerName = "example.com"
	opts.Proxy = "http://u:p@" + proxy
	c := newClient(t, opts)
	r := get(t, c, "http://a.test/x?y")
	require.Equal(t, "proxied", string(r.Body))
	require.False(t, r.HeadExact)
	require.NotContains(t, string(r.RequestHead), "Proxy", "no password in the archive")
	require.Equal(t, "GET http://a.test/x?y HTTP/1.1", p.asked[0])
	r = get(t, c, "https://b.test/x")
	require.Equal(t, "over HTTP/2.0", string(r.Body))
	require.Equal(t, "CONNECT b.test:443 HTTP/1.1", p.asked[1])
	require.NotNil(t, r.TLS)
	_, body, err := viaTransport(t, c, request(t, "https://b.test/y"))
	require.NoError(t, err)
	require.Equal(t, "over HTTP/2.0", body)

	require.Equal(t, fetch.Connect, fails(t, c, "https://dead.test/").Kind)
	for _, url := range []string{"http://127.0.0.1/", "http://[::1]/", "http://0x7f.1/", "http://localhost/",
		"http://x.localhost./", "http://169.254.169.254/"} {
		require.Equal(t, fetch.Blocked, fails(t, c, url).Kind, url)
		req := request(t, url)
		_, _, err := viaTransport(t, c, req)
		require.ErrorIs(t, err, fetch.Blocked, url)
		req.URL.Opaque = "/a.test/"
		_, _, err = viaTransport(t, c, req)
		require.ErrorIs(t, err, fetch.Blocked, url)
	}
	require.Len(t, p.asked, 3, "none of these")
	opts.Proxy = "http://" + proxy
	c = newClient(t, opts)
	require.Equal(t, fetch.Proxy, fails(t, c, "http://a.test/").Kind)
	require.Equal(t, fetch.Proxy, fails(t, c, "https://b.test/").Kind)
	opts.Proxy, opts.TLSConfig = "http://u:p@"+proxy, &tls.Config{ServerName: "example.com"}
	e := fails(t, newClient(t, opts), "https://b.test/")
	require.Equal(t, fetch.TLS, e.Kind, "%v", e)
	opts.Proxy = "http://127.0.0.1:1"
	e = fails(t, newClient(t, opts), "http://a.test/")
	require.Equal(t, fetch.Proxy, e.Kind, "%v", e)
	require.True(t, e.Temporary())
	for _, answer := range []string{"", "HTTP/1.1 2", "SSH-2.0-x\r\n\r\n"} {
		opts.Proxy = listen(t, says(answer))
		e = fails(t, newClient(t, opts), "https://b.test/")
		require.Equal(t, fetch.Proxy, e.Kind, "%q: %v", answer, e)
	}
	for _, bad := range []string{"ftp://a.test", "a.test:3128", "http://[", "socks4://a.test"} {
		opts.Proxy = bad
		_, err := fetch.New(opts)
		require.Error(t, err, bad)
	}
}

// TestProxyFailuresLookLikeThoseOfHTTP: a layer above knows them by net/http's name for the
// operation, and does not blame the server.
func TestProxyFailuresLookLikeThoseOfHTTP(t *testing.T) {
	rejects := listen(t, says("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"))
	for _, proxy := range []string{
		"http://127.0.0.1:1", "socks5://127.0.0.1:1", "socks5h://127.0.0.1:1", rejects,
	} {
		c := newClient(t, fetch.Options{Proxy: proxy})
		for _, url := range []string{"http://127.0.0.1:2/", "https://127.0.0.1:2/"} {
			var op *net.OpError
			e := fails(t, c, url)
			require.Equal(t, fetch.Proxy, e.Kind, "%s through %s: %v", url, proxy, e)
			require.ErrorAs(t, e, &op)
			require.Equal(t, "proxyconnect", op.Op, "%s through %s: %v", url, proxy, e)
		}
	}
}

// socksProxy is a proxy (RFC 1928) that reports the requested targets.
func socksProxy(t *testing.T, behind string, reply byte) (string, *proxied) {
	p := &proxied{}
	return listen(t, func(s *session) {
		read := func(n int) []byte {
			b := make([]byte, n)
			_, _ = io.ReadFull(s.br, b)
			return b
		}
		methods := read(2)
		read(int(methods[1]))
		_, _ = s.Write([]byte{5, 0})
		head := read(4)
		var host string
		switch head[3] {
		case 1:
			host = net.IP(read(4)).String()
		case 3:
			host = string(read(int(read(1)[0])))
		case 4:
			host = net.IP(read(16)).String()
		}
		port := read(2)
		p.asked = append(p.asked, fmt.Sprint(host, ":", int(port[0])<<8|int(port[1])))
		_, _ = s.Write([]byte{5, reply, 0, 1, 0, 0, 0, 0, 0, 0})
		if reply == 0 {
			relay(s, behind)
		}
	}), p
}

func TestSOCKSProxy(t *testing.T) {
	behind := listen(t, says(ok+"\r\nbehind"))
	base, p := socksProxy(t, strings.TrimPrefix(behind, "http://"), 0)
	opts := fetch.Options{UserAgent: "testbot (bot@a.test)", Resolve: resolveTo("1.1.1.1")}
	opts.Proxy = strings.Replace(base, "http", "socks5", 1)
	c := newClient(t, opts)
	r := get(t, c, "http://a.test/")
	require.Equal(t, "behind", string(r.Body))
	require.Equal(t, "1.1.1.1:80", r.Addr.String(), "the address of the server, not of the proxy")
	require.True(t, r.HeadExact)
	require.Equal(t, []string{"1.1.1.1:80"}, p.asked, "an address, which Reach has checked")
	opts.Resolve = resolveTo("10.0.0.1")
	require.Equal(t, fetch.Blocked, fails(t, newClient(t, opts), "http://a.test/").Kind)
	require.Len(t, p.asked, 1)

	opts.Proxy = strings.Replace(base, "http", "socks5h", 1)
	c = newClient(t, opts)
	require.Equal(t, "behind", string(get(t, c, "http://b.test/").Body))
	require.Equal(t, "b.test:80", p.asked[1], "a name")
	require.Equal(t, fetch.Blocked, fails(t, c, "http://127.0.0.1/").Kind)

	opts.Resolve = resolveTo("1.1.1.1")
	for reply, kind := range map[byte]fetch.Kind{2: fetch.Proxy, 4: fetch.Connect, 5: fetch.Connect} {
		base, _ := socksProxy(t, "", reply)
		opts.Proxy = strings.Replace(base, "http", "socks5", 1)
		e := fails(t, newClient(t, opts), "http://a.test/")
		require.Equal(t, kind, e.Kind, "%v", e)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	opts.Proxy = "socks5://" + l.Addr().String()
	require.NoError(t, l.Close())
	require.Equal(t, fetch.Proxy, fails(t, newClient(t, opts), "http://a.test/").Kind)
}
