package robotstxt

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// liveHeap returns how many bytes each result of build keeps alive.
func liveHeap[T any](n int, build func() T) int {
	var before, after runtime.MemStats
	kept := make([]T, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range kept {
		kept[i] = build()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return (int(after.HeapAlloc) - int(before.HeapAlloc)) / n
}

// compiledFile is a file with the rules of one agent, as a cache keeps it.
func compiledFile(body []byte) *File {
	file := Parse(body)
	file.Rules("examplebot").Allowed("/")
	return file
}

// The documented figures: a crawler keeps a hundred thousand files.
func TestFilesStaySmall(t *testing.T) {
	typical := liveHeap(200, func() *File { return compiledFile([]byte(typicalFile)) })
	hostile := liveHeap(2, func() *File { return compiledFile(hostileFile()) })
	t.Logf("typical %d bytes, hostile %d bytes", typical, hostile)
	require.LessOrEqual(t, typical, 2560)
	require.LessOrEqual(t, hostile, 1_200_000)
}

// For any body, the memory is at most about five times its length.
func TestMemoryFollowsTheBody(t *testing.T) {
	for _, line := range []string{
		"user-agent:N\n", "allow:/\n", "allow:/N\n", "a:b\n", "allow:\nuseragent:a\n",
		"user-agent:N\nallow:/\n", "sitemap:N\n", "disallow:*\n", "allow:/\xff\xff\xff\xff\xff\xff\xff\n",
	} {
		body := fileOf(line)
		live := liveHeap(1, func() *File { return Parse(body) })
		require.LessOrEqual(t, live, 5*len(body), "%q", line)
	}
}

// fileOf repeats a line until the body is full, with N replaced by a different word in each.
func fileOf(line string) []byte {
	var b strings.Builder
	b.WriteString("user-agent: *\n")
	for i := 0; b.Len() < MaxSize; i++ {
		b.WriteString(strings.ReplaceAll(line, "N", number(i)))
	}
	return []byte(b.String())
}

// TestSizeIsNoLie: caches rely on it, so it must not be below the real use, nor far above.
func TestSizeIsNoLie(t *testing.T) {
	for name, body := range map[string][]byte{
		"typical":   []byte(typicalFile),
		"hostile":   hostileFile(),
		"nothing":   nil,
		"names":     fileOf("user-agent:N\nallow:/\n"),
		"notes":     fileOf("a:b\n"),
		"literal":   []byte("user-agent: *\n" + strings.Repeat("disallow: /abcdef\n", 64)),
		"different": fileOf("disallow: /N\n"),
		"rewritten": fileOf("disallow: /N\xff*\n"),
		"indexes":   fileOf("allow: /N/index.htm\n"),
		"one line":  []byte("user-agent: *\n" + strings.Repeat("x", 2*MaxSize)),
		"long tail": []byte(strings.Repeat("#\n", MaxSize/3) + strings.Repeat("x", MaxSize)),
		"marks":     []byte(strings.Repeat("\xEF", MaxSize)),
	} {
		n := 2 + 200_000/(len(body)+1000)
		live := liveHeap(n, func() *File { return compiledFile(body) })
		size := compiledFile(body).Size()
		require.Less(t, live, size+size/16, name)
		require.Greater(t, live+512, size/3, name) // what is fixed counts for 64 bits
	}
}

// TestSitemapURLsAreNotKept: each may be as long as the URL of the file, and there may be many.
func TestSitemapURLsAreNotKept(t *testing.T) {
	var body strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&body, "sitemap:%x\n", i)
	}
	file := Parse([]byte(body.String()))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for range file.SitemapURLs("http://h.test/" + strings.Repeat("a", 2000) + "/r") {
		if n++; n == 20_000 {
			runtime.GC()
			runtime.ReadMemStats(&after)
		}
	}
	require.Equal(t, 20_000, n)
	require.Less(t, int(after.HeapAlloc)-int(before.HeapAlloc), 8<<20) // of 40 MB
}
