package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// The limits that a zero Options stands for, and that of URLs.
const (
	// A crawler has other pages to get meanwhile, so it can wait longer than a person would, but
	// each wait holds a connection and a goroutine.
	DefaultTimeout = 30 * time.Second

	// Ten seconds leave room for two lost packets in a row, in each of the steps before the
	// request is sent.
	DefaultConnectTimeout = 10 * time.Second
	DefaultTLSTimeout     = 10 * time.Second

	// Pages that are made on demand take their time to begin.
	DefaultHeadTimeout = 20 * time.Second

	// Hardly any page is larger than 1 MiB; what is larger than ten is no page.
	DefaultMaxBody = 10 << 20

	// A dozen of the largest pages at a time, with what they decode to.
	DefaultMaxMemory = 256 << 20

	// Servers themselves refuse heads of more than 8 to 64 KiB.
	DefaultMaxHeader = 256 << 10

	// Sites send a few dozen. Each takes some 150 bytes of memory, however short it is on the
	// wire.
	DefaultMaxFields = 1000

	// Markup shrinks by a factor of 5 to 20, a bomb by up to 1,032.
	DefaultMaxRatio = 100

	// Slower than any modem of the web's time, so that only a server which means to is cut.
	DefaultMinRate = 1 << 10
	DefaultGrace   = 10 * time.Second

	// A polite crawler has one request at a time on a host, so a second idle connection is of no
	// use to it; it visits many hosts, and each connection costs both sides a file descriptor.
	DefaultMaxIdle        = 512
	DefaultMaxIdlePerHost = 1

	// Longer than the usual delay between two requests to a host, and shorter than the time after
	// which most servers hang up, which would cost an attempt.
	DefaultIdleTimeout = 30 * time.Second

	// MaxURL is the length in bytes beyond which Get refuses a URL. RFC 9110 asks for at least
	// 8,000.
	MaxURL = 8 << 10
)

// Options says who asks, whom it may ask and how much an answer may cost.
type Options struct {
	// UserAgent is sent with each request and must name a contact, an http(s) URL or an e-mail
	// address. "" means a default under Loopback and is refused otherwise.
	UserAgent string
	// From is sent as the From field, an e-mail address; "" means no such field.
	From string
	// Header has fields for each request, such as Accept-Language, and may replace the Accept that
	// is sent by default; nil means none.
	Header http.Header
	// Referrer is the policy by which a Referer that a request has is sent in full, as an origin
	// or not at all, by its name in the W3C's Referrer Policy; "" means what browsers do,
	// "strict-origin-when-cross-origin". No request has a Referer by itself.
	Referrer string
	// Reach says which addresses may be dialled; 0 means Public.
	Reach Reach

	// Timeout limits a whole Get, from resolving to the last byte of the body; 0 means
	// DefaultTimeout, negative means no limit.
	Timeout time.Duration
	// ConnectTimeout limits the name look-up, and again the TCP connection; 0 means
	// DefaultConnectTimeout, negative means no limit of its own.
	ConnectTimeout time.Duration
	// TLSTimeout limits the TLS handshake; 0 means DefaultTLSTimeout, negative means no limit of
	// its own.
	TLSTimeout time.Duration
	// HeadTimeout limits the wait from the request, when it is handed to the connection, to the
	// end of the response's head; 0 means DefaultHeadTimeout, negative means no limit of its own.
	HeadTimeout time.Duration

	// MaxBody limits the bytes of the body, those on the wire and those decoded; 0 means
	// DefaultMaxBody, negative means no limit.
	MaxBody int64
	// MaxMemory limits the bytes that the bodies of all responses take together, from when they
	// are read until they are released; 0 means DefaultMaxMemory, negative means no limit. The
	// first
	// 64 KiB of each body, and of what it decodes to, do not count. A Get that needs more waits for
	// it, until Timeout at most.
	MaxMemory int64
	// MaxHeader limits the bytes of a response's head, interim responses included; 0 means
	// DefaultMaxHeader, and so does a negative one: there is always a limit.
	MaxHeader int64
	// MaxFields limits the fields in a response's head, interim responses included; 0 means
	// DefaultMaxFields, negative means no limit but MaxHeader.
	MaxFields int
	// MaxRatio limits the decoded bytes per byte of a compressed body, above a free allowance of
	// 64 KiB; 0 means DefaultMaxRatio, negative means no limit.
	MaxRatio int
	// MinRate is the speed in bytes per second that a body must keep up: n bytes may take Grace
	// plus n/MinRate. 0 means DefaultMinRate, negative means no limit.
	MinRate int64
	// Grace is the part of the time for a body that does not depend on its size; 0 means
	// DefaultGrace.
	Grace time.Duration

	// Resolve looks up the addresses of a host name; nil means net.DefaultResolver. It is called
	// without any lock held, under the time limits of the Get that needs it.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Proxy is the URL of a proxy, with a user name and password if it wants them; "" means none,
	// and the environment is not asked. All guards but one hold through any proxy. With socks5 the
	// Client looks names up and hands the proxy addresses, so that Reach holds, too. With http,
	// https and socks5h the proxy looks names up, and Reach judges only addresses that are written
	// in URLs. Reach does not judge the address of the proxy itself.
	Proxy string
	// AllowBadPorts allows ports of other services, such as 25 and 6667, that the Fetch Standard
	// blocks; false means that they are refused.
	AllowBadPorts bool
	// HTTP1 means that HTTP/2 is not offered; false means that it is.
	HTTP1 bool
	// Dial opens a connection to addr, which is an IP address with a port that Reach allows, or
	// the address of the Proxy as it is written; nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLSConfig is the base of each TLS connection's configuration; nil means the defaults of
	// crypto/tls. Where it lists NextProtos, they decide on HTTP/2.
	TLSConfig *tls.Config

	// Brotli opens a decoder of the content coding br: [New] of the sub-package brotli; nil means
	// that br is not asked for, but gzip, deflate and zstd alone. It is called by several
	// goroutines at a time. Its readers are always closed.
	Brotli func(r io.Reader) (io.ReadCloser, error)
	// Wrap puts a layer around what sends the requests, such as one that signs them; nil means
	// none. The guards lie below it. It must not change a request that it is given.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Jar keeps cookies; nil means that none are kept or sent. Its methods are called by each Get.
	Jar http.CookieJar
	// Cookies is a file of cookies in Netscape's format, as browser extensions, curl and wget
	// write it, which New reads into the Jar; nil means none.
	Cookies io.Reader

	// MaxIdle limits the connections kept for a next request; 0 means DefaultMaxIdle, negative
	// means that none is kept.
	MaxIdle int
	// MaxIdlePerHost limits them per host; 0 means DefaultMaxIdlePerHost, negative means that none
	// is kept.
	MaxIdlePerHost int
	// IdleTimeout is how long one is kept; 0 means DefaultIdleTimeout, negative means no limit.
	IdleTimeout time.Duration
}

// loopbackAgent serves demonstrations and tests on this machine, where nobody needs a contact.
const loopbackAgent = "spinneret (loopback)"

// contact is generous: it is there to remind an operator, not to judge addresses.
var contact = regexp.MustCompile(`https?://[\pL\pN\[]|[^\s@<>()]+@[^\s@<>()]+`)

// check refuses what would make every request fail or leave nobody to complain to.
func (o Options) check() error {
	if o.Reach > Anywhere {
		return fmt.Errorf("fetch: unknown reach %d", o.Reach)
	}
	for _, value := range []string{o.UserAgent, o.From} {
		if !isFieldValue(value) {
			return fmt.Errorf("fetch: control character in %q", value)
		}
	}
	for name, values := range o.Header {
		if err := checkField(name, values); err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
	}
	if err := checkReferrer(o.Referrer); err != nil {
		return err
	}
	if o.Cookies != nil && o.Jar == nil {
		return errors.New("fetch: Cookies without a Jar")
	}
	if o.Reach == Loopback {
		return nil
	}
	if strings.TrimSpace(o.UserAgent) == "" {
		return NoAgent
	}
	if !contact.MatchString(o.UserAgent) {
		return NoContact
	}
	return nil
}

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
	if o.Referrer == "" {
		o.Referrer = defaultReferrer
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
	fill(&o.TLSTimeout, DefaultTLSTimeout)
	fill(&o.HeadTimeout, DefaultHeadTimeout)
	fill(&o.MaxBody, DefaultMaxBody)
	fill(&o.MaxMemory, DefaultMaxMemory)
	fill(&o.MaxHeader, DefaultMaxHeader)
	fill(&o.MaxFields, DefaultMaxFields)
	fill(&o.MaxRatio, DefaultMaxRatio)
	fill(&o.MinRate, DefaultMinRate)
	fill(&o.Grace, DefaultGrace)
	fill(&o.MaxIdle, DefaultMaxIdle)
	fill(&o.MaxIdlePerHost, DefaultMaxIdlePerHost)
	fill(&o.IdleTimeout, DefaultIdleTimeout)
	if o.MaxBody < 0 {
		// One is left to tell a body that ends at the limit from one that goes on.
		o.MaxBody = math.MaxInt64 - 1
	}
	if o.MaxHeader < 0 {
		o.MaxHeader = DefaultMaxHeader
	}
	if o.MaxFields < 0 {
		o.MaxFields = math.MaxInt
	}
	o.Grace = min(max(o.Grace, 0), math.MaxInt64/4)
	return o
}

// fill sets what was left zero.
func fill[T int | int64 | time.Duration](option *T, value T) {
	if *option == 0 {
		*option = value
	}
}
