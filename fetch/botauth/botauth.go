// Package botauth signs requests, so that a site can tell a crawler from those who only use its
// name.
//
// A [Signer] adds an HTTP message signature (RFC 9421, Ed25519) over the host that is asked, by the
// conventions of Web Bot Auth. A site looks the key up in the document that [Signer.Directory]
// returns, which the crawler's owner serves at [DirectoryPath]:
//
//	signer, err := botauth.New(key, botauth.Options{Agent: "https://crawler.example"})
//	client, err := fetch.New(fetch.Options{Wrap: signer.RoundTripper, …})
//
// # What it does not do
//
// It signs neither the path nor a body: the signature says who asks, not what for. It verifies no
// signatures, and keeps no keys: a key that is replaced needs a new Signer.
package botauth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// What New says about options that cannot be.
var (
	ErrKey   = errors.New("botauth: no Ed25519 private key")
	ErrAgent = errors.New("botauth: agent is no https URL")
)

// Where the key directory is looked for on the host of Options.Agent, and what it is sent as.
const (
	DirectoryPath = "/.well-known/http-message-signatures-directory"
	DirectoryType = "application/http-message-signatures-directory+json"
)

// DefaultTTL leaves room for clocks that differ, and little time to a thief.
const DefaultTTL = time.Minute

// Options says who signs.
type Options struct {
	// Agent is the https URL of the host that serves the key directory; "" means that it is not
	// said, and sites must know the key already.
	Agent string
	// TTL is how long a signature is good; 0 means DefaultTTL.
	TTL time.Duration
}

// Signer signs requests with one key. Its methods are safe for concurrent use.
type Signer struct {
	key   ed25519.PrivateKey
	keyID string
	agent string // as a field's value; "" if not said
	ttl   time.Duration
}

// New returns a Signer, or ErrKey or ErrAgent.
func New(key ed25519.PrivateKey, opts Options) (*Signer, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, ErrKey
	}
	s := &Signer{key: key, ttl: opts.TTL}
	if s.ttl == 0 {
		s.ttl = DefaultTTL
	}
	if opts.Agent != "" {
		// It stands in quotes, so that it must be free of them and of what fields cannot hold.
		odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }
		host, https := strings.CutPrefix(opts.Agent, "https://")
		if !https || host == "" || host[0] == '/' || strings.ContainsFunc(host, odd) {
			return nil, ErrAgent
		}
		s.agent = `"` + opts.Agent + `"`
	}
	hash := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, s.public()))
	s.keyID = base64.RawURLEncoding.EncodeToString(hash[:])
	return s, nil
}

// KeyID returns the name of the key: the thumbprint of its public half (RFC 7638).
func (s *Signer) KeyID() string { return s.keyID }

// Directory returns the key directory with this key alone, as JSON.
func (s *Signer) Directory() []byte {
	type key struct {
		Type  string `json:"kty"`
		Curve string `json:"crv"`
		X     string `json:"x"`
		ID    string `json:"kid"`
		Use   string `json:"use"`
	}
	doc := map[string][]key{"keys": {{"OKP", "Ed25519", s.public(), s.keyID, "sig"}}}
	text, _ := json.Marshal(doc) // strings can always be marshalled
	return text
}

// Sign sets the fields of a signature made at now on req.
func (s *Signer) Sign(req *http.Request, now time.Time) {
	// Two requests within a second must differ, or a site might take the second for a copy.
	s.sign(req, now, rand.Text())
}

// RoundTripper returns a layer around next that signs each request, and leaves the one that it was
// given as it is. It is what fetch.Options.Wrap wants.
func (s *Signer) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return roundTripper{signer: s, next: next}
}

type roundTripper struct {
	signer *Signer
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	signed := *req
	signed.Header = maps.Clone(req.Header)
	if signed.Header == nil {
		signed.Header = make(http.Header)
	}
	t.signer.Sign(&signed, time.Now())
	return t.next.RoundTrip(&signed)
}

func (s *Signer) sign(req *http.Request, now time.Time, nonce string) {
	components, base := `("@authority")`, "\"@authority\": "+authority(req)+"\n"
	if s.agent != "" {
		components = `("@authority" "signature-agent")`
		base += "\"signature-agent\": " + s.agent + "\n"
		req.Header.Set("Signature-Agent", s.agent)
	}
	const form = `%s;created=%d;keyid="%s";alg="ed25519";expires=%d;nonce="%s";tag="web-bot-auth"`
	expires := now.Add(s.ttl).Unix()
	params := fmt.Sprintf(form, components, now.Unix(), s.keyID, expires, nonce)
	signature := ed25519.Sign(s.key, []byte(base+"\"@signature-params\": "+params))
	req.Header.Set("Signature-Input", "sig1="+params)
	req.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(signature)+":")
}

// authority returns the host that req asks, in the normal form of RFC 9421, 2.2.3.
func authority(req *http.Request) string {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	port := ":80"
	if req.URL.Scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(host), port)
}

// public returns the public half of the key as JSON Web Keys have it.
func (s *Signer) public() string {
	return base64.RawURLEncoding.EncodeToString(s.key.Public().(ed25519.PublicKey))
}
