package fetch_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// large answers with body in gzip, with a Content-Length if requested, and counts what is read.
func large(body string, promise bool, sent *atomic.Int64) server {
	head := ok + "Content-Encoding: gzip\r\n"
	if promise {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return func(s *session) {
		s.request()
		s.say(head + "\r\n")
		for rest := body; rest != ""; rest = rest[min(4096, len(rest)):] {
			if !s.say(rest[:min(4096, len(rest))]) {
				return
			}
			sent.Add(4096)
		}
	}
}

// A decoder that panics takes no memory from the bodies of others.
func TestMemoryOfADecoderThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := strings.Repeat("text", 192<<10)
		opts := fetch.Options{MaxMemory: 4 << 20, Brotli: func(r io.Reader) (io.ReadCloser, error) {
			return struct {
				io.Reader
				io.Closer // nil
			}{io.MultiReader(r, nil), nil}, nil
		}}
		c, stop := inMemory(t, opts, func(s *session) {
			coding := ""
			if strings.Contains(s.request(), "bad") {
				coding = "Content-Encoding: br\r\n"
			}
			s.say(ok + coding + "\r\n" + page)
		})
		defer stop()
		for range 5 {
			require.Panics(t, func() { _, _ = c.Get(t.Context(), "http://a.test/bad") })
		}
		r := get(t, c, "http://a.test/")
		require.Equal(t, fetch.Whole, r.Truncated)
		require.Equal(t, page, string(r.Body))
	})
}

// However many large pages arrive at once, their total memory is bounded: the others wait until a
// response is released.
func TestBodiesInFlightAreBounded(t *testing.T) {
	const size, pages, atOnce = 256 << 10, 32, 4
	body := zipped(t, noise(size))
	for _, promise := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			opts := fetch.Options{MaxBody: 2 * size, MaxMemory: atOnce * 4 * size, Timeout: time.Hour}
			c, stop := inMemory(t, opts, large(body, promise, &sent))
			defer stop()
			var all sync.WaitGroup
			got := make(chan *fetch.Response, pages)
			for range pages {
				all.Go(func() {
					r, err := c.Get(t.Context(), "http://a.test/")
					if err != nil {
						t.Error(err)
						return
					}
					got <- r
				})
			}
			for done := 0; done < pages; {
				synctest.Wait()
				time.Sleep(time.Minute) // the wait must not count against the server
				synctest.Wait()
				here := len(got)
				require.Positive(t, here)
				// A waiting body uses its first 64 KiB, and the buffers on the way.
				most := int64(done+here)*size + int64(pages)*(80<<10)
				require.LessOrEqual(t, sent.Load(), most+atOnce*size)
				require.LessOrEqual(t, here, 3*atOnce, "only released memory is reused")
				for range here {
					r := <-got
					require.Equal(t, fetch.Whole, r.Truncated)
					require.Len(t, r.Body, size)
					c.Release(r)
					done++
				}
			}
			all.Wait()
		})
	}
}

// A Get that waits too long for memory reports an error that does not blame the server.
func TestNoMemoryIsNotTheServersFault(t *testing.T) {
	body := zipped(t, noise(1<<20))
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		c, stop := inMemory(t, fetch.Options{MaxBody: 3 << 19, MaxMemory: 5 << 20}, large(body, true, &sent))
		defer stop()
		first := get(t, c, "http://a.test/")
		require.Equal(t, fetch.Whole, first.Truncated)
		start := time.Now()
		second := get(t, c, "http://a.test/")
		require.Equal(t, fetch.CutMemory, second.RawCut)
		require.Equal(t, fetch.CutMemory, second.Truncated)
		require.Equal(t, 30*time.Second, time.Since(start), "not the ten seconds of MinRate")
		require.Len(t, second.Raw, 64<<10)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "http://a.test/")
		require.ErrorIs(t, err, fetch.Canceled)

		c.Release(first)
		third := get(t, c, "http://a.test/")
		require.Equal(t, fetch.Whole, third.Truncated)
		c.Release(third)
	})
}

// The same applies if the server closes the connection while the Get waits.
func TestDisconnectsWhileWaitingForMemory(t *testing.T) {
	body := noise(1 << 20)
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{MaxMemory: 6 << 20}, func(s *session) {
			if strings.Contains(s.request(), "/patient") {
				s.say(ok + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
				return
			}
			s.say(ok + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:70<<10]))
			time.Sleep(time.Second)
		})
		defer stop()
		for range 3 {
			first := get(t, c, "http://a.test/patient")
			time.AfterFunc(5*time.Second, func() { c.Release(first) })
		}
		second := get(t, c, "http://a.test/")
		require.Equal(t, fetch.CutMemory, second.RawCut)
		c.Release(second)
		require.Equal(t, fetch.CutDisconnect, get(t, c, "http://a.test/").RawCut, "must not wait")
	})
}

// A body ends where more of it could exceed MaxMemory, whatever MaxBody says. Several at a time wait
// for each other.
func TestMaxMemoryBoundsEachBody(t *testing.T) {
	const memory = 3 << 20
	for name, tt := range map[string]struct {
		head, body string
		limit      int64
	}{
		"plain, announced":   {"Content-Length: 8388608\r\n", strings.Repeat("x", 8<<20), 0},
		"plain, unannounced": {"", strings.Repeat("x", 8<<20), -1},
		"gzip":               {"Content-Encoding: gzip\r\n", zipped(t, noise(8<<20)), -1},
		"gzip of little":     {"Content-Encoding: gzip\r\n", zipped(t, strings.Repeat("x", 8<<20)), -1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{MaxBody: tt.limit, MaxRatio: -1, MaxMemory: memory},
				says(ok+tt.head+"\r\n"+tt.body))
			defer stop()
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					r, err := c.Do(t.Context(), fetch.Request{URL: "http://a.test/", MaxBody: 1 << 40})
					if err != nil {
						t.Error(err)
						return
					}
					if held := len(r.Raw) + len(r.Body); held < memory/4 || len(r.Raw) > memory/4 || len(r.Body) > memory/4 {
						t.Errorf("%s: %d raw, %d decoded bytes", name, len(r.Raw), len(r.Body))
					}
					if r.Truncated != fetch.CutLength {
						t.Errorf("%s: %v", name, r.Truncated)
					}
					c.Release(r)
				})
			}
			all.Wait()
		})
	}
}

// Small pages that decode to large ones count as well. The memory of a response without a Release
// is returned when the response is garbage.
func TestForgottenResponsesReturnTheirMemory(t *testing.T) {
	text := strings.Repeat("a page of repeated lines. ", 1<<15)
	small := zipped(t, text)
	require.Less(t, len(small), 16<<10)
	base := listen(t, func(s *session) {
		for s.request() != "" {
			s.say(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", ok, len(small), small))
		}
	})
	c := newClient(t, fetch.Options{MaxMemory: 4 * int64(len(text)+1), MaxRatio: -1, Timeout: 5 * time.Second})
	for range 3 {
		for runtime.GC(); ; runtime.GC() { // cleanups run some time after a collection
			if r := get(t, c, base); r.Truncated != fetch.CutMemory {
				require.True(t, len(r.Body) == len(text), "%d bytes", len(r.Body))
				break
			}
		}
	}
}

// stalling serves /stall/n, of which n bytes come at once and the rest never, and /page/n, of n bytes.
// Neither says how long it is: both could be as long as MaxBody.
func stalling(s *session) {
	for path := s.request(); path != ""; path = s.request() {
		var n int
		_, _ = fmt.Sscanf(path[strings.LastIndexByte(path[:strings.Index(path, " HTTP")], '/'):], "/%d", &n)
		s.say(fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", ok, n, strings.Repeat("x", n)))
		if strings.HasPrefix(path, "GET /stall") {
			silent(s)
			return
		}
		s.say("0\r\n\r\n")
	}
}

// getAll requests a path n times at once, and releases what comes.
func getAll(t *testing.T, c *fetch.Client, all *sync.WaitGroup, n int, path string, want fetch.Kind) {
	for range n {
		all.Go(func() {
			r, err := c.Get(t.Context(), "http://a.test"+path)
			if err != nil {
				t.Error(path, err)
			} else if r.Truncated != want {
				t.Error(path, r.Truncated)
			}
			c.Release(r)
		})
	}
	synctest.Wait()
}

// Bodies that might get large hold the memory of what has come: a hundred slow hosts delay nobody.
func TestSlowBodiesHoldWhatHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{}, stalling)
		defer stop()
		var all sync.WaitGroup
		defer all.Wait()
		getAll(t, c, &all, 100, "/stall/70000", fetch.CutTime)
		start := time.Now()
		for range 20 {
			r := get(t, c, "http://a.test/page/100000")
			require.Equal(t, fetch.Whole, r.Truncated)
			c.Release(r)
		}
		require.Zero(t, time.Since(start))
	})
}

// Where large bodies have taken the memory, small ones pass those that wait for it. These do not
// starve, whatever number of small ones comes.
func TestSmallBodiesPassLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{MaxBody: 1 << 20, MaxMemory: 24 << 20, Timeout: time.Hour, MinRate: -1}, stalling)
		defer stop()
		var slow, large, small sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 12 {
			slow.Go(func() { _, _ = c.Get(ctx, "http://a.test/stall/900000") })
		}
		synctest.Wait()
		getAll(t, c, &large, 3, "/page/900000", fetch.Whole)
		start := time.Now()
		for range 20 {
			getAll(t, c, &small, 10, "/page/100000", fetch.Whole)
		}
		small.Wait()
		require.Zero(t, time.Since(start))
		cancel()
		slow.Wait()
		large.Wait()
		require.Zero(t, time.Since(start))
	})
}

// Bodies that grow at the same time, together beyond the memory, wait for one another and all end.
func TestGrowingBodiesEnd(t *testing.T) {
	const size = 1 << 20
	for _, memory := range []int64{4 * size, 8 * size, 24 * size, 64 * size} {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{MaxBody: size + 1, MaxMemory: memory, MinRate: -1, Timeout: time.Hour}, func(s *session) {
				s.request()
				s.say(ok + "\r\n")
				for range 32 {
					time.Sleep(time.Second)
					s.say(strings.Repeat("x", size/32))
				}
			})
			defer stop()
			var all sync.WaitGroup
			getAll(t, c, &all, 60, "/", fetch.Whole)
			all.Wait()
		})
	}
}

// The window of a decoder counts: it is many times as large as the page that declares it.
func TestWindowsTakeMemory(t *testing.T) {
	var page bytes.Buffer
	w, err := zstd.NewWriter(&page, zstd.WithWindowSize(8<<20))
	require.NoError(t, err)
	_, _ = w.Write([]byte(noise(1000)))
	require.NoError(t, w.Flush()) // or it would know how short the page is
	require.NoError(t, w.Close())
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{MaxMemory: 16 << 20, MaxBody: 2 << 20, Timeout: time.Minute}, func(s *session) {
			if strings.Contains(s.request(), "/zstd") {
				s.say(ok + "Content-Encoding: zstd\r\n\r\n" + page.String())
			} else {
				s.say(ok + "\r\n" + strings.Repeat("x", 1<<20))
			}
		})
		defer stop()
		var held []*fetch.Response
		for range 5 {
			held = append(held, get(t, c, "http://a.test/"))
		}
		r := get(t, c, "http://a.test/zstd")
		require.Equal(t, fetch.Whole, r.RawCut)
		require.Equal(t, fetch.CutMemory, r.Truncated)
		for _, r := range held {
			c.Release(r)
		}
		r = get(t, c, "http://a.test/zstd")
		require.Equal(t, fetch.Whole, r.Truncated)
		require.Equal(t, noise(1000), string(r.Body))
	})
}

// A length that a server announces takes no memory, whatever the limits are.
func TestAnnouncedLengthTakesNoMemory(t *testing.T) {
	const sent = 80 << 10
	for name, tt := range map[string]struct {
		length string
		limit  int64
	}{
		"the longest":       {"Content-Length: 9223372036854775806\r\n", -1},
		"within the limit":  {"Content-Length: 2000000000\r\n", 2 << 30},
		"the largest limit": {"Content-Length: 9223372036854775807\r\n", math.MaxInt64},
		"no length":         {"", math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			base := listen(t, says(ok+tt.length+"\r\n"+strings.Repeat("x", sent)))
			c := newClient(t, fetch.Options{MaxMemory: -1, MaxBody: tt.limit})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := get(t, c, base)
			runtime.ReadMemStats(&after)
			require.Len(t, r.Body, sent)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
		})
	}
}

// A body that needs no decoding counts once, so the whole budget can be used.
func TestMemoryIsCountedOnce(t *testing.T) {
	const size, budget = 1 << 20, 32 << 20
	for name, length := range map[string]string{"announced": fmt.Sprintf("Content-Length: %d\r\n", size), "not announced": ""} {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{MaxMemory: budget, MaxBody: size, Timeout: time.Second},
				says(ok+length+"\r\n"+strings.Repeat("x", size)))
			defer stop()
			var held []*fetch.Response
			for {
				r, err := c.Get(t.Context(), "http://a.test/")
				if err != nil || r.Truncated != fetch.Whole {
					break
				}
				held = append(held, r)
			}
			require.Greater(t, len(held), budget/size*2/3, name)
			require.LessOrEqual(t, len(held), budget/size, name)
			runtime.KeepAlive(held)
		})
	}
}

// A caller may cut Body before Release: the memory that is reused is what the Client gave him.
func TestReleaseOfACutBody(t *testing.T) {
	base := listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			text := strings.Repeat(head[len("GET /"):len("GET /x")], 12_000+4_000*strings.Count(head, "big"))
			s.say(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", ok, len(text), text))
		}
	})
	c := newClient(t, fetch.Options{})
	for range 20 {
		r := get(t, c, base+"/a?big")
		r.Body = r.Body[4096:]
		c.Release(r)
		first, second, third := get(t, c, base+"/b?big"), get(t, c, base+"/c"), get(t, c, base+"/d")
		require.False(t, bytes.ContainsAny(first.Body, "acd"))
		require.False(t, bytes.ContainsAny(second.Body, "abd"))
		require.False(t, bytes.ContainsAny(third.Body, "abc"))
	}
}

// Copies of a Response have one memory, which is recycled once.
func TestReleaseOfACopy(t *testing.T) {
	base := listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			s.say(fmt.Sprintf("%sContent-Length: 5000\r\n\r\n%s", ok, strings.Repeat(head[len("GET /"):len("GET /x")], 5000)))
		}
	})
	c := newClient(t, fetch.Options{})
	for range 20 {
		r := get(t, c, base+"/x")
		same := *r
		c.Release(r)
		c.Release(&same)
		require.Nil(t, same.Body)
		first, second := get(t, c, base+"/a"), get(t, c, base+"/b")
		require.Equal(t, strings.Repeat("a", 5000), string(first.Body))
		require.Equal(t, strings.Repeat("b", 5000), string(second.Body))
	}
}
