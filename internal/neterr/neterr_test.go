package neterr_test

import (
	"errors"
	"net"
	"net/netip"
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

func TestNoError(t *testing.T) {
	require.False(t, neterr.Local(nil) || neterr.Refused(nil) || neterr.Reset(nil))
}
