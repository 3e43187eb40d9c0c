package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/httpwire"
	"github.com/spinneret-go/spinneret/internal/neterr"
)

// maxAddrs limits the addresses that are tried per host. A name can have hundreds.
const maxAddrs = 4

// peer is a connection that knows the address that was dialed, even if Options.Dial returns
// something without a network address. Over TLS, it also bounds what the server may send unasked:
// net/http drops frames of HTTP/2 of unknown types, but reads all of them and logs each, and crypto/tls
// reads megabytes of session tickets for each byte of a response.
type peer struct {
	net.Conn
	addr    netip.AddrPort // of the server; invalid if only a proxy knows it
	perByte int64          // the room for each byte of a body; set before metered
	metered atomic.Bool    // whether room counts
	room    atomic.Int64   // bytes that may still come

	mu      sync.Mutex // guards what follows
	streams int        // requests on the connection
	joined  int64      // requests since there was none
}

// The room that a server gets: for an idle connection, for the head of a response, for the first
// part of a body, which comes before anybody reads it, and for each byte of a body that was read.
// Frames of a single byte take 32 each, and after bodyRoom few servers of HTTP/2 send such. Those of
// HTTP/1 that do are older, and have a chunk in a record of up to 69 bytes, with TLS 1.2 and CBC. For each
// piece of a request's body, the server may update two windows. Pings make no room, since a server may
// send them without end.
const (
	idleRoom     = 64 << 10
	headRoom     = 64 << 10 // and MaxHeader
	bodyRoom     = 2 * streamBuffer
	roomPerByte1 = 72  // HTTP/1
	roomPerByte2 = 4   // HTTP/2
	roomPerPiece = 100 // and a byte for 16
)

// errRoom is the error of a connection over which too much came unasked.
var errRoom = errors.New("too many frames or records beside those of responses")

// peerOf returns the peer below a connection of the transport, or nil.
func peerOf(conn net.Conn) *peer {
	switch c := conn.(type) {
	case *peer:
		return c
	case *httpwire.Conn:
		return peerOf(c.Conn)
	case *tls.Conn:
		return peerOf(c.NetConn())
	}
	return nil
}

// meter begins to count what comes over a new connection.
func (p *peer) meter(http2 bool) {
	p.perByte = roomPerByte1
	if http2 {
		p.perByte = roomPerByte2
	}
	p.room.Store(idleRoom)
	p.metered.Store(true)
}

// join adds a request to a connection with TLS, and gives the server room for n bytes.
func (p *peer) join(n int64, http2 bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.metered.Load() {
		p.meter(http2) // a connection through a proxy, whose handshake net/http has done
	}
	p.streams++
	p.joined++
	p.room.Add(n)
}

// leave removes a request of join. What was not used must not add up. But after the last request,
// parts of bodies that nobody wanted may still come.
func (p *peer) leave() {
	if p == nil || !p.metered.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams--; p.streams == 0 {
		p.room.Store(min(p.room.Load(), idleRoom+(1+p.joined)*streamBuffer))
		p.joined = 0
	}
}

// read gives the server room for what is beside n bytes of a body.
func (p *peer) read(n int) {
	if p != nil && p.metered.Load() {
		p.room.Add(p.perByte * int64(n))
	}
}

// expect gives the server room for n more bytes.
func (p *peer) expect(n int64) {
	if p != nil && p.metered.Load() {
		p.room.Add(n)
	}
}

// flooded reports whether the server has sent more than it had room for.
func (p *peer) flooded() bool { return p != nil && p.metered.Load() && p.room.Load() < 0 }

// Read implements net.Conn.
func (p *peer) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if p.metered.Load() && p.room.Add(-int64(n)) < 0 {
		return 0, errRoom
	}
	return n, err
}

// RemoteAddr implements net.Conn. It returns the address of the server, and not that of a proxy,
// which layers above would count and record as the server's.
func (p *peer) RemoteAddr() net.Addr {
	if !p.addr.IsValid() {
		return unknownAddr{}
	}
	return net.TCPAddrFromAddrPort(p.addr)
}

// unknownAddr is the address of a server that only a proxy knows.
type unknownAddr struct{}

func (unknownAddr) Network() string { return "tcp" }

func (unknownAddr) String() string { return "" }

// dialPlain is the transport's DialContext. HTTP/1.x runs over what it returns.
func (c *Client) dialPlain(ctx context.Context, network, hostport string) (net.Conn, error) {
	hostport = unpin(ctx, hostport)
	p, err := c.connect(ctx, network, hostport)
	if err != nil {
		return nil, err
	}
	return c.recorded(p), nil
}

// recorded returns a connection of HTTP/1.x that records heads, up to the length at which the
// transport gives up.
func (c *Client) recorded(conn net.Conn) *httpwire.Conn {
	return httpwire.New(conn, int(c.opts.MaxHeader), MaxFields)
}

// dialTLS is the transport's DialTLSContext. It does the handshake itself, so that the recorder
// sits on top of TLS and sees plain text. HTTP/2 gets a bare *tls.Conn, without which the transport
// would not notice that it was negotiated; its bytes are not worth recording.
func (c *Client) dialTLS(ctx context.Context, network, hostport string) (net.Conn, error) {
	hostport = unpin(ctx, hostport)
	p, err := c.connect(ctx, network, hostport)
	if err != nil {
		return nil, err
	}
	dialing(ctx, TLSTimeout, p.addr)
	// The configuration is shared, and each handshake has its own server name.
	config := c.tlsConfig.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(hostport)
	}
	conn := tls.Client(p, config)
	ctx, cancel := limited(ctx, c.opts.ConnectTimeout)
	defer cancel()
	if err := httpctx.Handshake(ctx, conn); err != nil {
		p.Close()
		return nil, &Error{Kind: pick(err, TLS, TLSTimeout), Addr: p.addr, Err: neterr.Handshake(err)}
	}
	state := conn.ConnectionState()
	http2 := state.NegotiatedProtocol == "h2"
	if p.meter(http2); http2 {
		httpctx.Reported(ctx)
		return conn, nil
	}
	w := c.recorded(conn)
	w.TLS = &state
	return w, nil
}

// connect resolves the host and dials its addresses one after the other.
func (c *Client) connect(ctx context.Context, network, hostport string) (*peer, error) {
	host, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, &Error{Kind: BadURL, Err: err}
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		bad := &net.AddrError{Err: "invalid port", Addr: portText}
		return nil, &Error{Kind: BadURL, Err: &net.OpError{Op: "dial", Net: network, Err: bad}}
	}
	if exhausted(ctx) {
		return nil, &Error{Kind: TooManyAttempts}
	}
	if _, err := netip.ParseAddr(host); c.names && err != nil {
		return c.dialName(ctx, network, hostport)
	}
	addrs, err := c.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited(ctx, c.opts.ConnectTimeout)
	defer cancel()
	var first error
	for i, a := range addrs {
		addr := netip.AddrPortFrom(a, uint16(port))
		conn, err := c.dialAddr(ctx, network, addr, len(addrs)-i)
		if err == nil {
			return &peer{Conn: conn, addr: addr}, nil
		}
		// The resolver prefers the first address, so its failure is the most telling, unless it is
		// one of this machine, such as that it has no IPv6.
		if first == nil || neterr.Local(first) && !neterr.Local(err) {
			first = err
		}
		// Without time left, the other addresses would fail for that reason alone.
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// dialAddr dials one address. While others are left, it may take only its share of the time, so
// that one dead address does not use it up.
func (c *Client) dialAddr(
	ctx context.Context, network string, addr netip.AddrPort, left int,
) (net.Conn, error) {
	dialing(ctx, ConnectTimeout, addr)
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	conn, err := c.opts.Dial(ctx, network, addr.String())
	if err != nil {
		return nil, dialError(err, addr)
	}
	return conn, nil
}

// dialName connects through a proxy that resolves the host.
func (c *Client) dialName(ctx context.Context, network, hostport string) (*peer, error) {
	dialing(ctx, ConnectTimeout, netip.AddrPort{})
	ctx, cancel := limited(ctx, c.opts.ConnectTimeout)
	defer cancel()
	conn, err := c.opts.Dial(ctx, network, hostport)
	if err != nil {
		return nil, dialError(err, netip.AddrPort{})
	}
	return &peer{Conn: conn}, nil
}

// dialError returns why Options.Dial has no connection to addr.
func dialError(err error, addr netip.AddrPort) *Error {
	var failure *Error
	if errors.As(err, &failure) {
		return failure // of the proxy
	}
	return &Error{Kind: pick(err, Connect, ConnectTimeout), Addr: addr, Err: err}
}

// lookup returns the addresses of host that may be dialed. Of a name with allowed
// and other addresses it returns the allowed ones.
//
// This is the only place where a name becomes an address, and the address is what is dialed. A
// separate look-up for a check could get another answer than the look-up for the dial.
func (c *Client) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return c.allowed([]netip.Addr{addr})
	}
	if pin := pinTo(ctx, host); pin.IsValid() {
		return c.allowed([]netip.Addr{pin})
	}
	dialing(ctx, ResolveTimeout, netip.AddrPort{})
	ctx, cancel := limited(ctx, c.opts.ConnectTimeout)
	defer cancel()
	addrs, err := c.resolve(ctx, host)
	if err != nil {
		return nil, &Error{Kind: pick(err, Resolve, ResolveTimeout), Err: dnsError(host, err)}
	}
	if len(addrs) == 0 {
		return nil, &Error{Kind: Resolve, Err: dnsError(host, errNoAddress)}
	}
	return c.allowed(addrs)
}

var errNoAddress = errors.New("no address")

// dnsError returns the error of a look-up as that of a dial, with a net.DNSError in it, whatever
// Options.Resolve returned: layers above know by it that no server was asked.
func dnsError(host string, err error) error {
	var dns *net.DNSError
	if !errors.As(err, &dns) || host != "" && dns.IsNotFound && dns.Name != "" && !sameName(dns.Name, host) {
		err = &net.DNSError{
			Err: err.Error(), Name: host, UnwrapErr: err,
			IsTimeout: timedOut(err), IsTemporary: err != errNoAddress, IsNotFound: err == errNoAddress,
		}
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

// sameName reports whether an error is about a host, and not about a server that was to be asked for it.
func sameName(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}

// allowed returns the addresses that may be dialed, at most maxAddrs. They include one of IPv4 and
// one of IPv6, if there are such: in many networks one of the two leads nowhere.
func (c *Client) allowed(addrs []netip.Addr) ([]netip.Addr, error) {
	var ok []netip.Addr
	mixed := false
	for _, a := range addrs {
		if !c.opts.Reach.Allows(a) {
			continue
		}
		// Unmapped, it is the address that was checked, whatever the kernel makes of the mapped
		// form.
		a = a.Unmap()
		other := len(ok) > 0 && a.Is4() != ok[0].Is4()
		switch {
		case len(ok) < maxAddrs:
			ok = append(ok, a)
		case other && !mixed:
			ok[maxAddrs-1] = a
		}
		mixed = mixed || other
	}
	if len(ok) == 0 {
		err := fmt.Errorf("%v is not a %v address", addrs[0].Unmap(), c.opts.Reach)
		return nil, &Error{Kind: Blocked, Err: err}
	}
	return ok, nil
}

// limited is context.WithTimeout, but a negative d means no limit.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// pick returns late if err is about time, else kind.
func pick(err error, kind, late Kind) Kind {
	if timedOut(err) {
		return late
	}
	return kind
}
