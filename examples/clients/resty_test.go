package clients

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-resty/resty/v2"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// restyThrough returns a client that uses a proxy and a configuration of TLS, such as one with a
// client certificate. SetProxy, SetCertificates, SetRootCertificate and SetTLSClientConfig need an
// *http.Transport. Over the layers they only log an error, and requests go out without the setting.
func restyThrough(
	proxy string, config *tls.Config, o fetch.Options, kept *archive.Archive,
) (*resty.Client, error) {
	o.Proxy, o.TLSConfig = proxy, config
	transport, err := layers(o, kept)
	if err != nil {
		return nil, err
	}
	return resty.New().SetTransport(transport), nil
}

// received is a request as a server got it.
type received struct {
	server, url  string
	certificates int // of the client
}

// proxied is a site with http and https, and a proxy that leads nowhere else.
type proxied struct {
	options fetch.Options // to reach them
	own     *tls.Config   // with a certificate for clients

	mu       sync.Mutex
	requests []received
}

func (p *proxied) serve(name string) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		v := received{server: name, url: r.URL.String()}
		if r.TLS != nil {
			v.certificates = len(r.TLS.PeerCertificates)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests = append(p.requests, v)
	}
}

// take returns the requests since the last call.
func (p *proxied) take() []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.requests = nil }()
	return p.requests
}

func startProxied(t *testing.T) *proxied {
	t.Helper()
	p, network := new(proxied), memnet.New()
	listen := func(name, addr string) *httptest.Server {
		server := httptest.NewUnstartedServer(p.serve(name))
		require.NoError(t, server.Listener.Close())
		var err error
		server.Listener, err = network.Listen(addr)
		require.NoError(t, err)
		t.Cleanup(server.Close)
		return server
	}
	listen("proxy", "proxy.test:8080").Start()
	listen("site", "127.0.0.1:80").Start()
	secure := listen("site", "127.0.0.1:443")
	secure.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	secure.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	p.own = &tls.Config{RootCAs: roots, Certificates: secure.TLS.Certificates}
	p.options = fetch.Options{
		UserAgent: userAgent, Dial: network.Dial, Reach: fetch.Loopback,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		TLSConfig: &tls.Config{RootCAs: roots},
	}
	return p
}

// TestRestySettings shows what settings of resty do over the layers, and what to do instead.
func TestRestySettings(t *testing.T) {
	const proxy, page = "http://proxy.test:8080", "http://example.com/page"
	synctest.Test(t, func(t *testing.T) {
		p := startProxied(t)
		kept, err := archive.Open(t.TempDir(), archive.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, kept.Close()) }()
		get := func(client *resty.Client, url string) []received {
			_, err := client.R().Get(url)
			require.NoError(t, err)
			client.GetClient().CloseIdleConnections()
			return p.take()
		}
		transport, err := layers(p.options, kept)
		require.NoError(t, err)
		direct := []received{{"site", "/robots.txt", 0}, {"site", "/page", 0}}

		log := new(loud)
		client := resty.New().SetLogger(log).SetTransport(transport).SetCertificates(p.own.Certificates...)
		require.Equal(t, loud{"current transport is not an *http.Transport instance"}, *log)
		require.Equal(t, direct, get(client, "https://example.com/page"), "without the certificate")

		client.SetProxy(proxy)
		require.Len(t, *log, 2)
		require.False(t, client.IsProxySet())
		require.Equal(t, direct, get(client, page), "without the proxy")

		log = new(loud)
		client = resty.New().SetLogger(log).SetProxy(proxy).SetTransport(transport)
		require.Empty(t, *log, "SetTransport drops the settings of the transport before")
		require.True(t, client.IsProxySet())
		require.Equal(t, direct[1:], get(client, page), "without the proxy")

		client, err = restyThrough("", p.own, p.options, kept)
		require.NoError(t, err)
		require.Equal(t, []received{{"site", "/robots.txt", 1}, {"site", "/page", 1}},
			get(client, "https://example.com/page"))

		client, err = restyThrough(proxy, nil, p.options, kept)
		require.NoError(t, err)
		require.Equal(t, []received{{"proxy", "http://example.com/robots.txt", 0}, {"proxy", page, 0}},
			get(client, page))
	})
}

// loud is a logger of resty that keeps the errors.
type loud []string

func (l *loud) Errorf(format string, v ...any) { *l = append(*l, fmt.Sprintf(format, v...)) }
func (*loud) Warnf(string, ...any)             {}
func (*loud) Debugf(string, ...any)            {}
