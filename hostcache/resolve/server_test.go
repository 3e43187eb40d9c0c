package resolve_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// A message is a question or an answer.
type message = dnsmessage.Message

// A handler answers a question with any number of messages.
type handler func(q message) [][]byte

// A network has name servers, for a bubble: connections are pipes, on which a Write is a datagram.
type network struct {
	t       *testing.T
	servers map[string]handler // by network and address: "udp 192.0.2.53:53"

	mu    sync.Mutex
	asked []string // "udp 53 A www.example.com.": the last byte of the address, then the question
}

const one, two, three = "192.0.2.1:53", "192.0.2.2:53", "192.0.2.3:53"

// newNetwork returns a network with one server that answers over UDP and TCP.
func newNetwork(t *testing.T, h handler) *network {
	n := &network{t: t, servers: map[string]handler{}}
	n.serve(one, h)
	return n
}

func (n *network) serve(addr string, h handler) {
	n.servers["udp "+addr], n.servers["tcp "+addr] = h, h
}

// resolver returns one that asks the servers at some addresses.
func (n *network) resolver(o resolve.Options, addrs ...string) *resolve.Resolver {
	if len(addrs) == 0 {
		addrs = []string{one}
	}
	for _, addr := range addrs {
		o.Servers = append(o.Servers, netip.MustParseAddrPort(addr))
	}
	o.Dial = n.dial
	return resolve.New(o)
}

// questions returns the questions since the last call.
func (n *network) questions() (asked []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked, n.asked = n.asked, nil
	return asked
}

func (n *network) dial(ctx context.Context, proto, addr string) (net.Conn, error) {
	h, ok := n.servers[proto+" "+addr]
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: proto, Err: syscall.ECONNREFUSED}
	}
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		b := make([]byte, 1<<16)
		for {
			size, err := server.Read(b)
			if err != nil {
				return
			}
			q := b[:size]
			if proto == "tcp" {
				q = q[2:]
			}
			var m message
			if err := m.Unpack(q); err != nil {
				n.t.Errorf("a question that makes no sense: %v", err)
				return
			}
			n.mu.Lock()
			n.asked = append(n.asked, fmt.Sprintf("%s %s %s %s", proto, addr[8:9],
				strings.TrimPrefix(m.Questions[0].Type.String(), "Type"),
				strings.ToLower(m.Questions[0].Name.String())))
			n.mu.Unlock()
			for _, answer := range h(m) {
				if proto == "tcp" {
					answer = append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)
				}
				if _, err := server.Write(answer); err != nil {
					return
				}
			}
			if h == nil {
				return
			}
		}
	}()
	return client, nil
}

// A zone is the contents of a name server, by lower-case name.
type zone map[string][]dnsmessage.Resource

// answer makes the message that answers a question, and lets others change it.
func (z zone) answer(q message, change ...func(*message)) [][]byte {
	m := message{Header: q.Header, Questions: q.Questions}
	m.Response, m.RecursionAvailable = true, true
	records, known := z[strings.ToLower(q.Questions[0].Name.String())]
	for _, r := range records {
		kind := typeOf(r)
		if kind == q.Questions[0].Type || kind == dnsmessage.TypeCNAME {
			m.Answers = append(m.Answers, r)
		}
		// An address of another name follows the alias that leads to it.
	}
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	if len(m.Answers) == 0 {
		m.Authorities = z["soa"]
	}
	for _, c := range change {
		c(&m)
	}
	return [][]byte{pack(&m)}
}

// answerAs answers in the spelling of the question.
func (z zone) answerAs(q message) [][]byte {
	m := message{Header: q.Header, Questions: q.Questions}
	m.Response, m.RecursionAvailable = true, true
	for _, r := range z[q.Questions[0].Name.String()] {
		if typeOf(r) == q.Questions[0].Type {
			m.Answers = append(m.Answers, r)
		}
	}
	return [][]byte{pack(&m)}
}

func (z zone) handler(change ...func(*message)) handler {
	return func(q message) [][]byte { return z.answer(q, change...) }
}

func pack(m *message) []byte {
	m.Authorities = slices.Clone(m.Authorities) // Pack writes to the headers
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

func typeOf(r dnsmessage.Resource) dnsmessage.Type {
	switch r.Body.(type) {
	case *dnsmessage.AResource:
		return dnsmessage.TypeA
	case *dnsmessage.AAAAResource:
		return dnsmessage.TypeAAAA
	case *dnsmessage.CNAMEResource:
		return dnsmessage.TypeCNAME
	}
	return dnsmessage.TypeSOA
}

func header(name string, ttl uint32) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{
		Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET, TTL: ttl,
	}
}

// a is a record of an address of either version.
func a(name, addr string, ttl uint32) dnsmessage.Resource {
	ip := netip.MustParseAddr(addr)
	if ip.Is4() {
		return dnsmessage.Resource{Header: header(name, ttl), Body: &dnsmessage.AResource{A: ip.As4()}}
	}
	return dnsmessage.Resource{Header: header(name, ttl),
		Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}}
}

func cname(name, target string, ttl uint32) dnsmessage.Resource {
	return dnsmessage.Resource{Header: header(name, ttl),
		Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(target)}}
}

func soa(name string, ttl, minimum uint32) dnsmessage.Resource {
	ns := dnsmessage.MustNewName("ns.test.")
	return dnsmessage.Resource{Header: header(name, ttl),
		Body: &dnsmessage.SOAResource{NS: ns, MBox: ns, MinTTL: minimum}}
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// listen serves on the loopback device, over UDP and TCP, until the test ends.
func listen(t testing.TB, overUDP, overTCP handler) netip.AddrPort {
	t.Helper()
	var tcp net.Listener
	var udp net.PacketConn
	for udp == nil {
		var err error
		tcp, err = net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		if udp, err = net.ListenPacket("udp4", tcp.Addr().String()); err != nil {
			tcp.Close() // the port is another program's
		}
	}
	t.Cleanup(func() { udp.Close(); tcp.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			var q message
			if q.Unpack(b[:n]) == nil {
				for _, answer := range overUDP(q) {
					_, _ = udp.WriteTo(answer, from)
				}
			}
		}
	}()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			go serveTCP(conn, overTCP)
		}
	}()
	return netip.MustParseAddrPort(udp.LocalAddr().String())
}

func serveTCP(conn net.Conn, h handler) {
	defer conn.Close()
	for {
		size := make([]byte, 2)
		if _, err := io.ReadFull(conn, size); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(conn, b); err != nil {
			return
		}
		var q message
		if q.Unpack(b) != nil {
			return
		}
		for _, answer := range h(q) {
			answer = append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}
}

// write writes a file of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}
