package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// The defaults of Options, and limits that cannot be changed.
const (
	// A crawler can wait longer than a person would, but each wait holds a connection and a
	// goroutine.
	DefaultTimeout = 30 * time.Second

	// Ten seconds leave room for two lost packets in a row.
	DefaultConnectTimeout = 10 * time.Second

	// Pages that are generated on demand start late.
	DefaultHeadTimeout = 20 * time.Second

	// Hardly any page is larger than 1 MiB, and anything above ten is not a page.
	DefaultMaxBody = 10 << 20

	// Enough for a dozen of the largest pages at a time, both encoded and decoded.
	DefaultMaxMemory = 256 << 20

	// Servers refuse request heads of more than 8 to 64 KiB.
	DefaultMaxHeader = 256 << 10

	// Markup shrinks by a factor of 5 to 20, a decompression bomb by up to 1,032.
	DefaultMaxRatio = 100

	// Slower than any modem that has browsed the web, so only a server that stalls on purpose is
	// cut.
	DefaultMinRate = 1 << 10

	// A polite crawler has one request in flight per host and visits many hosts. A second idle
	// connection would only cost both sides a file descriptor.
	DefaultMaxIdle        = 512
	DefaultMaxIdlePerHost = 1

	// MaxURL is the length in bytes beyond which Get refuses a URL. RFC 9110 asks for at least
	// 8,000.
	MaxURL = 8 << 10

	// MaxFields is the limit on the fields in a response's head. Sites send a few dozen. Each takes
	// about 150 bytes of memory, however short it is on the wire. Those of interim responses count
	// over HTTP/1; over HTTP/2 each counts for 32 bytes of MaxHeader.
	MaxFields = 1000

	// Grace is the time that a body may take whatever its size and Options.MinRate, and again for
	// being decoded whatever is left of Options.Timeout.
	Grace = 10 * time.Second

	// IdleTimeout is how long an idle connection is kept: longer than the usual politeness delay,
	// and shorter than by most servers. One that the server has closed costs an attempt.
	IdleTimeout = 30 * time.Second
)

// Options identifies the crawler, and limits where it may connect and what a response may cost.
type Options struct {
	// UserAgent is sent with each request. It must contain a contact: an http(s) URL or an e-mail
	// address. "" means a default under Loopback and is an error otherwise.
	UserAgent string
	// Header has fields for each request, such as Accept-Language. It may replace the default
	// Accept; nil means none.
	Header http.Header
	// Reach says which addresses may be dialed; 0 means Public.
	Reach Reach

	// Timeout limits a whole Get, from the name look-up to the last byte of the body; 0 means
	// DefaultTimeout, negative means no limit. If it ends a body, what has come is still decoded,
	// for at most Grace.
	Timeout time.Duration
	// ConnectTimeout limits each step to a connection: the name look-up, the TCP connection and the
	// TLS handshake; 0 means DefaultConnectTimeout, negative means that of Timeout.
	ConnectTimeout time.Duration
	// HeadTimeout limits the time from the request, when it is handed to the connection, to the
	// end of the response's head; 0 means DefaultHeadTimeout, negative means no limit of its own.
	HeadTimeout time.Duration

	// MaxBody limits the bytes of a body, both on the wire and decoded; 0 means DefaultMaxBody,
	// negative means no limit. A Get also ends a body at a quarter of MaxMemory.
	MaxBody int64
	// MaxMemory limits the bytes of all bodies together, from the time they are read to
	// [Client.Release]; 0 means DefaultMaxMemory, negative means no limit. The first 64 KiB of each
	// body, encoded and decoded, do not count, nor does what waits for a reader: up to 1 MiB of each
	// body over HTTP/2. The windows of zstd count, those of Brotli do not. A body whose windows exceed
	// the limit is decoded all the same, one at a time. A Get that needs more memory waits for it, up to
	// its Timeout.
	MaxMemory int64
	// MaxHeader limits the bytes of a response's head, interim responses included, and is at most
	// 1 GiB. Zero or negative means DefaultMaxHeader.
	MaxHeader int64
	// MaxRatio limits the decoded bytes per byte of a compressed body, above a free allowance of
	// 64 KiB; 0 means DefaultMaxRatio, negative means no limit.
	MaxRatio int
	// MinRate is the least speed of a body in bytes per second: n bytes may take Grace plus
	// n/MinRate. 0 means DefaultMinRate, negative means no limit.
	MinRate int64

	// Resolve looks up the addresses of a host name; nil means net.DefaultResolver. It is called
	// without a lock, under the time limits of the Get. If a name does not exist, it should return
	// a net.DNSError of that Name, or of none, with IsNotFound: other errors count as failures of the
	// resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Proxy is the URL of a proxy, with user name and password if needed; "" means none, whatever
	// the environment says. Every guard but Reach holds through any proxy. Reach holds through
	// socks5: the Client resolves names and gives the proxy an address. With http, https and
	// socks5h the proxy resolves names, and Reach checks only addresses written in URLs. Reach does
	// not apply to the proxy's own address. With http and https, a request to [Client.Transport] for an
	// http URL must have the Host of its URL.
	Proxy string
	// HTTP1 disables HTTP/2; false means that HTTP/2 is offered.
	HTTP1 bool
	// Dial connects to addr, an IP address that Reach allows with a port, or the Proxy's address as
	// written; nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLSConfig is the base of the configuration of TLS connections; nil means the defaults of
	// crypto/tls. If it lists NextProtos, those decide about HTTP/2.
	TLSConfig *tls.Config

	// Brotli opens a decoder of the content coding br; nil means that br is not requested. Set it
	// to New of the sub-package brotli. It must be safe for concurrent use. Its readers are closed.
	Brotli func(r io.Reader) (io.ReadCloser, error)
	// Wrap puts a layer above the transport and its guards, such as one that signs requests; nil
	// means none. It must not modify a request that it is given, and must close each body that it
	// takes from GetBody, since the exchange lasts until then. A layer that sends requests of its
	// own, such as package robotshttp, belongs above Client.Transport instead: here its requests
	// would count as attempts of the page. If it reads a body before it returns, only Timeout limits
	// that: neither MinRate nor MaxBody does.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Jar keeps cookies; nil means that none are kept or sent. The one in the sub-package cookies
	// is bounded, and reads files of cookies.
	Jar http.CookieJar

	// MaxIdle limits the idle connections; 0 means DefaultMaxIdle, negative means that none is
	// kept. Beyond a positive limit, net/http closes those of HTTP/2 only after IdleTimeout: a
	// crawler that visits n hosts a second holds up to n connections for each second of that.
	// [Client.CloseIdleConnections] closes them at once, and HTTP1 avoids them.
	MaxIdle int
	// MaxIdlePerHost limits the idle connections of a host, and of each Request.Addr of it; 0 means
	// DefaultMaxIdlePerHost, negative means that none is kept.
	MaxIdlePerHost int
}

// loopbackAgent is for demonstrations and tests on this machine, where no contact is needed.
const loopbackAgent = "spinneret (loopback)"

// contact is lenient: it reminds an operator, and does not validate addresses.
var contact = regexp.MustCompile(`https?://[\pL\pN\[]|[^\s@<>()]+@[^\s@<>()]+`)

// check rejects options that would make every request fail, or leave site owners without a contact.
func (o Options) check() error {
	if o.Reach > Anywhere {
		return fmt.Errorf("fetch: unknown reach %d", o.Reach)
	}
	if !isFieldValue(o.UserAgent) {
		return fmt.Errorf("fetch: control character in %q", o.UserAgent)
	}
	if err := checkFields(o.Header); err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	for name := range o.Header {
		if http.CanonicalHeaderKey(name) == "User-Agent" {
			return errors.New("fetch: User-Agent in Options.Header: set Options.UserAgent")
		}
	}
	if o.Reach == Loopback {
		return nil
	}
	if strings.TrimSpace(o.UserAgent) == "" {
		return fmt.Errorf(wantAgent, NoAgent)
	}
	if !contact.MatchString(o.UserAgent) {
		return fmt.Errorf(wantAgent, NoContact)
	}
	return nil
}

const wantAgent = `%w: set Options.UserAgent to a name and a URL or e-mail address where site owners ` +
	`can reach you, such as "mybot/1.0 (+https://example.org/bot)"`

// isToken reports whether s may stand in a list without quotes (RFC 9110, 5.6.2).
func isToken(s string) bool {
	other := func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}
	return s != "" && !strings.ContainsFunc(s, other)
}

// withDefaults requires that check has passed.
func (o Options) withDefaults() Options {
	if o.UserAgent == "" {
		o.UserAgent = loopbackAgent
	}
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	fill(&o.Timeout, DefaultTimeout)
	fill(&o.ConnectTimeout, DefaultConnectTimeout)
	if o.ConnectTimeout < 0 {
		o.ConnectTimeout = o.Timeout // net/http goes on dialing when a request is over
	}
	fill(&o.HeadTimeout, DefaultHeadTimeout)
	fill(&o.MaxBody, DefaultMaxBody)
	fill(&o.MaxMemory, DefaultMaxMemory)
	fill(&o.MaxHeader, DefaultMaxHeader)
	fill(&o.MaxRatio, DefaultMaxRatio)
	fill(&o.MinRate, DefaultMinRate)
	fill(&o.MaxIdle, DefaultMaxIdle)
	fill(&o.MaxIdlePerHost, DefaultMaxIdlePerHost)
	if o.MaxBody < 0 {
		o.MaxBody = maxLimit
	}
	o.MaxBody = min(o.MaxBody, maxLimit)
	if o.MaxHeader < 0 {
		o.MaxHeader = DefaultMaxHeader
	}
	o.MaxHeader = min(o.MaxHeader, 1<<30)
	return o
}

// fill sets an option that was left zero.
func fill[T int | int64 | time.Duration](option *T, value T) {
	if *option == 0 {
		*option = value
	}
}
