package botauth_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
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
	return &http.Client{Transport: roundTripperFunc(func(req *http.Request) (*http.Response, error) {
		answer := httptest.NewRecorder()
		got := req.Clone(req.Context())
		got.Host, got.RequestURI = req.URL.Host, req.URL.RequestURI()
		handler.ServeHTTP(answer, got)
		return answer.Result(), nil
	})}
}

func TestNew(t *testing.T) {
	_, err := botauth.New(botauth.Options{})
	require.ErrorIs(t, err, botauth.ErrKey)
	_, err = botauth.New(botauth.Options{}, botauth.Key{})
	require.ErrorIs(t, err, botauth.ErrKey)
	for _, agent := range []string{
		"http://a.test", "a.test", "https://", "https:///x", `https://a.test/"`, "https://a.test/\n",
		"https://a.test/path", "https://a.test/?q", "https://u@a.test", "https://a.test/#f", "https://ü.test",
	} {
		_, err := botauth.New(botauth.Options{Agent: agent}, botauth.Key{Private: testKey(t)})
		require.ErrorIs(t, err, botauth.ErrAgent, agent)
	}
	require.Equal(t, testKeyID, botauth.Key{Private: testKey(t)}.ID())
}

// An independent verifier accepts both forms of Signature-Agent, only for the requested host and
// only while they are valid.
func TestVerifierOfTheDrafts(t *testing.T) {
	const origin = "https://crawler.test"
	for _, tt := range []struct {
		name, url, authority string
		plain                bool
	}{
		{"a host", "https://Example.com/path?query", "example.com", false},
		{"plain string", "https://Example.com/path?query", "example.com", true},
		{"the scheme's default port", "https://example.com:443/", "example.com", false},
		{"another port", "https://example.com:80/", "example.com:80", false},
		{"http", "http://example.com:80/", "example.com", true},
		{"IPv6", "http://[::1]:8080/", "[::1]:8080", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			signer := newSigner(t, botauth.Options{Agent: origin, PlainAgent: tt.plain})
			site := host(botauth.Bot{Signer: signer}.Handler())
			req, err := http.NewRequest(http.MethodGet, tt.url, nil)
			require.NoError(t, err)
			now := time.Now()
			require.NoError(t, signer.Sign(req, now))
			require.Equal(t, tt.plain, strings.HasPrefix(req.Header.Get("Signature-Agent"), `"`))
			who, err := verify(site, req.Header, tt.authority, now)
			require.NoError(t, err, "%v", req.Header)
			require.Equal(t, origin, who)
			_, err = verify(site, req.Header, "other.test", now)
			require.ErrorContains(t, err, "wrong signature")
			_, err = verify(site, req.Header, tt.authority, now.Add(botauth.DefaultTTL))
			require.ErrorContains(t, err, "not valid now")
			_, err = verify(host(newSigner(t, botauth.Options{Agent: origin}, botauth.Key{Private: otherKey(1)})),
				req.Header, tt.authority, now)
			require.ErrorContains(t, err, "unknown key", "a directory without the key")
		})
	}
}

// A key is announced before it is used, keys replace each other without a gap, and an expired key
// is removed from the directory.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		old := botauth.Key{Private: otherKey(1), Until: now.Add(2 * time.Hour)}
		next := botauth.Key{Private: otherKey(2), From: now.Add(time.Hour)}
		past := botauth.Key{Private: otherKey(3), Until: now.Add(-time.Hour)}
		signer := newSigner(t, botauth.Options{Agent: "https://crawler.test"}, next, past, old)
		site := host(signer)
		signedBy := func() string {
			req := httptest.NewRequest(http.MethodGet, "https://a.test/", nil)
			require.NoError(t, signer.Sign(req, time.Now()))
			_, err := verify(site, req.Header, "a.test", time.Now())
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
	signer := newSigner(t, botauth.Options{}, botauth.Key{Private: testKey(t), Until: time.Unix(1, 0)})
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
	s, seen := newSigner(t, botauth.Options{}), map[string]bool{}
	for range 100 {
		req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
		require.NoError(t, s.Sign(req, time.Unix(0, 0)))
		require.Empty(t, req.Header.Get("Signature-Agent"))
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
		resp, err := newSigner(t, botauth.Options{}).RoundTripper(next).RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.NotEmpty(t, got.Get("Signature"))
		require.Empty(t, req.Header.Get("Signature"))
		require.Equal(t, header.Get("X"), got.Get("X"))
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// These are the Ed25519 vectors of draft-ietf-webbotauth-httpsig-protocol, except for the
// signature's label.
func TestVectorsOfTheDraft(t *testing.T) {
	for _, tt := range []struct {
		name             string
		opts             botauth.Options
		nonce, signature string
	}{
		{
			"Signature-Agent is a dictionary",
			botauth.Options{Agent: "https://signature-agent.test", TTL: (4889289600 - 1735689600) * time.Second},
			"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
			"RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==",
		}, {
			"Signature-Agent is a string",
			botauth.Options{Agent: "https://signature-agent.test", PlainAgent: true, TTL: time.Hour},
			"e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==",
			"jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==",
		}, {
			"no Signature-Agent",
			botauth.Options{TTL: (4889289600 - 1735689600) * time.Second},
			"zIW8+cdmA3vdYagbxojpONwa/l0EKJ/O3/wD486VvsQjO/RxPaSt6ZxvQaMcQzNnqKN/mQ6hpGiFro2L2qkz5A==",
			"QKN4fTdIYfh82fvoZCQiQA1weuozfCS/Led2zTMbewMMqH8PI2Wsy/5c4ao6B6D09nraNQdBNOADg8aM1MqfCg==",
		},
	} {
		req, err := http.NewRequest(http.MethodGet, "https://example.com/path/to/resource", nil)
		require.NoError(t, err)
		signer := newSigner(t, tt.opts)
		require.NoError(t, signer.SignWith(req, time.Unix(1735689600, 0), tt.nonce, "agent2"))
		require.Equal(t, "sig1=:"+tt.signature+":", req.Header.Get("Signature"), tt.name)
	}
}

func BenchmarkSign(b *testing.B) {
	s := newSigner(b, botauth.Options{Agent: "https://crawler.test"})
	req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.Sign(req, time.Unix(1735689600, 0)))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "signatures/s")
}

func TestATTLThatIsNegativeIsTheDefault(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	req, err := http.NewRequest(http.MethodGet, "https://site.test/", nil)
	require.NoError(t, err)
	require.NoError(t, newSigner(t, botauth.Options{TTL: -1}).Sign(req, now))
	require.Contains(t, req.Header.Get("Signature-Input"), ";expires=1700000060;")
}
