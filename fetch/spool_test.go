package fetch_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// requireEmpty fails if a file was left in the directory.
func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSpoolTakesWhatMemoryShouldNot(t *testing.T) {
	text := noise(3000)
	lines := strings.Repeat("to be or not to be, ", 500) // 10,000 bytes
	z := zipped(t, lines)
	require.Less(t, len(z), 1000)
	znoise := zipped(t, text)
	tests := []struct {
		name, coding, raw string
		max               int64
		inMemory          int // of raw
		body              string
		cut, rawCut       fetch.Truncation
	}{
		{"a small body", "", text[:999], 0, 999, text[:999], fetch.Whole, fetch.Whole},
		{"just not too large", "", text[:1000], 0, 1000, text[:1000], fetch.Whole, fetch.Whole},
		{"a byte more", "", text[:1001], 0, 1000, text[:1000], fetch.CutSpool, fetch.Whole},
		{"a large body", "", text, 0, 1000, text[:1000], fetch.CutSpool, fetch.Whole},
		{"just MaxBody", "", text, 3000, 1000, text[:1000], fetch.CutSpool, fetch.Whole},
		{"a byte more than MaxBody", "", text, 2999, 1000, text[:1000], fetch.CutSpool, fetch.CutLength},
		{"MaxBody comes first", "", text, 1000, 1000, text[:1000], fetch.CutLength, fetch.CutLength},
		{"a small body that decodes to a large one", "gzip", z, 0, len(z), lines[:1000],
			fetch.CutSpool, fetch.Whole},
		{"a large body that is coded", "gzip", znoise, 0, 1000, "", fetch.CutSpool, fetch.Whole},
		{"a large body in an unknown coding", "x", text, 0, 1000, text[:1000], fetch.CutCoding,
			fetch.Whole},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			base := listen(t, says(fmt.Sprintf("%sContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s",
				ok, tt.coding, len(tt.raw), tt.raw)))
			c := newClient(t, fetch.Options{Spool: dir, SpoolAbove: 1000, MaxBody: tt.max})
			r := get(t, c, base)
			requireEmpty(t, dir)
			require.Equal(t, tt.cut, r.Truncated)
			require.Equal(t, tt.rawCut, r.RawCut)
			require.Equal(t, tt.raw[:tt.inMemory], string(r.Raw))
			require.True(t, strings.HasPrefix(string(r.Body), tt.body))
			require.LessOrEqual(t, len(r.Body), 1000)

			want := tt.raw
			if tt.rawCut == fetch.CutLength {
				want = want[:tt.max]
			}
			require.Equal(t, sha256.Sum256([]byte(want)), r.RawHash())
			require.Equal(t, sha256.Sum256(r.Body), r.Hash())
			require.EqualValues(t, len(want), r.RawReader().Size())
			for range 2 { // each reader begins anew
				require.NoError(t, iotest.TestReader(r.RawReader(), []byte(want)))
			}
			c.Release(r)
			c.Release(r)
			require.Zero(t, r.RawReader().Size())
		})
	}
}

// A body of any size costs no more memory than SpoolAbove and some buffers.
func TestSpoolBoundsMemory(t *testing.T) {
	const size, above = 64 << 20, 1 << 20
	base := listen(t, func(s *session) {
		s.request()
		s.say(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", ok, size))
		piece := make([]byte, 64<<10) // written as it is: say would make copies
		for range size / len(piece) {
			_, _ = s.Write(piece)
		}
	})
	c := newClient(t, fetch.Options{Spool: t.TempDir(), SpoolAbove: above, MaxBody: -1})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := get(t, c, base)
	runtime.ReadMemStats(&after)
	require.Equal(t, fetch.Whole, r.RawCut)
	require.EqualValues(t, size, r.RawReader().Size())
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*above), "with all that was let go")
	n, err := io.Copy(io.Discard, r.RawReader())
	require.NoError(t, err)
	require.EqualValues(t, size, n)
}

// The guards hold while a body goes to its file.
func TestSpoolIsGuarded(t *testing.T) {
	head := ok + "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 2048)
	tests := []struct {
		name  string
		opts  fetch.Options
		serve server
		after time.Duration
		cut   fetch.Truncation
		size  int64
	}{
		{"a body that stops", fetch.Options{}, func(s *session) {
			s.request()
			s.say(head)
			silent(s)
		}, 12 * time.Second, fetch.CutSlow, 2048},
		{"a body byte by byte", fetch.Options{MinRate: -1, Timeout: 3500 * time.Millisecond}, drip(head),
			3500 * time.Millisecond, fetch.CutTime, 2051},
		{"a connection that ends", fetch.Options{}, says(head), 0, fetch.CutDisconnect, 2048},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				tt.opts.Spool, tt.opts.SpoolAbove = dir, 1000
				c, stop := inMemory(t, tt.opts, tt.serve)
				defer stop()
				start := time.Now()
				r := get(t, c, "http://a.test/")
				require.Equal(t, tt.after, time.Since(start))
				require.Equal(t, tt.cut, r.RawCut)
				require.Equal(t, fetch.CutSpool, r.Truncated)
				require.Equal(t, tt.size, r.RawReader().Size())
				requireEmpty(t, dir)
				c.Release(r)
			})
		})
	}
}

// files returns how many of the test's files are open, on systems that tell.
func files(t *testing.T, dir string) (open int) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, dir) {
			open++
		}
	}
	return open
}

func TestSpoolLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	base := listen(t, func(s *session) {
		for s.request() != "" {
			s.say(ok + "Content-Length: 5000\r\n\r\n" + noise(4000))
			if ctx.Err() == nil {
				cancel()
				silent(s)
				return
			}
			s.say(noise(1000))
		}
	})
	c := newClient(t, fetch.Options{Spool: dir, SpoolAbove: 1000})
	_, err := c.Get(ctx, base, fetch.Validators{})
	require.ErrorIs(t, err, fetch.Canceled)
	require.Zero(t, files(t, dir), "of an exchange that was given up")

	r := get(t, c, base)
	if _, err := os.Stat("/proc/self/fd"); err == nil {
		require.Equal(t, 1, files(t, dir))
	}
	c.Release(r)
	require.Zero(t, files(t, dir))
	requireEmpty(t, dir)
}

func TestSpoolThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{filepath.Join(dir, "none"), os.Args[0]} {
		_, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Spool: name})
		require.ErrorContains(t, err, name)
	}
	gone := filepath.Join(dir, "gone")
	require.NoError(t, os.Mkdir(gone, 0o777))
	c := newClient(t, fetch.Options{Spool: gone, SpoolAbove: 1000})
	require.NoError(t, os.Remove(gone))
	text := noise(3000)
	r := get(t, c, listen(t, says(ok+"Content-Length: 3000\r\n\r\n"+text)))
	require.Equal(t, fetch.CutDisk, r.RawCut)
	require.Equal(t, fetch.CutDisk, r.Truncated)
	require.Equal(t, text[:1000], string(r.Raw))
}
