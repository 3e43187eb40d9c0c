// Package botauth lets sites verify who a crawler is.
//
// A [Signer] signs each request (HTTP message signatures, RFC 9421, with Ed25519) by the
// conventions of Web Bot Auth. It also serves the signed directory of the public keys, which a site
// needs to verify the signatures.
//
//	agent := botauth.Options{Agent: "https://crawler.example"}
//	signer, err := botauth.New(agent, botauth.Key{Private: key})
//	client, err := fetch.New(fetch.Options{Wrap: signer.RoundTripper, …})
//	http.Handle(botauth.DirectoryPath, signer) // on crawler.example, with TLS
//
// # Promise
//
// Requests are signed as draft-ietf-webbotauth-httpsig-protocol-01 says. [Options.Form] has the
// forms of earlier drafts, which some deployed verifiers still require. A host can say in a field
// Accept-Signature what a signature must cover, which key it knows and which nonce it wants. Later
// requests to that host are signed like that if they can be. The request that it answered is not
// repeated: whether and when to, after the host's delay, is for the caller to decide.
//
// Keys are rotated without a gap: see [Signer.SetKeys]. The directory is signed only for the host
// of Options.Agent, so nobody can present the keys as those of another host. Discovery follows no
// redirects, so the directory must be served at exactly that URL.
//
// A request costs one signature, about 20 µs. What 1,000 hosts ask for is remembered, in at most 3
// KiB for each. Beyond 1,000 a host is forgotten, and has to ask again.
//
// # What it does not do
//
// Unless a host asks for more, a signature covers neither the path nor the method: it identifies
// the sender, not the request. No digests of bodies are made. It verifies no signatures, and stores
// no keys.
package botauth

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// Errors of options and keys. A request also fails with ErrKey if no key is valid at its time.
var (
	ErrKey   = errors.New("botauth: no valid Ed25519 key")
	ErrAgent = errors.New("botauth: agent is not an https URL of a key directory in the Form's form")
)

// DefaultTTL tolerates clocks that differ, and gives a thief little time.
const DefaultTTL = time.Minute

// Options says who signs.
type Options struct {
	// Agent is the https URL of the key directory, by which sites know the crawler. A URL without a
	// path means the one with [DirectoryPath]; "" means ErrAgent.
	Agent string
	// Form is how Signature-Agent names the directory; 0 means DirectoryURL.
	Form Form
	// TTL is how long a signature is valid: at least a second, the unit of its times. Zero or negative
	// means DefaultTTL.
	TTL time.Duration
}

// Form is a form of the field Signature-Agent. No form is understood by every site:
// docs/web-bot-auth.md says who wants which. The origin forms need a directory at [DirectoryPath].
type Form uint8

// The forms, from the newest to the oldest.
const (
	DirectoryURL Form = iota // sig1="https://crawler.example/keys": since October 2026
	Origin                   // sig1="https://crawler.example": since October 2025
	OriginString             // "https://crawler.example"
)

// Key is a signing key that is valid for a time.
type Key struct {
	Private ed25519.PrivateKey
	// From is when it is first used. It is published before that. The zero Time means always.
	From time.Time
	// Until is when it is last used and published. The zero Time means forever.
	Until time.Time
}

// ID returns the name of the key: the thumbprint of its public half (RFC 7638, RFC 8037).
func (k Key) ID() string {
	hash := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, k.public()))
	return base64.RawURLEncoding.EncodeToString(hash[:])
}

// public returns the public half of the key as JSON Web Keys have it.
func (k Key) public() string {
	return base64.RawURLEncoding.EncodeToString(k.Private.Public().(ed25519.PublicKey))
}

func (k Key) expired(now time.Time) bool { return !k.Until.IsZero() && !now.Before(k.Until) }

// Signer signs requests. Its methods are safe for concurrent use.
type Signer struct {
	agent     string // as Signature-Agent has it, in quotes
	authority string // of the directory
	plain     bool   // Signature-Agent is a string, not a dictionary
	ttl       time.Duration
	keys      atomic.Pointer[[]namedKey]
	required  requirements
}

// namedKey is a Key with its ID, which takes a hash.
type namedKey struct {
	Key
	id string
}

// New returns a Signer, or ErrKey or ErrAgent. See [Signer.SetKeys] about the keys.
func New(opts Options, keys ...Key) (*Signer, error) {
	s := &Signer{plain: opts.Form == OriginString, ttl: max(opts.TTL, time.Second)}
	if opts.TTL <= 0 {
		s.ttl = DefaultTTL
	}
	if err := s.setAgent(opts); err != nil {
		return nil, err
	}
	if err := s.SetKeys(keys...); err != nil {
		return nil, err
	}
	return s, nil
}

// setAgent checks the URL of the directory, and writes it as the form wants it.
func (s *Signer) setAgent(opts Options) error {
	u, err := weburl.Parse(opts.Agent, nil)
	// Sites ignore a query when they compare, so it would not tell two crawlers apart.
	if err != nil || u.Scheme != "https" || u.Username+u.Password != "" || u.HasQuery ||
		u.HasFragment || strings.Contains(u.Host, `"`) {
		return ErrAgent
	}
	if u.Path == "/" {
		u.Path = DirectoryPath
	}
	if opts.Form != DirectoryURL {
		if u.Path != DirectoryPath {
			return ErrAgent // no other follows from the origin
		}
		u.Path = ""
	}
	s.agent = `"` + u.String() + `"`
	s.authority = strings.TrimSuffix(u.Host+":"+u.Port, ":")
	return nil
}

// SetKeys replaces the keys. Requests are signed with the key whose From is the latest that has
// passed, and the directory has every key that has not expired. To rotate, set the old key and a
// new one whose From is a few days ahead, so that sites that cache the directory learn the new key
// before it is used. Then let the old one expire.
func (s *Signer) SetKeys(keys ...Key) error {
	if len(keys) == 0 {
		return ErrKey
	}
	named := make([]namedKey, len(keys))
	for i, key := range keys {
		if len(key.Private) != ed25519.PrivateKeySize {
			return ErrKey
		}
		named[i] = namedKey{key, key.ID()}
	}
	slices.SortStableFunc(named, func(a, b namedKey) int { return b.From.Compare(a.From) })
	s.keys.Store(&named)
	return nil
}

// key returns the one to sign with at now, or nil. id is the name of the only one that will do; ""
// means any.
func (s *Signer) key(now time.Time, id string) *namedKey {
	keys := *s.keys.Load()
	for i, key := range keys {
		if !now.Before(key.From) && !key.expired(now) && (id == "" || id == key.id) {
			return &keys[i]
		}
	}
	return nil
}

// RoundTripper returns a layer around next that signs each request. It is what fetch.Options.Wrap
// wants, and with a fetch.Client that is the only place for it. Above Client.Transport it would sign
// fields that the client changes: if package archivehttp is above, too, the client requests more
// codings than the signed Accept-Encoding, and a site that wants that covered rejects the signature.
//
// If a kept connection turns out to be dead, net/http sends a request once more, with the same
// signature and nonce. A site that has seen it the first time may reject it as a replay.
func (s *Signer) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return roundTripper{signer: s, next: next}
}

type roundTripper struct {
	signer *Signer
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL == nil {
		return t.next.RoundTrip(req) // which says so
	}
	signed := *req // the caller's request must not change
	signed.Header = maps.Clone(req.Header)
	if signed.Header == nil {
		signed.Header = make(http.Header)
	}
	if err := t.signer.Sign(&signed, time.Now()); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	resp, err := t.next.RoundTrip(&signed)
	if err == nil && resp != nil {
		t.signer.required.note(origin(req), resp.Header["Accept-Signature"])
	}
	return resp, err
}

// Sign adds the fields of a signature made at now to req, or returns ErrKey. If the host has said
// in a response to [Signer.RoundTripper] what a signature must be like, it is like that.
func (s *Signer) Sign(req *http.Request, now time.Time) error {
	// Two requests within a second must differ, or a site might reject the second as a replay.
	usual := requirement{label: "sig1", components: []string{`"@authority"`}, nonce: rand.Text()}
	if r, found := s.required.take(origin(req)); found {
		r.nonce = cmp.Or(r.nonce, usual.nonce)
		if s.sign(req, now, r) {
			return nil
		}
	}
	if !s.sign(req, now, usual) {
		return ErrKey
	}
	return nil
}

// sign signs req as required, and reports whether that was possible.
func (s *Signer) sign(req *http.Request, now time.Time, r requirement) bool {
	key := s.key(now, r.keyID)
	if key == nil {
		return false
	}
	agent, member := s.agent, `"signature-agent"`
	if !s.plain {
		agent = r.label + "=" + agent
		member += `;key="` + r.label + `"`
	}
	req.Header.Set("Signature-Agent", agent)
	if !slices.Contains(r.components, member) {
		r.components = append(slices.Clip(r.components), member)
	}
	var base strings.Builder
	for _, c := range r.components {
		value, ok := s.agent, c == member
		if !ok {
			value, ok = component(req, c)
		}
		if !ok {
			return false
		}
		base.WriteString(c + ": " + value + "\n")
	}
	const form = `(%s);created=%d;keyid="%s";alg="ed25519";expires=%d;nonce="%s";tag="web-bot-auth"`
	covered, expires := strings.Join(r.components, " "), now.Add(s.ttl)
	params := fmt.Sprintf(form, covered, now.Unix(), key.id, expires.Unix(), r.nonce)
	req.Header.Set("Signature-Input", r.label+"="+params)
	req.Header.Set("Signature", r.label+"="+key.signature(base.String(), params))
	return true
}

// signature returns a signature over the lines of base, as a byte sequence of RFC 9651.
func (k *namedKey) signature(base, params string) string {
	sum := ed25519.Sign(k.Private, []byte(base+`"@signature-params": `+params))
	return ":" + base64.StdEncoding.EncodeToString(sum) + ":"
}

// component returns the value of a covered component of req (RFC 9421, 2), or false if it is not
// known before net/http sends the request, or not supported.
func component(req *http.Request, id string) (value string, ok bool) {
	switch id {
	case `"@authority"`:
		return authority(req), true
	case `"@method"`:
		return cmp.Or(req.Method, http.MethodGet), true
	case `"@scheme"`:
		return req.URL.Scheme, true
	case `"@target-uri"`, `"@path"`, `"@query"`:
		// RequestURI returns what is sent, which for some requests is the absolute form.
		target := strings.TrimPrefix(req.URL.RequestURI(), req.URL.Scheme+"://"+req.URL.Host)
		path, query, _ := strings.Cut(target, "?")
		return map[string]string{
			`"@target-uri"`: origin(req) + target, `"@path"`: path, `"@query"`: "?" + query,
		}[id], true
	}
	values := slices.Clone(req.Header[http.CanonicalHeaderKey(strings.Trim(id, `"`))])
	if id == `"user-agent"` && len(values) > 0 { // net/http sends the first one, unless it is empty
		values = slices.DeleteFunc(values[:1], func(v string) bool { return v == "" })
	}
	for i, v := range values {
		values[i] = strings.Trim(v, " \t")
	}
	value = strings.Join(values, ", ")
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	return value, len(values) > 0 && !slices.Contains(unsent, id) && !strings.ContainsFunc(value, odd)
}

// unsent are fields of which net/http sends others than those in Header, or none, and those that a
// new signature replaces.
var unsent = []string{
	`"connection"`, `"content-length"`, `"host"`, `"keep-alive"`, `"proxy-connection"`, `"signature"`,
	`"signature-input"`, `"te"`, `"trailer"`, `"transfer-encoding"`, `"upgrade"`,
}

// origin returns the scheme and the authority of req.
func origin(req *http.Request) string { return req.URL.Scheme + "://" + authority(req) }

// authority returns the host of req as net/http sends it, in the normal form of RFC 9421, 2.2.3.
func authority(req *http.Request) string {
	host := strings.ToLower(cmp.Or(req.Host, req.URL.Host))
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		unicode := strings.TrimRight((&url.URL{Host: host}).Hostname(), ".")
		if name, err := weburl.HostName(unicode); err == nil {
			host = name + host[len(unicode):]
		}
	}
	port := ":80"
	if req.URL.Scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(host, port)
}
