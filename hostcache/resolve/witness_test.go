package resolve_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// goResolver is package net's resolver, with another server.
func goResolver(server netip.AddrPort) *net.Resolver {
	return &net.Resolver{PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.String())
		}}
}

// sameAsGo compares the results of both resolvers for a name. It must end in a dot, so that the
// search list of this machine does not matter.
func sameAsGo(t *testing.T, server netip.AddrPort, name string) {
	t.Helper()
	r := resolve.New(resolve.Options{Servers: []netip.AddrPort{server}})
	got, err := r.LookupNetIP(t.Context(), "ip", name)
	want, wantErr := goResolver(server).LookupNetIP(t.Context(), "ip", name)
	for i := range want {
		want[i] = want[i].Unmap()
	}
	require.ElementsMatch(t, want, got, name)
	require.Equal(t, isNotFound(wantErr), isNotFound(err), "%s: %v, not %v", name, err, wantErr)
}

// TestAgainstPackageNet looks up the same names with both resolvers, over UDP and over TCP.
func TestAgainstPackageNet(t *testing.T) {
	truncating := sample.handler(func(m *message) { m.Truncated, m.Answers = true, nil })
	for name, h := range map[string]handler{"udp": sample.handler(), "tcp": truncating} {
		t.Run(name, func(t *testing.T) {
			server := listen(t, h, sample.handler())
			for name := range sample {
				if strings.HasSuffix(name, ".") {
					sameAsGo(t, server, name)
				}
			}
			sameAsGo(t, server, "none.test.")
		})
	}
}

// TestAgainstDnsmasq uses an independent name server. Unlike the servers of the other tests, it
// sends what it considers right.
func TestAgainstDnsmasq(t *testing.T) {
	program, err := exec.LookPath("dnsmasq")
	if err != nil {
		t.Skip("dnsmasq is not installed (apt-get install dnsmasq-base)")
	}
	var args []string
	for i := range 60 {
		args = append(args, fmt.Sprintf("--host-record=big.test,192.0.2.%d,3600", i+1))
	}
	server := startDnsmasq(t, program, append(args,
		"--host-record=a.test,192.0.2.1,2001:db8::1,600", "--host-record=four.test,192.0.2.4",
		"--cname=alias.test,a.test,120", "--cname=second.test,alias.test,90", "--local=/test/")...)
	for _, name := range []string{"a.test.", "four.test.", "alias.test.", "second.test.", "none.test.", "big.test."} {
		if name == "big.test." { // the resolver keeps only some of them
			r := resolve.New(resolve.Options{Servers: []netip.AddrPort{server}})
			got, err := r.LookupNetIP(t.Context(), "ip", name)
			require.NoError(t, err)
			require.Len(t, got, 4)
			continue
		}
		sameAsGo(t, server, name)
	}
	r := resolve.New(resolve.Options{Servers: []netip.AddrPort{server}})
	_, err = r.LookupNetIP(t.Context(), "ip", "refused.example.")
	require.ErrorIs(t, err, resolve.ErrServerFailure, "there is no server to ask")
	require.False(t, isNotFound(err))
}

// startDnsmasq starts the program on a free port, and waits until it answers.
func startDnsmasq(t *testing.T, program string, args ...string) netip.AddrPort {
	t.Helper()
	server := freePort(t)
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, append(args, "--keep-in-foreground", "--no-resolv",
		"--no-hosts", "--conf-file=/dev/null", "--bind-interfaces", "--listen-address=127.0.0.1",
		fmt.Sprintf("--port=%d", server.Port()), "--pid-file="+filepath.Join(t.TempDir(), "pid"),
		"--user="+userName(), "--log-facility=-")...)
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	r := resolve.New(resolve.Options{Servers: []netip.AddrPort{server}, Timeout: time.Second})
	var err error
	for range 500 {
		if _, err = r.Addr(t.Context(), "four.test."); err == nil {
			return server
		}
		select {
		case <-ended:
			t.Fatalf("dnsmasq has ended: %s", &log)
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("dnsmasq does not answer: %v", err)
	return server
}

// freePort returns a port that is free for both UDP and TCP. It is not reserved, and another
// process may take it first, so it is one that the system does not assign by itself.
func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	for range 100 {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(10_000+rand.IntN(20_000)))
		udp, err := net.ListenPacket("udp4", at.String())
		if err != nil {
			continue
		}
		tcp, err := net.Listen("tcp4", at.String())
		require.NoError(t, udp.Close())
		if err == nil {
			require.NoError(t, tcp.Close())
			return at
		}
	}
	t.Fatal("no free port")
	return netip.AddrPort{}
}

// userName keeps dnsmasq from becoming another user.
func userName() string {
	if os.Getuid() == 0 {
		return "root"
	}
	return os.Getenv("USER")
}

// FuzzAnswer has a server that answers with arbitrary bytes after a correct header and question. In
// any case the resolver ends, and accepts only records that an independent reading of the message
// finds under the name or one of its aliases.
func FuzzAnswer(f *testing.F) {
	question := message{Header: dnsmessage.Header{ID: 1}, Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName("alias.test."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}}}
	for _, name := range []string{"alias.test.", "plain.test.", "none.test."} {
		q := clone(question)
		q.Questions[0].Name = dnsmessage.MustNewName(name)
		b := sample.answer(q)[0]
		f.Add(b[2:12], b[12+len(name)+1+4:])
	}
	f.Fuzz(func(t *testing.T, head, records []byte) {
		if len(head) < 10 {
			t.Skip()
		}
		answer := func(q message) []byte {
			b := pack(&message{Header: q.Header, Questions: q.Questions})
			copy(b[2:12], head[:10])
			b[2] |= 0x80 // a response
			b[4], b[5] = 0, 1
			return append(b, records...)
		}
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var sent [][]byte // pointers in the records mean something else behind each question
			n := newNetwork(t, func(q message) [][]byte {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, answer(q))
				return sent[len(sent)-1:]
			})
			got, err := n.resolver(resolve.Options{}).LookupNetIP(t.Context(), "ip", "alias.test")
			if err != nil {
				require.Nil(t, got)
				return
			}
			require.LessOrEqual(t, len(got), 6)
			mu.Lock()
			defer mu.Unlock()
			for _, addr := range got {
				require.True(t, slices.ContainsFunc(sent, func(b []byte) bool { return mentions(b, addr) }),
					"%v is in none of the messages", addr)
			}
		})
	})
}

// mentions reports whether a message has a record of an address under the requested name, or under
// one that an alias in it leads to. Other parts of the message need not be well-formed.
func mentions(b []byte, addr netip.Addr) bool {
	var p dnsmessage.Parser
	if _, err := p.Start(b); err != nil {
		return false
	}
	asked, err := p.AllQuestions()
	if err != nil {
		return false
	}
	names, owners := []string{strings.ToLower(asked[0].Name.String())}, []string(nil)
	for {
		h, err := p.AnswerHeader()
		if err != nil {
			break
		}
		var found netip.Addr
		switch {
		case h.Class != dnsmessage.ClassINET: // other classes need not be understood
			err = p.SkipAnswer()
		case h.Type == dnsmessage.TypeA:
			var body dnsmessage.AResource
			body, err = p.AResource()
			found = netip.AddrFrom4(body.A)
		case h.Type == dnsmessage.TypeAAAA:
			var body dnsmessage.AAAAResource
			body, err = p.AAAAResource()
			found = netip.AddrFrom16(body.AAAA).Unmap()
		case h.Type == dnsmessage.TypeCNAME:
			var body dnsmessage.CNAMEResource
			body, err = p.CNAMEResource()
			names = append(names, strings.ToLower(body.CNAME.String()))
		default:
			err = p.SkipAnswer()
		}
		if err != nil {
			return false
		}
		if found == addr {
			owners = append(owners, strings.ToLower(h.Name.String()))
		}
	}
	return slices.ContainsFunc(owners, func(name string) bool { return slices.Contains(names, name) })
}
