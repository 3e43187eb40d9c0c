package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
)

func proxyError(err error) error {
	return &fetch.Error{Kind: fetch.Proxy, Err: &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err}}
}

func TestAttribute(t *testing.T) {
	public, local := netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("127.0.0.1")
	dial := func(errno syscall.Errno) error {
		return &fetch.Error{Kind: fetch.Connect, Err: &net.OpError{Op: "dial", Err: errno}}
	}
	for _, tt := range []struct {
		name string
		err  error
		addr netip.Addr
		want Fault
	}{
		{"the crawl ends", &fetch.Error{Kind: fetch.Canceled, Err: context.Canceled}, public, OurFault},
		{"too many open files", dial(syscall.EMFILE), local, OurFault},
		{"no route", dial(syscall.ENETUNREACH), public, UnclearFault},
		{"refused", dial(syscall.ECONNREFUSED), public, TheirFault},
		{"silence", &fetch.Error{Kind: fetch.ConnectTimeout}, public, UnclearFault},
		{"timeout on loopback", &fetch.Error{Kind: fetch.HeadTimeout}, local, TheirFault},
		{"a bad certificate", &fetch.Error{Kind: fetch.TLS}, public, TheirFault},
		{"not HTTP", &fetch.Error{Kind: fetch.Protocol}, public, TheirFault},
		{"an unknown name", fmt.Errorf("resolve: %w", &net.DNSError{IsNotFound: true}), netip.Addr{}, TheirFault},
		{"an unknown name, by DNS", &net.DNSError{IsNotFound: true}, netip.Addr{}, TheirFault},
		{"a silent name server", &net.DNSError{IsTimeout: true}, netip.Addr{}, UnclearFault},
		{"any other failure of a lookup", errors.New("read: connection refused"), netip.Addr{}, UnclearFault},
		{"a dead proxy", proxyError(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), local, OurFault},
		{"a proxy with an unknown name", proxyError(&net.DNSError{IsNotFound: true}), public, OurFault},
		{"a proxy that breaks off", proxyError(io.EOF), public, OurFault},
		{"a proxy with another password", proxyError(errors.New("proxy: 407 Proxy Authentication Required")), public, OurFault},
		{"a server that passes for one", proxyError(errors.New("407 Proxy Authentication Required")), public, TheirFault},
		{"a proxy with a block list", proxyError(errors.New("proxy: 403 Forbidden")), public, TheirFault},
	} {
		if errors.Is(tt.err, fetch.Proxy) {
			require.Equal(t, tt.want == OurFault, Classify(nil, tt.err) == Interrupted, tt.name)
		}
		require.Equal(t, tt.want, Attribute(tt.err, tt.addr), tt.name)
	}
}

// TestASleepIsNoVerdict: a request that took far longer than it may was not cut off in time, so the process was
// stopped, or the machine slept. A lookup may have waited for others.
func TestASleepIsNoVerdict(t *testing.T) {
	u := NewUplink(func(context.Context) error { return nil }, func(string) {})
	u.Timeout = 30 * time.Second
	for _, tt := range []struct {
		err  error
		took time.Duration
		ours bool
	}{
		{&fetch.Error{Kind: fetch.HeadTimeout}, 31 * time.Second, false},
		{&fetch.Error{Kind: fetch.HeadTimeout}, time.Hour, true},
		{&fetch.Error{Kind: fetch.Disconnected}, time.Second, false},
		{&fetch.Error{Kind: fetch.Disconnected}, time.Hour, true},
		{&net.DNSError{IsTimeout: true}, time.Hour, false},
	} {
		for _, addr := range []string{"192.0.2.1", "127.0.0.1"} {
			began := time.Now().Add(-tt.took)
			require.Equal(t, tt.ours, u.Ours(t.Context(), tt.err, netip.MustParseAddr(addr), began), "%v after %v", tt.err, tt.took)
		}
	}
}
