package fetch_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// arrival is some bytes of a body, after a pause.
type arrival struct {
	pause time.Duration
	n     int
}

// cutAt returns when a body with these arrivals is cut, and how much of it is kept. It applies the
// definition byte by byte: n bytes may take grace plus n/rate. whole is true if the body is
// complete.
func cutAt(
	body []arrival, rate int64, grace time.Duration,
) (at time.Duration, kept int, whole bool) {
	due := func() time.Duration {
		return grace + time.Duration(kept)*time.Second/time.Duration(rate)
	}
	for _, a := range body {
		if at+a.pause >= due() {
			return due(), kept, false
		}
		at += a.pause
		kept += a.n
	}
	return at, kept, true
}

func TestPaceModel(t *testing.T) {
	const rate, grace = 1000, fetch.Grace
	outcomes := map[bool]int{}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		var body []arrival
		for range r.IntN(20) {
			// An odd number of microseconds never meets a deadline, which is a whole number of
			// milliseconds; on a tie either may come first.
			pause := time.Duration(r.IntN(2_000_000)*2+1) * time.Microsecond
			body = append(body, arrival{pause, 1 + r.IntN(2500)})
		}
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{MinRate: rate, Timeout: time.Hour},
				func(s *session) {
					s.request()
					s.say(ok + "\r\n")
					for _, a := range body {
						time.Sleep(a.pause)
						s.say(strings.Repeat("x", a.n))
					}
				})
			defer stop()
			start := time.Now()
			response := get(t, c, "http://a.test/")
			at, kept, whole := cutAt(body, rate, grace)
			require.Equal(t, whole, response.Truncated == fetch.Whole, "seed %d", seed)
			require.Equal(t, at, time.Since(start), "seed %d", seed)
			require.Len(t, response.Body, kept, "seed %d", seed)
			outcomes[whole]++
		})
	}
	require.Greater(t, outcomes[true], 10, "some must be complete: %v", outcomes)
	require.Greater(t, outcomes[false], 10, "some must be cut: %v", outcomes)
}
