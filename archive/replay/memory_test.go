package replay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/require"
)

// expanding are pieces of pages and style sheets that grow when they are rewritten, or whose parts
// are long.
var expanding = []struct{ kind, piece string }{
	{"text/css", `@import"a";`}, {"text/css", `a{b:url(c)}`}, {"text/css", "\x01"},
	{"text/css; charset=windows-1252", "\x80"}, {"text/html", `<a href=a>`},
	{"text/html", `<img srcset=a,b>`}, {"text/html", "\r"}, {"text/html", "<b a>"},
	{"text/html", "<p>a"}, {"text/html; charset=windows-1252", "\x80"}, {"text/html", "<"},
	{"text/html", `<b style="a:url(b)">`}, {"text/html", "<!---->"},
}

// What is written is a small multiple of what was archived.
func TestRewritingExpandsALittle(t *testing.T) {
	size := 1 << 20
	if testing.Short() {
		size >>= 2
	}
	for _, e := range expanding {
		for _, start := range []string{"", "<style>", `<img srcset="`, `<b style="`, "<title>",
			`<iframe srcdoc="`, "<b a='", "<svg><style>"} {
			doc := []byte(start + strings.Repeat(e.piece, size/len(e.piece)))
			doc, _ = toUTF8(doc, e.kind, int64(4*size))
			l := testLinker(home)
			l.left = minLinks + perLink*len(doc)
			var out bytes.Buffer
			if strings.HasPrefix(e.kind, "text/css") && start == "" {
				rewriteCSS(&out, string(doc), l)
			} else {
				rewriteHTML(&out, doc, l)
			}
			require.Less(t, out.Len(), minLinks+10*len(doc), "%q after %q", e.piece, start)
		}
	}
}

// Neither words without number nor a long comment take many times their size.
func TestLongPartsTakeLittleMemory(t *testing.T) {
	const size = 1 << 20
	for piece, around := range map[string][2]string{
		"a ": {"<link rel='", "' href=x>"}, "1 ": {"<img srcset='x (", "'>"}, "&": {"<!--", "-->"},
	} {
		doc := []byte(around[0] + strings.Repeat(piece, size/len(piece)) + around[1])
		l := testLinker(home)
		l.scripts = true
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rewriteHTML(bufio.NewWriter(io.Discard), doc, l)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(14*size), around[0]) // with what is garbage by then
	}
}

// hostileHandler shows pages of eight megabytes that grow when they are rewritten, and returns
// their addresses.
func hostileHandler(t *testing.T) (v *Handler, addresses []string) {
	t.Helper()
	var visits []visit
	for i, e := range expanding {
		url := fmt.Sprintf("http://a.example/%d", i)
		body := strings.Repeat(e.piece, (8<<20-100)/len(e.piece))
		visits = append(visits, typed(days(0), url, e.kind, body), typed(days(1), url, e.kind,
			strings.Replace(body, e.piece, "x", 1)))
	}
	v = New(archiveOf(t, visits...), Options{})
	for i := range expanding {
		url := fmt.Sprintf("http://a.example/%d", i)
		addresses = append(addresses, v.replayOf(days(0), url), v.replayOf(days(1), url),
			diffAddress(url, days(0), days(1)))
	}
	return v, addresses
}

// Ninety requests at once for hostile pages stay within the budget of the handler, whatever the
// pages do.
func TestHostilePagesShareABudget(t *testing.T) {
	if testing.Short() {
		t.Skip("gigabytes are rewritten")
	}
	v, addresses := hostileHandler(t)
	server := httptest.NewServer(v)
	defer server.Close()
	const limit = 256 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	debug.FreeOSMemory()
	before, most := taken(), uint64(0)
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-done:
				return
			default:
				most = max(most, taken())
				time.Sleep(time.Millisecond)
			}
		}
	}()
	var all sync.WaitGroup
	for i := range 90 {
		all.Go(func() {
			resp, err := http.Get(server.URL + addresses[i%len(addresses)])
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	all.Wait()
	close(done)
	<-sampled
	t.Logf("%d MiB before, at most %d MiB", before>>20, most>>20)
	require.Less(t, most, uint64(limit+maxMemory+maxSmall))
}

// taken returns the memory that the runtime has from the system.
func taken() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// Whoever asks first is served first, and whoever stops waiting takes nothing.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(4 * unit)
		three, err := b.take(t.Context(), 3*unit)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		failed, order := make(chan error), make(chan int)
		go func() {
			_, err := b.take(ctx, 2*unit)
			failed <- err
		}()
		synctest.Wait()
		go func() {
			giveBack, _ := b.take(t.Context(), 100*unit) // all there is
			order <- 1
			giveBack()
		}()
		synctest.Wait()
		go func() {
			giveBack, _ := b.take(t.Context(), 1)
			order <- 2
			giveBack()
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		three()
		require.Equal(t, 1, <-order)
		require.Equal(t, 2, <-order)
		synctest.Wait()
		require.Empty(t, b.used)
	})
}

// A client that does not read a large page keeps nobody from reading small ones.
func TestSmallPagesDoNotWaitForLargeOnes(t *testing.T) {
	v := New(archiveOf(t, htmlAt(days(0), "http://a.example/", "<p>small")), Options{})
	giveBack, err := v.memory.take(t.Context(), maxMemory)
	require.NoError(t, err)
	defer giveBack()
	require.Contains(t, ask(t, v, v.replayOf(days(0), "http://a.example/")).Body.String(), "small")
}

// Pages that wait for memory do not hold the windows of their decoders.
func TestWaitingPagesTakeNoMemory(t *testing.T) {
	var body bytes.Buffer
	z := brotli.NewWriterOptions(&body, brotli.WriterOptions{Quality: 5, LGWin: 24})
	_, err := z.Write([]byte("<p>" + strings.Repeat("0123456789abcdefghijklmnopq", 700_000)))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	const url = "http://a.example/"
	v := New(archiveOf(t, visit{url, days(0), 200, "Content-Encoding: br", body.String()}), Options{})
	giveBack, err := v.small.take(t.Context(), maxSmall)
	require.NoError(t, err)
	defer giveBack()
	debug.FreeOSMemory()
	before := taken()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "GET", v.replayOf(days(0), url), nil)
			r.Host = "localhost"
			v.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	time.Sleep(time.Second) // until all wait
	runtime.GC()            // pools give back what two collections find unused
	debug.FreeOSMemory()
	require.Less(t, taken(), before+100<<20)
	cancel()
	all.Wait()
}
