package stage

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// A zone is what the test's name server knows.
type zone map[string][]dnsmessage.Resource

func fqdn(name string) dnsmessage.Name { return dnsmessage.MustNewName(name) }

func aRecord(name, addr string, ttl uint32) dnsmessage.Resource {
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: fqdn(name), Class: dnsmessage.ClassINET, TTL: ttl},
		Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()},
	}
}

func cname(name, target string, ttl uint32) dnsmessage.Resource {
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: fqdn(name), Class: dnsmessage.ClassINET, TTL: ttl},
		Body:   &dnsmessage.CNAMEResource{CNAME: fqdn(target)},
	}
}

// answer makes the response to a question. Truncated ones ask the resolver to come back by TCP.
func (z zone) answer(t *testing.T, question []byte, truncate bool) []byte {
	var m dnsmessage.Message
	require.NoError(t, m.Unpack(question))
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	records, known := z[q.Name.String()]
	switch {
	case truncate:
		m.Truncated = true
	case known && q.Type == dnsmessage.TypeA:
		m.Answers = records
	default:
		if !known {
			m.RCode = dnsmessage.RCodeNameError
		}
		m.Authorities = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: fqdn("test."), Class: dnsmessage.ClassINET, TTL: 9000},
			Body:   &dnsmessage.SOAResource{NS: fqdn("ns.test."), MBox: fqdn("me.test."), MinTTL: 7000},
		}}
	}
	packed, err := m.Pack()
	require.NoError(t, err)
	return packed
}

// serveDNS answers over UDP and TCP on one port until the test ends.
func (z zone) serveDNS(t *testing.T, truncateUDP bool) (addr string) {
	udp, tcp := listenBoth(t)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(z.answer(t, buf[:n], truncateUDP), from)
		}
	}()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			z.serveConn(t, conn)
		}
	}()
	return udp.LocalAddr().String()
}

// listenBoth finds a port that is free for both protocols.
func listenBoth(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for {
		tcp, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		udp, err := net.ListenPacket("udp4", tcp.Addr().String())
		if err != nil {
			tcp.Close() // the port is another program's
			continue
		}
		t.Cleanup(func() { udp.Close(); tcp.Close() })
		return udp, tcp
	}
}

func (z zone) serveConn(t *testing.T, conn net.Conn) {
	defer conn.Close()
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, question); err != nil {
		return
	}
	answer := z.answer(t, question, false)
	binary.BigEndian.PutUint16(size[:], uint16(len(answer)))
	_, _ = conn.Write(append(size[:], answer...))
}

func TestDNSTellsHowLongAnAnswerHolds(t *testing.T) {
	z := zone{
		"plain.test.": {aRecord("plain.test.", "192.0.2.1", 300), aRecord("plain.test.", "192.0.2.2", 600)},
		"alias.test.": {cname("alias.test.", "other.test.", 120), aRecord("other.test.", "192.0.2.3", 3600)},
		"brief.test.": {aRecord("brief.test.", "192.0.2.4", 0)},
		"long.test.":  {aRecord("long.test.", "192.0.2.5", 1<<30)},
	}
	for _, truncate := range []bool{false, true} {
		dns := DNS{Server: z.serveDNS(t, truncate)}
		for _, tt := range []struct {
			name  string
			host  string
			addrs []netip.Addr
			ttl   time.Duration
		}{
			{"as long as the shortest record", "plain.test.", addrs("192.0.2.1", "192.0.2.2"), 5 * time.Minute},
			{"aliases count", "alias.test.", addrs("192.0.2.3"), 2 * time.Minute},
			{"not for ever so short", "brief.test.", addrs("192.0.2.4"), minTTL},
			{"nor for years", "long.test.", addrs("192.0.2.5"), 7000 * time.Second},
			{"no such name: what the zone says", "none.test.", nil, 7000 * time.Second},
		} {
			got, ttl, err := dns.Lookup(t.Context(), tt.host)
			require.Equal(t, tt.addrs == nil, err != nil, "%s: %v", tt.name, err)
			require.Equal(t, tt.addrs, got, tt.name)
			require.Equal(t, tt.ttl, ttl, "%s, over TCP: %v", tt.name, truncate)
		}
	}
}

func TestDNSThatDoesNotAnswer(t *testing.T) {
	closed, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	closed.Close()
	_, ttl, err := DNS{Server: closed.LocalAddr().String()}.Lookup(t.Context(), "any.test.")
	var failed *net.DNSError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.IsNotFound, "it may exist")
	require.Zero(t, ttl)
}

func FuzzMessageTTL(f *testing.F) {
	question, err := (&dnsmessage.Message{Questions: []dnsmessage.Question{
		{Name: fqdn("a.test."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
	}}).Pack()
	require.NoError(f, err)
	f.Add(question)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		var h hearing
		h.listen(message)
		ttl := h.ttl()
		_, ok := messageTTL(message)
		if ok && (ttl < minTTL || ttl > maxTTL) || !ok && ttl != 0 {
			t.Errorf("%x holds for %v", message, ttl)
		}
	})
}
