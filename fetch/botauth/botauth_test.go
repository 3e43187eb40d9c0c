package botauth_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch/botauth"
	"github.com/stretchr/testify/require"
)

// testKey is the Ed25519 key of RFC 9421, B.1.4.
func testKey(t testing.TB) ed25519.PrivateKey {
	seed, err := base64.StdEncoding.DecodeString("n4Ni+HpISpVObnQMW0wOhCKROaIKqKtW/2ZYb2p9KcU=")
	require.NoError(t, err)
	return ed25519.NewKeyFromSeed(seed)
}

func newSigner(t testing.TB, opts botauth.Options) *botauth.Signer {
	s, err := botauth.New(testKey(t), opts)
	require.NoError(t, err)
	return s
}

func TestNew(t *testing.T) {
	_, err := botauth.New(nil, botauth.Options{})
	require.ErrorIs(t, err, botauth.ErrKey)
	for _, agent := range []string{
		"http://a.test", "a.test", "https://", "https:///x", `https://a.test/"x`, "https://a.test/\n",
	} {
		_, err := botauth.New(testKey(t), botauth.Options{Agent: agent})
		require.ErrorIs(t, err, botauth.ErrAgent, agent)
	}
}

// The thumbprint is the one that the drafts of Web Bot Auth give for this key.
func TestDirectory(t *testing.T) {
	s := newSigner(t, botauth.Options{})
	require.Equal(t, "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", s.KeyID())
	var doc struct{ Keys []map[string]string }
	require.NoError(t, json.Unmarshal(s.Directory(), &doc))
	require.Equal(t, []map[string]string{{
		"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": s.KeyID(),
		"x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs",
	}}, doc.Keys)
}

// verify checks a signed request the way a site would, from its fields alone.
func verify(t testing.TB, h http.Header, authority string) bool {
	t.Helper()
	params, ok := strings.CutPrefix(h.Get("Signature-Input"), "sig1=")
	require.True(t, ok)
	var base strings.Builder
	covered, _, _ := strings.Cut(strings.TrimPrefix(params, "("), ")")
	for name := range strings.FieldsSeq(covered) {
		value := authority
		if name != `"@authority"` {
			value = h.Get(strings.Trim(name, `"`))
		}
		base.WriteString(name + ": " + value + "\n")
	}
	base.WriteString(`"@signature-params": ` + params)
	text := strings.TrimSuffix(strings.TrimPrefix(h.Get("Signature"), "sig1=:"), ":")
	signature, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return ed25519.Verify(testKey(t).Public().(ed25519.PublicKey), []byte(base.String()), signature)
}

func TestSign(t *testing.T) {
	tests := []struct{ name, url, authority, agent string }{
		{"a host", "https://Example.com/path?query", "example.com", ""},
		{"the scheme's port", "https://example.com:443/", "example.com", ""},
		{"another port", "https://example.com:80/", "example.com:80", ""},
		{"http", "http://example.com:80/", "example.com", "https://crawler.test"},
		{"IPv6", "http://[::1]:8080/", "[::1]:8080", "https://crawler.test"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodGet, tt.url, nil)
			require.NoError(t, err)
			newSigner(t, botauth.Options{Agent: tt.agent}).Sign(req, time.Unix(1735689600, 0))
			require.True(t, verify(t, req.Header, tt.authority), "%v", req.Header)
			require.False(t, verify(t, req.Header, "other.test"), "the signature is for one host")
			input := req.Header.Get("Signature-Input")
			require.Contains(t, input, ";created=1735689600;")
			require.Contains(t, input, ";expires=1735689660;")
			require.Contains(t, input, `;tag="web-bot-auth"`)
			require.Equal(t, tt.agent != "", strings.Contains(input, `"signature-agent"`))
			require.Equal(t, tt.agent, strings.Trim(req.Header.Get("Signature-Agent"), `"`))
		})
	}
}

func TestSignaturesDiffer(t *testing.T) {
	s, seen := newSigner(t, botauth.Options{}), map[string]bool{}
	for range 100 {
		req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
		s.Sign(req, time.Unix(0, 0))
		seen[req.Header.Get("Signature")] = true
	}
	require.Len(t, seen, 100)
}

func TestRoundTripperLeavesTheRequestAlone(t *testing.T) {
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
		require.True(t, verify(t, got, "a.test"))
		require.Empty(t, req.Header.Get("Signature"))
		require.Equal(t, header.Get("X"), got.Get("X"))
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The test vector of draft-meunier-web-bot-auth-architecture, but for the signature's label.
func TestVectorOfTheDraft(t *testing.T) {
	s := newSigner(t, botauth.Options{Agent: "https://signature-agent.test", TTL: time.Hour})
	req, err := http.NewRequest(http.MethodGet, "https://example.com/path/to/resource", nil)
	require.NoError(t, err)
	s.SignWith(req, time.Unix(1735689600, 0), "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4"+
		"lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==")
	require.Equal(t, "sig1=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDs"+
		"i6nJKuHxUi/5Syp3rLWBA==:", req.Header.Get("Signature"))
}

func BenchmarkSign(b *testing.B) {
	s := newSigner(b, botauth.Options{Agent: "https://crawler.test"})
	req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
	b.ReportAllocs()
	for b.Loop() {
		s.Sign(req, time.Unix(1735689600, 0))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "signatures/s")
}
