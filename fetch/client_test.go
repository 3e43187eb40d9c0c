package fetch_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// Many Gets at once share a client, its connections and its decoders; each must get what belongs
// to it. The race detector looks on.
func TestConcurrentGets(t *testing.T) {
	base := listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			name, _, _ := strings.Cut(strings.TrimPrefix(head, "GET /"), " ")
			body, coding := "page "+name, "identity"
			if len(name)%2 == 0 {
				body, coding = zipped(t, body), "gzip"
			}
			s.say(fmt.Sprintf("%sX-Name: %s\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s",
				ok, name, coding, len(body), body))
		}
	})
	c := newClient(t, fetch.Options{MaxIdlePerHost: 8})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := range 40 {
				name := fmt.Sprint(worker*100 + n)
				r, err := c.Get(t.Context(), base+"/"+name, fetch.Validators{})
				if err != nil {
					t.Error(err)
					return
				}
				if string(r.Body) != "page "+name || !r.HeadExact ||
					!strings.Contains(string(r.Head), "X-Name: "+name+"\r\n") ||
					!strings.HasPrefix(string(r.RequestHead), "GET /"+name+" ") {
					t.Errorf("%s: %q %q %q", name, r.RequestHead, r.Head, r.Body)
				}
			}
		})
	}
	wg.Wait()
}

// The limit on a head is exact, and interim responses count.
func TestMaxHeaderToTheByte(t *testing.T) {
	const rest = "Content-Length: 2\r\n\r\n"
	for _, interim := range []string{"", "HTTP/1.1 103 Early Hints\r\n\r\n"} {
		for length := 999; length <= 1001; length++ {
			pad := length - len(interim) - len(ok) - len(rest) - len("X: \r\n")
			head := ok + "X: " + strings.Repeat("y", pad) + "\r\n" + rest
			base := listen(t, says(interim+head+"ok"))
			c := newClient(t, fetch.Options{MaxHeader: 1000})
			if length > 1000 {
				require.Equal(t, fetch.HeaderTooLarge, fails(t, c, base).Kind)
				continue
			}
			r := get(t, c, base)
			require.Equal(t, head, string(r.Head))
			require.Equal(t, "ok", string(r.Body))
		}
	}
}

// A negative limit switches it off, where that makes sense.
func TestNegativeOptionsAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{
			Timeout: -1, ConnectTimeout: -1, TLSTimeout: -1, HeadTimeout: -1, MinRate: -1,
			MaxBody: -1, MaxRatio: -1, MaxHeader: -1, Grace: -1,
			Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
				time.Sleep(time.Hour)
				return resolveTo("127.0.0.1")(ctx, host)
			},
		}, func(s *session) {
			s.request()
			time.Sleep(time.Hour)
			s.say(ok + "\r\n")
			time.Sleep(time.Hour)
			s.say(strings.Repeat("x", fetch.DefaultMaxBody+1))
		})
		defer stop()
		start := time.Now()
		r := get(t, c, "http://a.test/")
		require.Equal(t, fetch.Whole, r.Truncated)
		require.Len(t, r.Body, fetch.DefaultMaxBody+1)
		require.Equal(t, 3*time.Hour, time.Since(start))
	})
}

// The instants of an exchange, in fake time and so to the nanosecond.
func TestTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{
			Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
				time.Sleep(time.Second)
				return resolveTo("127.0.0.1")(ctx, host)
			},
		}, func(s *session) {
			for s.request() != "" {
				time.Sleep(2 * time.Second)
				s.say(ok + "Retry-After: Sat, 01 Jan 2000 00:01:00 GMT\r\n")
				time.Sleep(3 * time.Second)
				s.say("Content-Length: 2\r\n\r\no")
				time.Sleep(4 * time.Second)
				s.say("k")
			}
		})
		defer stop()
		// A bubble's clock starts at midnight of the year 2000.
		for n, resolve := range []time.Duration{time.Second, 0} {
			start := time.Now()
			r := get(t, c, "http://a.test/")
			at := r.Timing
			require.Equal(t, n > 0, r.Reused)
			require.Equal(t, start, at.Start)
			require.Equal(t, resolve, at.Connected.Sub(start))
			require.Equal(t, resolve, at.WroteRequest.Sub(start))
			require.Equal(t, resolve+2*time.Second, at.FirstByte.Sub(start))
			require.Equal(t, resolve+9*time.Second, at.Done.Sub(start))
			require.Equal(t, 60*time.Second, at.FirstByte.Add(r.RetryAfter).Sub(midnight2000))
		}
	})
}

var midnight2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// What Options.Dial and Options.Resolve see.
func TestHooks(t *testing.T) {
	tests := []struct{ url, host, addr string }{
		{"http://A.test/", "a.test", "1.1.1.1:80"},
		{"https://b.test./", "b.test.", "1.1.1.1:443"},
		{"http://ü.test:8080/", "xn--tda.test", "1.1.1.1:8080"},
		{"http://1.0.0.1/", "", "1.0.0.1:80"},
		{"https://[2606:4700::1]/", "", "[2606:4700::1]:443"},
	}
	for _, tt := range tests {
		var host string
		var dialled []string
		c := newClient(t, fetch.Options{
			UserAgent: "testbot (bot@a.test)",
			Resolve: func(ctx context.Context, name string) ([]netip.Addr, error) {
				host = name
				return resolveTo("1.1.1.1")(ctx, name)
			},
			Dial: recordDial(&dialled),
		})
		require.ErrorIs(t, fails(t, c, tt.url), errDialled)
		require.Equal(t, tt.host, host, tt.url)
		require.Equal(t, []string{tt.addr}, dialled, tt.url)
	}
}
