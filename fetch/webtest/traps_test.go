package webtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const first = "http://h00000.vweb.test/"

// trapped returns a web of two hosts, the first with every trap.
func trapped(t *testing.T) *Web {
	return start(t, Options{Hosts: 2, Traits: func(h int) Traits {
		return Traits{Traps: TrapAll * Trap(1-h)}
	}})
}

func TestTrapsAreLinkedAndSwitchable(t *testing.T) {
	w := trapped(t)
	c := client(t, w)
	linked := references(first, get(t, c, first).body)
	other := "http://h00001.vweb.test/"
	require.NotContains(t, get(t, c, other).body, trapDir)
	for _, trap := range traps {
		require.NotEmpty(t, trap.links, trap.name)
		for _, rest := range trap.links {
			require.Contains(t, linked, first+"trap/"+trap.name+rest)
			require.Equal(t, 404, get(t, c, other+"trap/"+trap.name+rest).status, "switched off")
		}
	}
	require.Equal(t, 404, get(t, c, first+"trap/").status)
	require.Equal(t, 404, get(t, c, first+"trap/nosuch/1").status)
}

func TestEachTrapBitHasOneName(t *testing.T) {
	var all Trap
	for _, trap := range traps {
		require.Zero(t, all&trap.bit, trap.name)
		all |= trap.bit
	}
	require.Equal(t, TrapAll, all)
}

func TestTrapsAnswer(t *testing.T) {
	w := trapped(t)
	c := client(t, w)
	for _, tt := range []struct {
		name, path string
		status     int
		header     string // "Name: value"
		body       string // a part of it
	}{
		{"a month links to the next", "calendar/2026/1", 200, "", "/calendar/2026/2\""},
		{"December links to the next year", "calendar/2026/12", 200, "", "/calendar/2027/1\""},
		{"there is no month 13", "calendar/2026/13", 404, "", ""},
		{"the year must be a number", "calendar/x/1", 404, "", ""},
		{"chain begins", "chain/20", 302, "Location: /trap/chain/19", ""},
		{"chain ends at the home page", "chain/1", 302, "Location: /", ""},
		{"chain has no link zero", "chain/0", 404, "", ""},
		{"loop from a to b", "loop/a", 302, "Location: /trap/loop/b", ""},
		{"loop from b to a", "loop/b", 302, "Location: /trap/loop/a", ""},
		{"away is the next host", "away", 302, "Location: http://h00001.vweb.test/", ""},
		{"no location", "noloc", 302, "Location: ", ""},
		{"too many requests", "429", 429, "Retry-After: 3600", ""},
		{"broken page", "broken/3", 200, "", "never closed"},
		{"no such broken page", "broken/9999", 404, "", ""},
		{"a charset named by the header", "charset/1", 200,
			"Content-Type: text/html; charset=Shift_JIS", "\x93\x8c\x8b\x9e"},
		{"no content type", "charset/5", 200, "Content-Type: ", "caf\u00e9"},
		{"a wrong content type", "charset/19", 200, "Content-Type: image/png", "<title>"},
		{"no such charset page", "charset/-1", 404, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := get(t, c, first+"trap/"+tt.path)
			require.Equal(t, tt.status, r.status)
			name, value, ok := strings.Cut(tt.header, ": ")
			require.True(t, !ok || r.header.Get(name) == value, r.header)
			require.Contains(t, r.body, tt.body)
		})
	}
	later := get(t, c, first+"trap/503").header.Get("Retry-After")
	_, err := http.ParseTime(later)
	require.NoError(t, err, later)
}

func TestSessionLinksAreAlwaysNew(t *testing.T) {
	c := client(t, trapped(t))
	met := make(map[string]bool)
	next := first + "trap/session/"
	for range 50 {
		links := references(next, get(t, c, next).body)
		require.Len(t, links, 3)
		for _, l := range links {
			require.False(t, met[l], l)
			met[l] = true
		}
		next = links[1]
	}
}

func TestDuplicatesAreTheSameBytes(t *testing.T) {
	c := client(t, trapped(t))
	want := get(t, c, first+"trap/dup/a").body
	for _, key := range []string{"b", "a/b/c/", "a?x=1", "A", "a;v=2", "%61"} {
		require.Equal(t, want, get(t, c, first+"trap/dup/"+key).body, key)
	}
}

func TestHugeHasItsContentLength(t *testing.T) {
	w := trapped(t)
	resp, err := client(t, w).Get(first + "trap/huge")
	require.NoError(t, err)
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.EqualValues(t, hugeSize, n)
	require.EqualValues(t, hugeSize, resp.ContentLength)
}

func TestShortIsShorterThanItsContentLength(t *testing.T) {
	resp, err := client(t, trapped(t)).Get(first + "trap/short")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Len(t, body, shortSize)
	require.EqualValues(t, shortClaim, resp.ContentLength)
}

func TestBombIsValidAndLarge(t *testing.T) {
	var packed bytes.Buffer
	require.NoError(t, writeBomb(&packed, 5))
	r, err := gzip.NewReader(&packed)
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, r)
	require.NoError(t, err, "length and checksum are valid")
	require.EqualValues(t, 5*bombBlock, n)

	resp, err := client(t, trapped(t)).Get(first + "trap/bomb")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	sent, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.Less(t, sent, int64(bombBlocks*bombBlock/500))
}

// raw sends a request by hand and returns the connection.
func raw(t *testing.T, w *Web, path string) io.ReadCloser {
	conn, err := w.Dial(t.Context(), "tcp", "h00000.vweb.test:80")
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: h00000.vweb.test\r\n\r\n", path)
	return conn
}

func TestGarbageIsNotHTTP(t *testing.T) {
	w := trapped(t)
	_, err := client(t, w).Get(first + "trap/garbage")
	require.ErrorContains(t, err, "malformed HTTP")
	all, err := io.ReadAll(raw(t, w, "trap/garbage"))
	require.NoError(t, err, "the connection is closed cleanly")
	require.NotEmpty(t, all)
}

// Endless responses must end when their clients close the connection. The waits below have no time
// limit: if a handler did not return, the test would hang.
func TestEndlessAnswersEndWithTheirClient(t *testing.T) {
	for _, tt := range []struct {
		path string
		read int64 // bytes taken before the client goes away
	}{
		{"trap/endless", 4 << 20},
		{"trap/headers", 4 << 20},
		{"trap/drip", 124}, // the header and a few drops
		{"trap/huge", 1 << 20},
		{"trap/bomb", 1 << 16},
		{"trap/hang", 0},
		{"robots.txt", 0},
	} {
		t.Run(tt.path, func(t *testing.T) {
			w := start(t, Options{Hosts: 1, Traits: func(int) Traits {
				return Traits{Traps: TrapAll, Robots: Robots{Mode: RobotsTimeout}}
			}})
			conn := raw(t, w, tt.path)
			n, err := io.CopyN(io.Discard, conn, tt.read)
			require.NoError(t, err)
			require.Equal(t, tt.read, n)
			for len(w.Log()) == 0 { // a request is logged while its response hangs
				runtime.Gosched()
			}
			require.NoError(t, conn.Close())
			w.conns.Wait()
		})
	}
}

func TestBrokenPagesLinkOnlyHome(t *testing.T) {
	for i, body := range brokenPages {
		for _, to := range references(first+"trap/broken/", body) {
			u, err := url.Parse(to)
			require.NoError(t, err)
			ghost := strings.HasPrefix(u.Path, "/ghost/")
			require.True(t, u.Path == "/" || ghost, "case %d: %.50s", i, to)
		}
	}
}
