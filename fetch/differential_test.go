package fetch_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// The parts of random responses. Most are valid, so that the invalid ones reach a client in the
// middle of a response.
var (
	randomInterims = []string{"", "", "", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n"}
	randomStatuses = []string{"HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 404",
		"HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified", "HTTP/1.1 302 Found", "HTTP/1.1 599 X",
		"HTTP/1.1 20 OK", "HTTP/2.0 200 OK", "HTTP/1.1  200 OK", "ICY 200 OK"}
	randomFields = []string{"Content-Type: text/html", "X-A: b", "X-A: c", "x-b:  spaced\t ", "X-C:",
		"Set-Cookie: a=b", "Connection: close", "Connection: keep-alive", "Retry-After: 5",
		"X-D: folded\r\n  line", "X E: f", "X-F\x01: g", ": nameless", "Content-Length: 3",
		"Transfer-Encoding: gzip", "X-G: \xff\xfe"}
	randomEnds = []string{"\r\n", "\r\n", "\r\n", "\n"}
)

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// randomAnswer returns a response that is more or less valid HTTP/1.x.
func randomAnswer(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(pick(r, randomInterims))
	end := pick(r, randomEnds)
	b.WriteString(pick(r, randomStatuses) + end)
	for range r.IntN(6) {
		b.WriteString(pick(r, randomFields) + end)
	}
	body := strings.Repeat("body ", r.IntN(2000))
	switch r.IntN(5) {
	case 0: // until the connection ends
		b.WriteString(end + body)
	case 1: // as long as Content-Length
		fmt.Fprintf(&b, "Content-Length: %d%s%s%s", len(body), end, end, body)
	case 2: // shorter, or longer
		fmt.Fprintf(&b, "Content-Length: %d%s%s%s", r.IntN(2*len(body)+1), end, end, body)
	default:
		b.WriteString("Transfer-Encoding: chunked" + end + end + randomChunks(r, body))
	}
	return b.String()
}

// randomChunks splits body into chunks. Sometimes one is malformed, or the last one is missing.
func randomChunks(r *rand.Rand, body string) string {
	var b strings.Builder
	for body != "" {
		n := 1 + r.IntN(len(body))
		size := fmt.Sprintf("%x", n)
		switch r.IntN(20) {
		case 0:
			size = "zz"
		case 1:
			size += ";ext=1"
		}
		b.WriteString(size + "\r\n" + body[:n] + "\r\n")
		body = body[n:]
	}
	switch r.IntN(4) {
	case 0:
	case 1:
		b.WriteString("0\r\nX-Trailer: y\r\n\r\n")
	default:
		b.WriteString("0\r\n\r\n")
	}
	return b.String()
}

// outcome is the part of a result in which two clients must agree.
type outcome struct {
	failed bool
	status int
	header http.Header
	body   string
	whole  bool
}

func viaFetch(t *testing.T, c *fetch.Client) outcome {
	r, err := c.Get(t.Context(), "http://a.test/")
	if err != nil {
		return outcome{failed: true}
	}
	return outcome{false, r.Status, r.Header, string(r.Raw), r.RawCut == fetch.Whole}
}

func viaNetHTTP(t *testing.T, transport http.RoundTripper) outcome {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return outcome{failed: true}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return outcome{false, resp.StatusCode, resp.Header, string(body), err == nil}
}

// The layers below and above net/http do not change how a response is parsed: any response, in any
// pieces.
func TestGetParsesLikeNetHTTP(t *testing.T) {
	rounds := uint64(2000)
	if testing.Short() {
		rounds = 200
	}
	var failed, whole, cut int
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 1))
		answer := randomAnswer(r)
		piece := 1 + r.IntN(len(answer))
		synctest.Test(t, func(t *testing.T) {
			network := memnet.New()
			l, err := network.Listen("a.test")
			require.NoError(t, err)
			wait := accept(l, func(s *session) {
				s.request()
				for rest := answer; rest != ""; rest = rest[min(piece, len(rest)):] {
					if !s.say(rest[:min(piece, len(rest))]) {
						return
					}
				}
			})
			dial := func(ctx context.Context, proto, _ string) (net.Conn, error) {
				return network.Dial(ctx, proto, "a.test")
			}
			c, err := fetch.New(fetch.Options{
				Reach: fetch.Loopback, Dial: dial, Resolve: resolveTo("127.0.0.1"), MaxIdle: -1,
			})
			require.NoError(t, err)
			bare := &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true}
			got, want := viaFetch(t, c), viaNetHTTP(t, bare)
			require.Equal(t, want, got, "seed %d: %.300q in pieces of %d", seed, answer, piece)
			l.Close()
			wait()
			switch {
			case want.failed:
				failed++
			case want.whole:
				whole++
			default:
				cut++
			}
		})
	}
	t.Logf("%d failed, %d whole, %d cut", failed, whole, cut)
	require.Greater(t, min(failed, whole, cut), int(rounds/25), "each outcome must occur")
}
