package neterr_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/neterr"
)

// TestErrorsOfThisSystem provokes real errors, whose numbers depend on the system.
func TestErrorsOfThisSystem(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = net.Dial("tcp", closed)
	require.Error(t, err)
	require.True(t, neterr.Refused(err), "%#v", errors.Unwrap(errors.Unwrap(err)))
	require.False(t, neterr.Local(err))
	require.False(t, neterr.Reset(err))

	notOurs := &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:0"))}
	_, err = notOurs.Dial("tcp", closed)
	require.Error(t, err)
	require.True(t, neterr.Local(err), "%#v", errors.Unwrap(errors.Unwrap(err)))
	require.False(t, neterr.Exhausted(err))
	require.False(t, neterr.Refused(err))
}

// TestAResetConnection uses a server that closes its connection with a reset.
func TestAResetConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := listener.Accept()
	require.NoError(t, err)
	require.NoError(t, server.(*net.TCPConn).SetLinger(0))
	require.NoError(t, server.Close())
	_, err = client.Read(make([]byte, 1))
	require.Error(t, err)
	require.True(t, neterr.Reset(err), "%#v", errors.Unwrap(errors.Unwrap(err)))
	require.False(t, neterr.Local(err))
}

// Package net keeps nothing of what a look-up failed for but the text.
func TestLookups(t *testing.T) {
	for errno, local := range map[syscall.Errno]bool{syscall.EMFILE: true, syscall.ENETUNREACH: true, syscall.ECONNREFUSED: false} {
		resolver := net.Resolver{PreferGo: true, Dial: func(_ context.Context, network, _ string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", errno)}
		}}
		_, err := resolver.LookupHost(t.Context(), "a.test")
		require.Error(t, err)
		require.Equal(t, local, neterr.Local(err), "%v", err)
		require.Equal(t, errno == syscall.EMFILE, neterr.Exhausted(err))
		require.False(t, neterr.Refused(err), "by a name server")
	}
}

// TestAProxyThatWantsAPassword: package net/http keeps nothing of its answer but the text.
func TestAProxyThatWantsAPassword(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 407 Proxy Authentication Required ( The ISA Server requires authorization. )\r\n\r\n",
		"HTTP/1.1 407 Proxy authentication required\r\n\r\n",
		"HTTP/1.1 407 Proxy Authorization Required\r\n\r\n",
		"\x05\xff",
	} {
		scheme := "http"
		if answer[0] == 5 {
			scheme = "socks5"
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = conn.Write([]byte(answer))
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}
		}()
		proxy := &url.URL{Scheme: scheme, Host: listener.Addr().String()}
		_, err = (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}).Get("https://a.test/")
		require.Error(t, err)
		require.True(t, neterr.Local(err), "%s: %v", scheme, err)
		require.True(t, neterr.Local(errors.Join(errors.New("of a layer"), err)), "%v", err)
	}
}

func TestNoError(t *testing.T) {
	require.False(t, neterr.Local(nil) || neterr.Refused(nil) || neterr.Reset(nil))
}
