package stage

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Bounds of what a name server may say about how long its answer holds. Less than the lower one
// would ask again for every few pages of a host; more than the upper one would outlive a move.
const (
	minTTL = time.Minute
	maxTTL = 24 * time.Hour
)

// A DNS looks up names with the system's settings and tells how long an answer holds, which the
// standard library's resolver keeps to itself. The zero DNS is ready to use; its methods are safe
// for concurrent use.
type DNS struct {
	// Server is asked instead of the system's name servers, if it is not "".
	Server string
}

// Lookup returns the addresses of a host and how long they hold, or an error and how long that
// holds. The time is 0 where no name server said it, as for names from the machine's hosts file.
func (d DNS) Lookup(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	var heard hearing
	resolver := net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if d.Server != "" {
				addr = d.Server
			}
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return heard.tap(conn), nil
		},
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", host)
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	return addrs, heard.ttl(), err
}

// A hearing listens to the answers of name servers as they come in.
type hearing struct {
	mu    sync.Mutex
	least time.Duration
	known bool
}

// tap lets the hearing listen to a connection. What a resolver gets over UDP must stay a
// net.PacketConn, or it would take it for TCP and expect a length before each message.
func (h *hearing) tap(conn net.Conn) net.Conn {
	if udp, ok := conn.(*net.UDPConn); ok {
		return &tappedUDP{udp, h}
	}
	return &tappedTCP{Conn: conn, hearing: h}
}

type tappedUDP struct {
	*net.UDPConn
	hearing *hearing
}

func (c *tappedUDP) Read(p []byte) (int, error) {
	n, err := c.UDPConn.Read(p)
	c.hearing.listen(p[:n])
	return n, err
}

// tappedTCP collects a message, which comes behind its length in two bytes.
type tappedTCP struct {
	net.Conn
	hearing *hearing
	got     []byte
}

func (c *tappedTCP) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.got = append(c.got, p[:n]...)
	if len(c.got) >= 2 {
		size := 2 + int(binary.BigEndian.Uint16(c.got))
		if len(c.got) >= size {
			c.hearing.listen(c.got[2:size])
			c.got = c.got[size:]
		}
	}
	return n, err
}

// listen notes how long the message holds. The resolver checks whether a message belongs to its
// question and drops it if not; here that is not known, and the bounds on the time are what keeps
// a forged one from doing harm.
func (h *hearing) listen(message []byte) {
	ttl, ok := messageTTL(message)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known || ttl < h.least {
		h.least, h.known = ttl, true
	}
}

func (h *hearing) ttl() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known {
		return 0
	}
	return min(max(h.least, minTTL), maxTTL)
}

// messageTTL returns how long an answer holds: as long as its shortest-lived record, or, if it says
// that there is none, as long as the zone's SOA record says (RFC 2308 §5).
func messageTTL(message []byte) (ttl time.Duration, ok bool) {
	var m dnsmessage.Message
	if err := m.Unpack(message); err != nil || !m.Response {
		return 0, false
	}
	seconds := uint32(1<<32 - 1)
	for _, r := range m.Answers {
		seconds, ok = min(seconds, r.Header.TTL), true
	}
	for _, r := range m.Authorities {
		if soa, isSOA := r.Body.(*dnsmessage.SOAResource); isSOA && len(m.Answers) == 0 {
			seconds, ok = min(seconds, r.Header.TTL, soa.MinTTL), true
		}
	}
	return time.Duration(seconds) * time.Second, ok
}
