package fetch_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// trickle is a body that arrives in pieces and records the size of the buffer offered for each.
type trickle struct {
	body  []byte
	rng   *rand.Rand
	came  int
	sizes map[int]int // of the buffer, by the number of bytes received before
}

func (t *trickle) Read(p []byte) (int, error) {
	t.sizes[t.came] = t.came + len(p)
	n := copy(p, t.body[t.came:min(len(t.body), t.came+1+t.rng.IntN(5000))])
	if t.came += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// While a body arrives, its buffer has at most three times the size of what has arrived, or 12 KiB:
// most requests in flight wait for a server.
func TestBuffersGrowWithTheBody(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		body := []byte(noise(rng.IntN(1 << (1 + rng.IntN(17)))))
		limit := []int64{64 << 10, 1 << 20, rng.Int64N(70 << 10)}[rng.IntN(3)]
		most := []int64{int64(len(body)), limit, int64(rng.IntN(1 << 18))}[rng.IntN(3)]
		src := &trickle{body: body, rng: rng, sizes: map[int]int{}}
		got, over, err := fetch.Grow(src, limit, most)
		require.NoError(t, err)
		require.Equal(t, int64(len(body)) > limit, over, "seed %d", seed)
		require.True(t, bytes.Equal(body[:min(limit, int64(len(body)))], got), "seed %d", seed)
		for came, size := range src.sizes {
			allowed := fetch.RoundUp(max(3*int64(came), 12<<10) + 3<<10)
			require.LessOrEqual(t, int64(size), allowed, "seed %d: after %d of %d", seed, came, most)
		}
	}
}

// A rounded buffer size is large enough, wastes at most a quarter, and is not rounded further.
func TestSizesOfBuffers(t *testing.T) {
	for n := int64(1); n <= 1<<20; n += 1 + n/50 {
		size := fetch.RoundUp(n)
		require.GreaterOrEqual(t, size, n)
		require.LessOrEqual(t, size, max(512, n+n/4+1), "%d", n)
		require.Equal(t, size, fetch.RoundUp(size), "%d", n)
	}
	require.EqualValues(t, 1<<20, fetch.RoundUp(1<<20))
	require.EqualValues(t, 1<<20+1, fetch.RoundUp(1<<20+1))
}

// An empty body may have a buffer, since its length was not announced. Release recycles it once, or
// it would hold two later bodies at a time.
func TestEmptyBodiesShareNoBuffer(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" && r.URL.Path == "/coded" {
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.(http.Flusher).Flush()
		if r.URL.Path != "/coded" {
			_, _ = io.WriteString(w, strings.TrimPrefix(r.URL.Path, "/"))
		}
	}))
	defer site.Close()
	c := newClient(t, fetch.Options{})
	get := func(path string) *fetch.Response {
		resp, err := c.Get(t.Context(), site.URL+path)
		require.NoError(t, err)
		return resp
	}
	for _, empty := range []string{"/", "/coded"} {
		for range 20 { // a pool drops some of what it gets
			for range 3 {
				c.Release(get(empty))
			}
			a, b := get("/aaa"), get("/bbb")
			require.Equal(t, "aaa bbb", string(a.Raw)+" "+string(b.Raw))
			c.Release(a)
			c.Release(b)
		}
	}
}
