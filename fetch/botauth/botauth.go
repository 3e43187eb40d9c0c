// Package botauth lets sites verify who a crawler is.
//
// A [Signer] signs each request (HTTP message signatures, RFC 9421, with Ed25519) by the
// conventions of Web Bot Auth. [Bot.Handler] serves what a site needs to verify the signature: the
// signed directory of the public keys, the address ranges of the crawler, and a page that describes
// the crawler in plain words.
//
//	agent := botauth.Options{Agent: "https://crawler.example"}
//	signer, err := botauth.New(agent, botauth.Key{Private: key})
//	client, err := fetch.New(fetch.Options{Wrap: signer.RoundTripper, …})
//	bot := botauth.Bot{Name: "examplebot", Purpose: "It builds a search index.", Signer: signer, …}
//	err = http.ListenAndServe(":80", bot.Handler()) // behind a proxy with TLS for crawler.example
//
// # Promise
//
// Keys are rotated without a gap: see [Signer.SetKeys]. The directory is signed only for the host
// of Options.Agent, so nobody can present the keys as those of another host. A request costs one
// signature, about 20 µs.
//
// # What it does not do
//
// It signs neither the path nor a body: the signature identifies the sender, not the request. It
// verifies no signatures, and stores no keys.
//
// The drafts are draft-ietf-webbotauth-httpsig-protocol for signatures and the directory,
// draft-illyes-webbotauth-jafar for address ranges and draft-illyes-webbotauth-cbcp for the page.
package botauth

import (
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
)

// Errors of options and keys. A request also fails with ErrKey if no key is valid at its time.
var (
	ErrKey   = errors.New("botauth: no valid Ed25519 key")
	ErrAgent = errors.New("botauth: agent is not an https origin such as https://crawler.example")
)

// DefaultTTL tolerates clocks that differ, and gives a thief little time.
const DefaultTTL = time.Minute

// Options says who signs.
type Options struct {
	// Agent is the https origin that serves the key directory; "" means that requests do not name
	// one, and sites must know the key already.
	Agent string
	// PlainAgent sends Signature-Agent as a plain string, as the drafts before October 2025 had it,
	// for sites that know no other form; false means the dictionary of the current draft.
	PlainAgent bool
	// TTL is how long a signature is valid. Zero or negative means DefaultTTL.
	TTL time.Duration
}

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
	agent string // an origin; "" if not said
	plain bool
	ttl   time.Duration
	keys  atomic.Pointer[[]namedKey]
}

// namedKey is a Key with its ID, which takes a hash.
type namedKey struct {
	Key
	id string
}

// New returns a Signer, or ErrKey or ErrAgent. See [Signer.SetKeys] about the keys.
func New(opts Options, keys ...Key) (*Signer, error) {
	s := &Signer{plain: opts.PlainAgent, ttl: opts.TTL}
	if s.ttl <= 0 {
		s.ttl = DefaultTTL
	}
	if opts.Agent != "" {
		var err error
		if s.agent, err = origin(opts.Agent); err != nil {
			return nil, err
		}
	}
	if err := s.SetKeys(keys...); err != nil {
		return nil, err
	}
	return s, nil
}

// origin returns raw in the form that RFC 6454, 6.2 gives an origin.
func origin(raw string) (string, error) {
	// It is sent in quotes, so it must be free of them and of what fields cannot hold.
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }
	u, err := url.Parse(raw)
	if err != nil || strings.ContainsFunc(raw, odd) || u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || strings.TrimPrefix(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", ErrAgent
	}
	return "https://" + strings.TrimSuffix(strings.ToLower(u.Host), ":443"), nil
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

// key returns the one to sign with at now, or nil.
func (s *Signer) key(now time.Time) *namedKey {
	keys := *s.keys.Load()
	for i, key := range keys {
		if !now.Before(key.From) && !key.expired(now) {
			return &keys[i]
		}
	}
	return nil
}

// Sign adds the fields of a signature made at now to req, or returns ErrKey.
func (s *Signer) Sign(req *http.Request, now time.Time) error {
	// Two requests within a second must differ, or a site might reject the second as a replay.
	return s.sign(req, now, rand.Text(), label)
}

// RoundTripper returns a layer around next that signs each request. It is what fetch.Options.Wrap
// wants.
func (s *Signer) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return roundTripper{signer: s, next: next}
}

type roundTripper struct {
	signer *Signer
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
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
	return t.next.RoundTrip(&signed)
}

// label is the name of the signature in its fields.
const label = "sig1"

// sign signs with a nonce. member is the key in the dictionary of Signature-Agent.
func (s *Signer) sign(req *http.Request, now time.Time, nonce, member string) error {
	key := s.key(now)
	if key == nil {
		return ErrKey
	}
	components, base := `"@authority"`, "\"@authority\": "+authority(req)+"\n"
	if s.agent != "" {
		component, field := `"signature-agent"`, `"`+s.agent+`"`
		value := field
		if !s.plain {
			component += `;key="` + member + `"`
			field = member + "=" + field
		}
		req.Header.Set("Signature-Agent", field)
		components += " " + component
		base += component + ": " + value + "\n"
	}
	const form = `(%s);created=%d;keyid="%s";alg="ed25519";expires=%d;nonce="%s";tag="web-bot-auth"`
	params := fmt.Sprintf(form, components, now.Unix(), key.id, now.Add(s.ttl).Unix(), nonce)
	req.Header.Set("Signature-Input", label+"="+params)
	req.Header.Set("Signature", label+"="+key.signature(base, params))
	return nil
}

// signature returns a signature over the lines of base, as a byte sequence of RFC 9651.
func (k *namedKey) signature(base, params string) string {
	sum := ed25519.Sign(k.Private, []byte(base+`"@signature-params": `+params))
	return ":" + base64.StdEncoding.EncodeToString(sum) + ":"
}

// authority returns the host of req, in the normal form of RFC 9421, 2.2.3.
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
