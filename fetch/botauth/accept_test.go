package botauth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch/botauth"
	"github.com/stretchr/testify/require"
)

// A site answers each request with the next field of Accept-Signature, and records who signed.
type site struct {
	t      testing.TB
	client *http.Client
	fields []string
	seen   []sender
}

func newSite(t testing.TB, opts botauth.Options, keys ...botauth.Key) (*site, *botauth.Signer) {
	signer := newSigner(t, opts, keys...)
	s, directory := &site{t: t}, host(signer)
	s.client = &http.Client{Transport: signer.RoundTripper(roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		m := message{
			header: r.Header, method: r.Method, scheme: r.URL.Scheme, authority: r.URL.Host, target: r.URL.RequestURI(),
		}
		who, err := m.verify(directory, opts.Form, time.Now())
		if err != nil {
			t.Errorf("%v: %v", r.Header, err)
		}
		s.seen = append(s.seen, who)
		answer := httptest.NewRecorder()
		if len(s.fields) > 0 {
			answer.Header()["Accept-Signature"] = strings.Split(s.fields[0], "\n")
			s.fields = s.fields[1:]
		}
		answer.WriteHeader(http.StatusForbidden)
		return answer.Result(), nil
	}))}
	return s, signer
}

// get returns how a request for url was signed.
func (s *site) get(url string, fields ...string) sender {
	s.t.Helper()
	s.fields = fields
	resp, err := s.client.Get(url)
	require.NoError(s.t, err)
	require.NoError(s.t, resp.Body.Close())
	require.Equal(s.t, http.StatusForbidden, resp.StatusCode, "the request is not repeated")
	return s.seen[len(s.seen)-1]
}

// A host's requirement decides how the next requests to it are signed, and those to no other.
func TestAcceptSignature(t *testing.T) {
	const member = `"signature-agent";key="sig1"`
	usual := []string{`"@authority"`, member}
	for _, tt := range []struct {
		name, field string
		label       string
		want        []string
	}{
		{"components in their order", `a=("@path" "@method" "@authority" "@query");created;expires`, "a",
			[]string{`"@path"`, `"@method"`, `"@authority"`, `"@query"`, `"signature-agent";key="a"`}},
		{"the target implies the authority", `a=("@target-uri" "@scheme")`, "a",
			[]string{`"@target-uri"`, `"@scheme"`, `"signature-agent";key="a"`}},
		{"its own member", `a=("signature-agent";key="a" "@authority")`, "a",
			[]string{`"signature-agent";key="a"`, `"@authority"`}},
		{"the whole field", `a=("@authority" "signature-agent")`, "a",
			[]string{`"@authority"`, `"signature-agent"`, `"signature-agent";key="a"`}},
		{"a tag and an algorithm", `*.1-x_=();alg="ed25519";tag="web-bot-auth"`, "*.1-x_",
			[]string{`"@authority"`, `"signature-agent";key="*.1-x_"`}},
		{"the second", `a=("@path");tag="other", b=( "@path"  "@authority" ) , c=()`, "b",
			[]string{`"@path"`, `"@authority"`, `"signature-agent";key="b"`}},
		{"two fields", "a=();tag=\"other\"\nb=(\"@path\")", "b", []string{`"@path"`, `"@authority"`, `"signature-agent";key="b"`}},

		{"another kind of signature", `a=("@authority");tag="app-123"`, "sig1", usual},
		{"another algorithm", `a=();alg="rsa-pss-sha512"`, "sig1", usual},
		{"another key", `a=();keyid="other"`, "sig1", usual},
		{"the example of RFC 9421", `sig1=("@method" "@target-uri" "@authority" "content-digest" "cache-control";req)` +
			`;keyid="test-key-rsa-pss";created;tag="app-123"`, "sig1", usual},
		{"an unknown parameter", `a=("@path");purpose="x"`, "sig1", usual},
		{"a nonce that is no string", `a=("@path");nonce=abc`, "sig1", usual},
		{"a field that is not sent", `a=("x-none")`, "sig1", usual},
		{"a field of net/http's", `a=("host")`, "sig1", usual},
		{"a component of responses", `a=("@status")`, "sig1", usual},
		{"a parameter of a component", `a=("@method";req)`, "sig1", usual},
		{"another label's agent", `a=("signature-agent";key="b")`, "sig1", usual},
		{"twice", `a=("@path" "@path")`, "sig1", usual},
		{"no inner list", `a="@path"`, "sig1", usual},
		{"an escaped quote", `a=("@path");nonce="\""`, "sig1", usual},
		{"a line break", "a=(\"@path\");nonce=\"\r\n\"", "sig1", usual},
		{"not closed", `a=("@path"`, "sig1", usual},
		{"too long", `a=("@path");nonce="` + strings.Repeat("x", botauth.MaxField) + `"`, "sig1", usual},
		{"empty", ``, "sig1", usual},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newSite(t, crawler)
			require.Equal(t, usual, s.get("https://a.test/p?q", tt.field).covered)
			for range 2 {
				who := s.get("https://a.test/p?q")
				require.Equal(t, tt.want, who.covered)
				require.Equal(t, tt.label, who.label)
			}
			for _, other := range []string{"https://b.test/", "https://a.test:8443/", "http://a.test/"} {
				require.Equal(t, usual, s.get(other).covered, other)
			}
		})
	}
}

func TestAcceptSignatureWithAString(t *testing.T) {
	s, _ := newSite(t, botauth.Options{Agent: "https://crawler.test", Form: botauth.OriginString})
	s.get("https://a.test/", `a=("@path" "signature-agent")`)
	require.Equal(t, []string{`"@path"`, `"signature-agent"`, `"@authority"`}, s.get("https://a.test/").covered)
}

// A request that is signed twice has one signature, which does not cover the other.
func TestSignTwice(t *testing.T) {
	s, signer := newSite(t, crawler)
	for _, field := range []string{`sig1=("signature")`, `sig1=("signature-input")`, `a=("x-y")`} {
		s.get("https://a.test/", field)
		req := httptest.NewRequest(http.MethodGet, "https://a.test/", nil)
		req.Header.Set("X-Y", "value")
		for range 2 {
			require.NoError(t, signer.Sign(req, time.Now()))
			who, err := message{header: req.Header, authority: "a.test"}.verify(host(signer), botauth.DirectoryURL, time.Now())
			require.NoError(t, err)
			require.Equal(t, field[0] == 'a', who.label == "a", "%+v", who)
		}
	}
}

// A nonce is used for one signature, and a newer requirement replaces an older one.
func TestNonceOfTheSite(t *testing.T) {
	s, _ := newSite(t, crawler)
	s.get("https://a.test/", `a=("@path");nonce="first"`)
	require.Equal(t, "first", s.get("https://a.test/").params["nonce"])
	own := s.get("https://a.test/")
	require.Equal(t, "a", own.label)
	require.NotContains(t, []string{"", "first"}, own.params["nonce"])
	s.get("https://a.test/", `a=();nonce="second"`, `b=();nonce="third"`)
	who := s.get("https://a.test/", `b=();nonce="third"`)
	require.Equal(t, []string{"a", "second"}, []string{who.label, who.params["nonce"]})
	who = s.get("https://a.test/")
	require.Equal(t, []string{"b", "third"}, []string{who.label, who.params["nonce"]})
}

// A site may ask for a key that it knows, while that key is valid.
func TestKeyOfTheSite(t *testing.T) {
	known := botauth.Key{Private: otherKey(1), Until: time.Now().Add(time.Hour)}
	next := botauth.Key{Private: otherKey(2), From: time.Now().Add(-time.Hour)}
	s, signer := newSite(t, crawler, known, next)
	require.Equal(t, next.ID(), s.get("https://a.test/", `a=();keyid="`+known.ID()+`"`).params["keyid"])
	require.Equal(t, known.ID(), s.get("https://a.test/").params["keyid"])
	require.NoError(t, signer.SetKeys(next))
	require.Equal(t, next.ID(), s.get("https://a.test/").params["keyid"])
}

// Hosts that ask for something cost a bounded amount of memory.
func TestRequirementsAreBounded(t *testing.T) {
	s, signer := newSite(t, crawler)
	for i := range botauth.MaxHosts + 100 {
		s.get(fmt.Sprintf("https://h%d.test/", i), `a=("@path")`)
	}
	require.Equal(t, botauth.MaxHosts, signer.Hosts())
	last := fmt.Sprintf("https://h%d.test/", botauth.MaxHosts+99)
	require.Contains(t, s.get(last).covered, `"@path"`, "the newest is remembered")

	// The memory that a component takes is many times its text.
	const short = 200
	field := "a=("
	for i := range short {
		field += fmt.Sprintf(`"%x"`, i)
	}
	require.Less(t, len(field)+1, botauth.MaxField)
	s.get(last, field+")")
	require.Less(t, signer.MostComponents(), short)

	// A server is reached by its port after any number of zeros.
	long := "https://a.test:" + strings.Repeat("0", botauth.MaxField) + "8080/"
	s.get(long, `a=("@path")`)
	require.NotContains(t, s.get(long).covered, `"@path"`, "not remembered")
}

func TestRequirementsAreSafeForConcurrentUse(t *testing.T) {
	signer := newSigner(t, crawler)
	next := roundTripperFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{Header: http.Header{"Accept-Signature": {`a=();nonce="x"`}}, Body: http.NoBody}, nil
	})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				req := httptest.NewRequest(http.MethodGet, fmt.Sprintf("https://h%d.test/", i%3), nil)
				resp, err := signer.RoundTripper(next).RoundTrip(req)
				if err != nil || resp.Body.Close() != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 3, signer.Hosts())
}

// FuzzAcceptSignature: whatever a site asks for, the next request has a signature of the working
// group's profile that verifies.
func FuzzAcceptSignature(f *testing.F) {
	f.Add(`sig1=("@method" "@target-uri" "x-y";bs);created;nonce="a b";tag="web-bot-auth", b=()`)
	f.Add(`a=("@path";key="x" "user-agent" "signature-agent");expires=?1;alg="ed25519"`)
	f.Add(`a=(),` + "\t" + `b=("@query-param";name="q")`)
	f.Fuzz(func(t *testing.T, field string) {
		s, _ := newSite(t, crawler)
		s.get("https://a.test/p?q", field)
		s.get("https://a.test/p?q")
	})
}
