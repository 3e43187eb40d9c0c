package jet

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// slowLink forwards connections to a broker. What they carry in each direction takes a second per rate
// bytes, and is counted.
func slowLink(t *testing.T, broker string, rate int) (far *Bus, carried *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(broker)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	carried = new(atomic.Int64)
	slowly := func(to, from net.Conn) {
		defer to.Close()
		buf := make([]byte, rate/20)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			carried.Add(int64(n))
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
		}
	}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			if b, err := net.Dial("tcp", u.Host); err == nil {
				go slowly(a, b)
				go slowly(b, a)
			} else {
				a.Close()
			}
		}
	}()
	far, err = Connect(t.Context(), Options{URL: "nats://" + l.Addr().String()})
	require.NoError(t, err)
	t.Cleanup(far.Close)
	return far, carried
}

// TestUnderASlowLink: a link of 20 Mbit/s is slower than one request, but the values keep coming.
func TestUnderASlowLink(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	near := broker(t, 0)
	require.NoError(t, near.CreateStream(t.Context()))
	for i := range 128 { // records of 128 partitions of fetch
		of := message.Dest{To: message.Fetch, Part: i}
		_, _, err := near.Commit(t.Context(), []Record{{Of: of, Value: make([]byte, 100<<10)}}, nil)
		require.NoError(t, err)
	}
	far, _ := slowLink(t, near.opts.URL, 2_500_000)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	values, err := far.Records(ctx)
	require.NoError(t, err)
	require.Len(t, values, 128)
}

// TestALargeBatchTakesItsTime commits a batch over a link that needs longer for it than a request may
// take.
func TestALargeBatchTakesItsTime(t *testing.T) {
	near := broker(t, 0)
	far, _ := slowLink(t, near.opts.URL, 1_000_000)
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

// TestReadersShareASlowLink: readers that wait for each other's messages take none of them for lost, and
// have none sent twice.
func TestReadersShareASlowLink(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	near := broker(t, 0)
	const readers, messages = 8, 20
	for p := range readers {
		for range messages {
			require.NoError(t, near.Send(t.Context(), Message{message.Dest{To: message.Dedupe, Part: p}, make([]byte, MaxMessage)}))
		}
	}
	far, carried := slowLink(t, near.opts.URL, 4_000_000)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var reading sync.WaitGroup
	for p := range readers {
		reading.Go(func() {
			r := far.Read(message.Dest{To: message.Dedupe, Part: p}, 1)
			defer r.Stop()
			for range messages {
				_, err := r.Next(ctx)
				if !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	reading.Wait()
	require.Less(t, carried.Load(), int64(readers*messages*MaxMessage*5/4))
}
