package fetch_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// stalls sends most of a page in gzip and then nothing more.
func stalls(t *testing.T, page string) server {
	z := zipped(t, page)
	return func(s *session) {
		s.request()
		s.say(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", ok, len(z), z[:len(z)*9/10]))
		silent(s)
	}
}

// What has come before a limit of time is decoded: that the server gets no more time does not mean
// that the page gets none.
func TestBodiesCutByTimeAreDecoded(t *testing.T) {
	var page string
	for random := noise(60_000); random != ""; random = random[200:] {
		page += random[:200] + strings.Repeat("to be or not to be, ", 50)
	}
	for name, tt := range map[string]struct {
		opts fetch.Options
		cut  fetch.Kind
	}{
		"Timeout": {fetch.Options{Timeout: 2 * time.Second}, fetch.CutTime},
		"MinRate": {fetch.Options{MinRate: 1 << 30, Timeout: -1}, fetch.CutSlow},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, tt.opts, stalls(t, page))
			defer stop()
			r := get(t, c, "http://a.test/")
			require.Equal(t, tt.cut, r.RawCut, name)
			require.Equal(t, tt.cut, r.Truncated, name)
			require.Greater(t, len(r.Body), len(page)/2, "%s: of %d raw bytes", name, len(r.Raw))
			require.True(t, strings.HasPrefix(page, string(r.Body)))
		})
	}
}

// lazy decodes to a thousand bytes each tenth of a second, as on a machine that is busy.
type lazy struct{ left int }

func (l *lazy) Close() error { return nil }

func (l *lazy) Read(p []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(100 * time.Millisecond)
	n := min(len(p), l.left, 1000)
	l.left -= n
	return n, nil
}

// endlessly decodes nothing at all from bytes without end.
type endlessly struct{ *lazy }

func (endlessly) Read(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return copy(p, "x"), nil
}

// The time that decoding takes is not the server's. But it is bounded: by the Timeout, and by Grace
// if that is over.
func TestDecodingTakesItsTime(t *testing.T) {
	coded := says(ok + "Content-Encoding: br\r\nContent-Length: 3\r\n\r\nxxx")
	for _, memory := range []int64{-1, 256 << 20} {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{
				Timeout: time.Minute, MaxMemory: memory, MaxRatio: -1,
				Brotli: func(io.Reader) (io.ReadCloser, error) { return &lazy{150_000}, nil },
			}, coded)
			defer stop()
			r := get(t, c, "http://a.test/")
			require.Equal(t, fetch.Whole, r.Truncated, "MaxMemory %d: %d bytes", memory, len(r.Body))
			require.Len(t, r.Body, 150_000)
		})
	}
	for _, timeout := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{
				Timeout: timeout, MaxRatio: -1,
				Brotli: func(io.Reader) (io.ReadCloser, error) { return endlessly{}, nil },
			}, coded)
			defer stop()
			start := time.Now()
			r := get(t, c, "http://a.test/")
			require.Equal(t, fetch.CutTime, r.Truncated)
			require.NotEmpty(t, r.Body)
			require.WithinRange(t, time.Now(), start.Add(max(timeout, fetch.Grace)), start.Add(max(timeout, fetch.Grace)+time.Second))

			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			start = time.Now()
			_, err := c.Get(ctx, "http://a.test/")
			require.ErrorIs(t, err, fetch.Canceled)
			require.WithinRange(t, time.Now(), start.Add(3*time.Second), start.Add(4*time.Second))
		})
	}
}

// A server that had to wait while there was no memory for its page is not to blame for the time. And
// a caller who leaves while his page waits gets an error, whether the page was still coming or not.
func TestTimeWithoutMemory(t *testing.T) {
	const size = 1 << 20
	body, z := noise(size), zipped(t, strings.Repeat("to be or not to be, ", size/20))
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{Timeout: 10 * time.Second, MaxMemory: 4 * (size + 1), MaxBody: size + 1, MaxRatio: -1},
			func(s *session) {
				switch head := s.request(); {
				case strings.Contains(head, "/gzip"):
					s.say(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", ok, len(z), z))
				case strings.Contains(head, "/slow"):
					s.say(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", ok, size))
					for rest := body; rest != "" && s.say(rest[:size/8]); rest = rest[size/8:] {
						time.Sleep(time.Second)
					}
				default:
					s.say(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", ok, size, body))
				}
			})
		defer stop()
		slow := get(t, c, "http://a.test/slow")
		require.Equal(t, fetch.Whole, slow.RawCut, "alone")
		c.Release(slow)

		hold := func() (release func()) {
			var held []*fetch.Response
			for range 3 {
				held = append(held, get(t, c, "http://a.test/"))
			}
			return func() {
				for _, r := range held {
					c.Release(r)
				}
			}
		}
		time.AfterFunc(5*time.Second, hold())
		slow = get(t, c, "http://a.test/slow")
		require.Equal(t, fetch.CutMemory, slow.RawCut)
		require.Equal(t, fetch.CutMemory, slow.Truncated)
		c.Release(slow)

		defer hold()()
		for _, path := range []string{"", "gzip"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Get(ctx, "http://a.test/"+path)
			require.ErrorIs(t, err, fetch.Canceled, path)
		}
		late := get(t, c, "http://a.test/gzip")
		require.Equal(t, fetch.Whole, late.RawCut)
		require.Equal(t, fetch.CutMemory, late.Truncated)
	})
}
