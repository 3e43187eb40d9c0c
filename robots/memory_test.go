package robots

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

// compiledFile is a file of which one agent's rules were asked for, as a cache keeps it.
func compiledFile(body []byte) *File {
	file := Parse(body)
	file.Rules("examplebot").Allowed("/")
	return file
}

// The figures are promised: a crawler keeps a hundred thousand files.
func TestFilesStaySmall(t *testing.T) {
	typical := liveHeap(200, func() *File { return compiledFile([]byte(typicalFile)) })
	hostile := liveHeap(2, func() *File { return compiledFile(hostileFile()) })
	t.Logf("typical %d bytes, hostile %d bytes", typical, hostile)
	require.LessOrEqual(t, typical, 2560)
	require.LessOrEqual(t, hostile, 1_200_000)
}

// Whatever a body holds, what is kept of it is at most about five times as long.
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

// fileOf repeats a line until the body is full. N stands for another word in each.
func fileOf(line string) []byte {
	var b strings.Builder
	b.WriteString("user-agent: *\n")
	for i := 0; b.Len() < MaxSize; i++ {
		b.WriteString(strings.ReplaceAll(line, "N", number(i)))
	}
	return []byte(b.String())
}

// Rules may live longer than the File. They must not keep all of a big one for one small group.
func TestRulesKeepTheirGroupsOnly(t *testing.T) {
	var b strings.Builder
	b.WriteString("user-agent: small\ndisallow: /a*b$\nx-note: 1\n" +
		"crawl-delay: 2\nuser-agent: big\n")
	for i := 0; b.Len() < MaxSize-100; i++ {
		fmt.Fprintf(&b, "disallow: /%d/*\n", i)
	}
	b.WriteString("user-agent: small\nallow: /\u00e9/index.html\ndisallow: /last*\nx-note: 2\n")
	body := []byte(b.String())

	live := liveHeap(1, func() Rules { return Parse(body).Rules("small") })
	require.Less(t, live, 2048)

	rules := Parse(body).Rules("small")
	lines := strings.Count(b.String(), "\n")
	require.Equal(t, Verdict{false, "/a*b$", 2}, rules.Match("/acb"))
	require.Equal(t, Verdict{true, "/\u00e9/index.html", lines - 2}, rules.Match("/\u00e9/"))
	require.Equal(t, Verdict{false, "/last*", lines - 1}, rules.Match("/last"))
	var notes []string
	for record := range rules.Records() {
		notes = append(notes, record.Key+"="+record.Value)
	}
	require.Equal(t, []string{"x-note=1", "crawl-delay=2", "x-note=2"}, notes)
}
