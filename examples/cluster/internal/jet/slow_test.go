package jet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A link of 20 Mbit/s is slower than one request, but the values keep coming.
func TestUnderASlowLink(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	s, err := StartServer(ServerOptions{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	near, err := Connect(t.Context(), Options{URL: s.URL()})
	require.NoError(t, err)
	t.Cleanup(near.Close)
	table, err := near.MakeTable(t.Context(), "states")
	require.NoError(t, err)
	for i := range 128 { // roots of 128 partitions of fetch
		require.NoError(t, table.Put(t.Context(), fmt.Sprintf("root.fetch.%d", i), make([]byte, 100<<10)))
	}
	u, _ := url.Parse(s.URL())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := net.Dial("tcp", u.Host)
			go io.Copy(b, a)
			go func() { // 2.5 MB/s = 20 Mbit/s
				buf := make([]byte, 25_000)
				for {
					n, err := b.Read(buf)
					if err != nil {
						return
					}
					a.Write(buf[:n])
					time.Sleep(time.Duration(n) * 400 * time.Nanosecond)
				}
			}()
		}
	}()
	far, err := Connect(t.Context(), Options{URL: "nats://" + l.Addr().String()})
	require.NoError(t, err)
	t.Cleanup(far.Close)
	slow, err := far.Table(t.Context(), "states")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	values, err := slow.Under(ctx, "root.")
	require.NoError(t, err)
	require.Len(t, values, 128)
}

// TestALargeBatchTakesItsTime commits a batch over a link that needs longer for it than a request may
// take.
func TestALargeBatchTakesItsTime(t *testing.T) {
	near := broker(t, 0)
	u, _ := url.Parse(near.opts.URL)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := net.Dial("tcp", u.Host)
			go io.Copy(a, b)
			go func() { // 1 MB/s
				buf := make([]byte, 50_000)
				for {
					n, err := a.Read(buf)
					if err != nil {
						return
					}
					b.Write(buf[:n])
					time.Sleep(time.Duration(n) * time.Microsecond)
				}
			}()
		}
	}()
	far, err := Connect(t.Context(), Options{URL: "nats://" + l.Addr().String()})
	require.NoError(t, err)
	t.Cleanup(far.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	messages := make([]Message, 80)
	for i := range messages {
		messages[i] = Message{here, make([]byte, MaxMessage)}
	}
	stored, _, err := far.Commit(ctx, []Record{{Of: here, Value: []byte("1")}}, messages)
	require.NoError(t, err)
	require.True(t, stored)
}
