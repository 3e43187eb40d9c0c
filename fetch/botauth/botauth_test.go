package botauth_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/botauth"
	"github.com/stretchr/testify/require"
)

// testKey is the Ed25519 key of RFC 9421, B.1.4.
func testKey(t testing.TB) ed25519.PrivateKey {
	seed, err := base64.StdEncoding.DecodeString("n4Ni+HpISpVObnQMW0wOhCKROaIKqKtW/2ZYb2p9KcU=")
	require.NoError(t, err)
	return ed25519.NewKeyFromSeed(seed)
}

// crawler is who signs in these tests, and directoryURL where its keys are.
var crawler = botauth.Options{Agent: "https://crawler.test"}

const directoryURL = "https://crawler.test" + botauth.DirectoryPath

// testKeyID is the thumbprint of testKey, as in the drafts.
const testKeyID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

// otherKey returns a different key for each argument.
func otherKey(n byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed)
}

func newSigner(t testing.TB, opts botauth.Options, keys ...botauth.Key) *botauth.Signer {
	if len(keys) == 0 {
		keys = []botauth.Key{{Private: testKey(t)}}
	}
	s, err := botauth.New(opts, keys...)
	require.NoError(t, err)
	return s
}

// host returns a client whose requests all go to handler, as if over TLS.
func host(handler http.Handler) *http.Client {
	refuse := func(*http.Request, []*http.Request) error { return errors.New("discovery follows no redirect") }
	return &http.Client{CheckRedirect: refuse, Transport: roundTripperFunc(func(req *http.Request) (*http.Response, error) {
		answer := httptest.NewRecorder()
		got := req.Clone(req.Context())
		got.Host, got.RequestURI = req.URL.Host, req.URL.RequestURI()
		handler.ServeHTTP(answer, got)
		resp := answer.Result()
		resp.Request = req
		return resp, nil
	})}
}

func TestNew(t *testing.T) {
	_, err := botauth.New(crawler)
	require.ErrorIs(t, err, botauth.ErrKey)
	_, err = botauth.New(crawler, botauth.Key{})
	require.ErrorIs(t, err, botauth.ErrKey)
	for _, agent := range []string{
		"", "http://a.test", "a.test", "https://", `https://a".test/`, "https://a b.test/", "https://a.test:x/",
		"https://a.test/?q", "https://u@a.test", "https://:p@a.test", "https://a.test/#f", "data:,",
	} {
		_, err := botauth.New(botauth.Options{Agent: agent}, botauth.Key{Private: testKey(t)})
		require.ErrorIs(t, err, botauth.ErrAgent, agent)
	}
	for _, form := range []botauth.Form{botauth.Origin, botauth.OriginString} {
		_, err := botauth.New(botauth.Options{Agent: "https://a.test/keys", Form: form}, botauth.Key{Private: testKey(t)})
		require.ErrorIs(t, err, botauth.ErrAgent, "no other directory follows from an origin")
	}
	require.Equal(t, testKeyID, botauth.Key{Private: testKey(t)}.ID())
}

// A member of Signature-Agent is an absolute URL without parameters, whatever the operator writes.
func TestSignatureAgent(t *testing.T) {
	for _, tt := range []struct {
		agent string
		form  botauth.Form
		want  string
	}{
		{"https://Crawler.test", botauth.DirectoryURL, `sig1="https://crawler.test` + botauth.DirectoryPath + `"`},
		{"https://crawler.test:443/", botauth.DirectoryURL, `sig1="https://crawler.test` + botauth.DirectoryPath + `"`},
		{"https://crawler.test:8443/a b/\"keys\"", botauth.DirectoryURL, `sig1="https://crawler.test:8443/a%20b/%22keys%22"`},
		{"https://bücher.test/ü", botauth.DirectoryURL, `sig1="https://xn--bcher-kva.test/%C3%BC"`},
		{"https://[::1]/keys", botauth.DirectoryURL, `sig1="https://[::1]/keys"`},
		{"https://Crawler.test/", botauth.Origin, `sig1="https://crawler.test"`},
		{"https://crawler.test" + botauth.DirectoryPath, botauth.Origin, `sig1="https://crawler.test"`},
		{"https://crawler.test", botauth.OriginString, `"https://crawler.test"`},
	} {
		req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
		require.NoError(t, newSigner(t, botauth.Options{Agent: tt.agent, Form: tt.form}).Sign(req, time.Now()))
		require.Equal(t, tt.want, req.Header.Get("Signature-Agent"), "%+v", tt)
	}
}

// An independent verifier accepts all forms of Signature-Agent, only for the requested host and
// only while they are valid.
func TestVerifierOfTheDrafts(t *testing.T) {
	for _, tt := range []struct {
		name, url, authority string
		form                 botauth.Form
	}{
		{"a host", "https://Example.com/path?query", "example.com", botauth.DirectoryURL},
		{"an origin", "https://Example.com/path?query", "example.com", botauth.Origin},
		{"an origin as a string", "https://Example.com/path?query", "example.com", botauth.OriginString},
		{"the scheme's default port", "https://example.com:443/", "example.com", botauth.DirectoryURL},
		{"another port", "https://example.com:80/", "example.com:80", botauth.DirectoryURL},
		{"http", "http://example.com:80/", "example.com", botauth.OriginString},
		{"IPv6", "http://[::1]:8080/", "[::1]:8080", botauth.DirectoryURL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			signer := newSigner(t, botauth.Options{Agent: "https://crawler.test", Form: tt.form})
			site := host(signer)
			req, err := http.NewRequest(http.MethodGet, tt.url, nil)
			require.NoError(t, err)
			now := time.Now()
			require.NoError(t, signer.Sign(req, now))
			m := message{header: req.Header, authority: tt.authority}
			who, err := m.verify(site, tt.form, now)
			require.NoError(t, err, "%v", req.Header)
			require.Equal(t, directoryURL, who.url)
			_, err = message{header: req.Header, authority: "other.test"}.verify(site, tt.form, now)
			require.ErrorContains(t, err, "wrong signature")
			_, err = m.verify(site, tt.form, now.Add(botauth.DefaultTTL))
			require.ErrorContains(t, err, "not valid now")
			_, err = m.verify(host(newSigner(t, crawler, botauth.Key{Private: otherKey(1)})), tt.form, now)
			require.ErrorContains(t, err, "unknown key", "a directory without the key")
		})
	}
}

// What is signed is what net/http sends: the verifier sees only requests as they arrive.
func TestTheSignatureIsThatOfTheRequestAsSent(t *testing.T) {
	signer := newSigner(t, crawler)
	directory, hosts := host(signer), []string{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := received(r).verify(directory, botauth.DirectoryURL, time.Now())
		if err != nil {
			t.Errorf("%s %s: %v", r.Host, r.RequestURI, err)
		}
		hosts = append(hosts, r.Host)
		w.Header().Set("Accept-Signature", `s=("@target-uri" "@path" "@query" "@scheme" "@method" "user-agent")`)
	}))
	defer site.Close()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, site.Listener.Addr().String())
	}
	client := &http.Client{Transport: signer.RoundTripper(&http.Transport{DialContext: dial})}
	ask := func(url string, agents ...string) {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		require.NoError(t, err)
		req.Header["User-Agent"] = agents
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	urls := []string{
		"http://Example.test", "http://example.test:8080/a/../b?c=%20d&&", "http://example.test/%C3%BC/ü?", "http://example.test./",
		"http://bücher.test/", "http://Bücher.test:81//x", "http://bücher.test./y", "http://xn--bcher-kva.test/",
	}
	for _, url := range urls {
		ask(url, " two  spaces ")
		ask(url, " two  spaces ") // as the site requires
		ask(url, "only the first", "is sent")
		ask(url, "") // is not sent
	}
	require.Contains(t, hosts, "xn--bcher-kva.test.")

	guarded, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Wrap: signer.RoundTripper})
	require.NoError(t, err)
	defer guarded.CloseIdleConnections()
	for _, target := range []string{"", "/~%7e?%zz", "//two//slashes?//", "/a b?\"c"} {
		for range 2 {
			_, err := guarded.Get(t.Context(), site.URL+target)
			require.NoError(t, err)
		}
	}
	require.Len(t, hosts, 4*len(urls)+8)
}

// A key is announced before it is used, keys replace each other without a gap, and an expired key
// is removed from the directory.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		old := botauth.Key{Private: otherKey(1), Until: now.Add(2 * time.Hour)}
		next := botauth.Key{Private: otherKey(2), From: now.Add(time.Hour)}
		past := botauth.Key{Private: otherKey(3), Until: now.Add(-time.Hour)}
		signer := newSigner(t, crawler, next, past, old)
		site := host(signer)
		signedBy := func() string {
			req := httptest.NewRequest(http.MethodGet, "https://a.test/", nil)
			require.NoError(t, signer.Sign(req, time.Now()))
			_, err := message{header: req.Header, authority: "a.test"}.verify(site, botauth.DirectoryURL, time.Now())
			require.NoError(t, err)
			return req.Header.Get("Signature-Input")
		}
		listed := func() string {
			_, body := read(t, site, "https://crawler.test/")
			return body
		}
		require.Contains(t, signedBy(), old.ID())
		require.Contains(t, listed(), next.ID(), "the next key is announced")
		require.NotContains(t, listed(), past.ID())
		time.Sleep(time.Hour - time.Nanosecond)
		require.Contains(t, signedBy(), old.ID())
		time.Sleep(time.Nanosecond)
		require.Contains(t, signedBy(), next.ID())
		require.Contains(t, listed(), old.ID(), "signatures with the old key may be in flight")
		time.Sleep(time.Hour)
		require.Contains(t, signedBy(), next.ID())
		require.NotContains(t, listed(), old.ID())

		require.NoError(t, signer.SetKeys(past))
		req := httptest.NewRequest(http.MethodGet, "https://a.test/", nil)
		require.ErrorIs(t, signer.Sign(req, time.Now()), botauth.ErrKey)
		require.Empty(t, req.Header)
		require.ErrorIs(t, signer.SetKeys(), botauth.ErrKey)
	})
}

// If the last key has expired, the error is ours, not the site's.
func TestWithoutAKeyNothingIsSent(t *testing.T) {
	signer := newSigner(t, crawler, botauth.Key{Private: testKey(t), Until: time.Unix(1, 0)})
	asked := false
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer site.Close()
	client, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Wrap: signer.RoundTripper})
	require.NoError(t, err)
	_, err = client.Get(t.Context(), site.URL)
	require.ErrorIs(t, err, botauth.ErrKey)
	require.ErrorIs(t, err, fetch.BadURL)
	require.False(t, asked)
}

func TestSignaturesDiffer(t *testing.T) {
	s, seen := newSigner(t, crawler), map[string]bool{}
	for range 100 {
		req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
		require.NoError(t, s.Sign(req, time.Unix(0, 0)))
		seen[req.Header.Get("Signature")] = true
	}
	require.Len(t, seen, 100)
}

func TestRoundTripperDoesNotModifyTheRequest(t *testing.T) {
	var got http.Header
	next := roundTripperFunc(func(req *http.Request) (*http.Response, error) {
		got = req.Header
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	for _, header := range []http.Header{nil, {"X": {"y"}}} {
		req, err := http.NewRequest(http.MethodGet, "https://a.test/", nil)
		require.NoError(t, err)
		req.Header = header
		resp, err := newSigner(t, crawler).RoundTripper(next).RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.NotEmpty(t, got.Get("Signature"))
		require.Empty(t, req.Header.Get("Signature"))
		require.Equal(t, header.Get("X"), got.Get("X"))
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestWhatNoLayerShouldDo leaves it to the http.Client and the layer below to complain.
func TestWhatNoLayerShouldDo(t *testing.T) {
	signer := newSigner(t, crawler)
	_, err := signer.RoundTripper(http.DefaultTransport).RoundTrip(&http.Request{Method: http.MethodGet})
	require.ErrorContains(t, err, "nil Request.URL")
	nothing := roundTripperFunc(func(*http.Request) (*http.Response, error) { return nil, nil })
	_, err = (&http.Client{Transport: signer.RoundTripper(nothing)}).Get("http://a.test/")
	require.ErrorContains(t, err, "nil *Response with a nil error")
}

// These are the Ed25519 vectors of draft-ietf-webbotauth-httpsig-protocol. Their agents are origins.
func TestVectorsOfTheDraft(t *testing.T) {
	for _, tt := range []struct {
		opts             botauth.Options
		nonce, signature string
	}{
		{
			botauth.Options{
				Agent: "https://signature-agent.test", Form: botauth.Origin, TTL: (4889289600 - 1735689600) * time.Second,
			},
			"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
			"RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==",
		}, {
			botauth.Options{Agent: "https://signature-agent.test", Form: botauth.OriginString, TTL: time.Hour},
			"e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==",
			"jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==",
		},
	} {
		req, err := http.NewRequest(http.MethodGet, "https://example.com/path/to/resource", nil)
		require.NoError(t, err)
		signer := newSigner(t, tt.opts)
		require.True(t, signer.SignWith(req, time.Unix(1735689600, 0), tt.nonce, "agent2"))
		require.Equal(t, "agent2=:"+tt.signature+":", req.Header.Get("Signature"), "%+v", tt.opts)
	}
}

func BenchmarkSign(b *testing.B) {
	s := newSigner(b, crawler)
	req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.Sign(req, time.Unix(1735689600, 0)))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "signatures/s")
}

// A TTL below the unit of its times would make signatures that are never valid.
func TestOddTTLs(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for ttl, want := range map[time.Duration]string{
		-1: "1700000060", 1: "1700000001", time.Second - 1: "1700000001", 2 * time.Second: "1700000002",
	} {
		req, err := http.NewRequest(http.MethodGet, "https://site.test/", nil)
		require.NoError(t, err)
		require.NoError(t, newSigner(t, botauth.Options{Agent: "https://crawler.test", TTL: ttl}).Sign(req, now))
		require.Contains(t, req.Header.Get("Signature-Input"), ";expires="+want+";")
	}
}
