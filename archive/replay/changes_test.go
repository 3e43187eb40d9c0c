package replay

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// changesOf returns the pieces between the first and the last version of a page, with a sign each.
func changesOf(t *testing.T, visits ...visit) (pieces []string, failed error) {
	t.Helper()
	a := archiveOf(t, visits...)
	versions, err := a.Versions(visits[0].url)
	require.NoError(t, err)
	for piece, err := range Changes(a, versions[0], versions[len(versions)-1]) {
		require.NoError(t, failed, "an error is the last")
		if failed = err; err != nil {
			require.Zero(t, piece)
			continue
		}
		pieces = append(pieces, map[Kind]string{Kept: " ", Removed: "-", Added: "+"}[piece.Kind]+piece.Text)
	}
	return pieces, failed
}

func TestChanges(t *testing.T) {
	const url = "http://shop.test/1"
	cyrillic := "text/html; charset=windows-1251"
	for _, tt := range []struct {
		name     string
		from, to visit
		want     []string
	}{
		{"visible text", htmlAt(days(0), url, "<title>a</title><p>b <b>c</b> d<p>e<img alt=f>"),
			htmlAt(days(1), url, "<title>a</title><p class=x>b <i>C</i> d<p>e<img alt=g><script>h</script>"),
			[]string{" a", "-b c d", "-e [f]", "+b C d", "+e [g]"}},
		{"the same text in other markup", htmlAt(days(0), url, "<p>a<p>b"),
			htmlAt(days(1), url, "<div>a</div>\n<div>b</div>"), []string{" a", " b"}},
		{"preformatted text", htmlAt(days(0), url, "<pre>a\r\nb\n\n c</pre>d\ne"),
			htmlAt(days(1), url, "<pre>a\nB\n\n c</pre>d\ne"), []string{" a", "-b", "+B", " c", " d e"}},
		{"a button with an image", htmlAt(days(0), url, "<p>a<input type=Image alt=buy><input alt=b>"),
			htmlAt(days(1), url, "<p>a<input type=Image alt=sell>"), []string{"-a [buy]", "+a [sell]"}},
		{"a charset of the head", typed(days(0), url, cyrillic, "<p>\xd6\xe5\xed\xe0: 12"),
			typed(days(1), url, cyrillic, "<p>\xd6\xe5\xed\xe0: 9"), []string{"-Цена: 12", "+Цена: 9"}},
		{"another charset", typed(days(0), url, cyrillic, "<p>\xd6\xe5\xed\xe0<p>x"),
			htmlAt(days(1), url, "<p>Цена"), []string{" Цена", "-x"}},
		{"plain text", typed(days(0), url, "text/plain", "a\r\nb"),
			typed(days(1), url, "text/plain", "a\nc\n"), []string{" a", "-b", "+c"}},
		{"the source of a script", typed(days(0), url, "text/javascript", "<p>a"),
			typed(days(1), url, "text/javascript", "<p>a\n<p>b"), []string{" <p>a", "+<p>b"}},
		{"an error page", htmlAt(days(0), url, "<p>a"),
			visit{url, days(1), 404, "Content-Type: text/html", "<p>gone"}, []string{"-a", "+gone"}},
		{"after a style of SVG", htmlAt(days(0), url, "<svg><style/></svg><p>10 euros"),
			htmlAt(days(1), url, "<svg><style/></svg><p>99 euros"), []string{"-10 euros", "+99 euros"}},
		{"after a script of SVG", htmlAt(days(0), url, "<svg><script href=x /></svg><p>10"),
			htmlAt(days(1), url, "<svg><script href=x /></svg><p>99"), []string{"-10", "+99"}},
		{"after a title of SVG", htmlAt(days(0), url, "<svg><title/></svg><p>10"),
			htmlAt(days(1), url, "<svg><title/></svg><p>99"), []string{"-10", "+99"}},
		{"a style of SVG", htmlAt(days(0), url, "<svg><style>a<g>b</g></style><text>c</text></svg>"),
			htmlAt(days(1), url, "<svg><style>d</style><text>c</text></svg>"), []string{" c"}},
		{"without scripts", htmlAt(days(0), url, "<noscript><p>a</noscript><script>b</script>"),
			htmlAt(days(1), url, "<noscript><p>c</noscript><script>d</script>"), []string{"-a", "+c"}},
		{"nothing at all", htmlAt(days(0), url, "<p>a"), htmlAt(days(1), url, ""), []string{"-a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := changesOf(t, tt.from, tt.to)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestChangesThatCannotBeListed(t *testing.T) {
	const url = "http://a.test/"
	_, err := changesOf(t, htmlAt(days(0), url, "<p>a"), typed(days(1), url, "image/png", "x"))
	require.ErrorIs(t, err, ErrNotText)
	require.ErrorContains(t, err, "image/png")

	long := strings.Repeat("line\n", maxLines+10)
	got, err := changesOf(t, typed(days(0), url, "text/plain", "first\n"+long),
		typed(days(1), url, "text/plain", long))
	require.ErrorIs(t, err, warc.ErrTooLarge)
	require.Equal(t, "-first", got[0])
	_, err = changesOf(t, typed(days(0), url, "text/plain", "a"),
		typed(days(1), url, "text/plain", strings.Repeat("x", maxCompared+1)))
	require.ErrorIs(t, err, warc.ErrTooLarge)

	broken := typed(days(0), url, "text/plain\nContent-Encoding: gzip", gzipped(long)[:200])
	got, err = changesOf(t, broken, typed(days(1), url, "text/plain", long))
	require.ErrorContains(t, err, "EOF")
	require.Equal(t, " line", got[0])
	_, err = changesOf(t, typed(days(0), url, "text/plain", long+long), broken)
	require.NotErrorIs(t, err, warc.ErrTooLarge, "damage is reported first")

	a := archiveOf(t)
	for _, err := range Changes(a, archive.Version{URL: url}, archive.Version{URL: url}) {
		require.ErrorIs(t, err, archive.ErrNotFound)
	}
}

// No more lines than are compared are in memory.
func TestLinesAreBounded(t *testing.T) {
	for _, body := range []string{"\n", "{", "ab<p>"} {
		s := side{body: []byte(strings.Repeat(body, maxCompared/len(body))), page: body == "ab<p>"}
		var lines []string
		allocated := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				lines, _ = s.lines(true)
			}
		}).AllocedBytesPerOp()
		require.Len(t, lines, maxLines)
		require.Less(t, allocated, int64(16<<20), body)
		_, err := s.lines(true)
		require.ErrorIs(t, err, warc.ErrTooLarge)
	}
}

// The edits make both texts, with the removed lines of each change before those added in their place.
func FuzzChanges(f *testing.F) {
	f.Add("a\nb\nc", "a\nc\nd")
	f.Add("", "\n\n")
	f.Add("a\nx\nb\ny\nc", "a\nz\nb\nw\nw\nc")
	f.Fuzz(func(t *testing.T, from, to string) {
		var olds, news []string
		last := Kept
		for _, e := range diff(strings.Split(from, "\n"), strings.Split(to, "\n")) {
			require.False(t, last == Added && e.kind == Removed)
			last = e.kind
			if e.kind != Added {
				olds = append(olds, strings.Split(from, "\n")[e.a])
			}
			if e.kind != Removed {
				news = append(news, strings.Split(to, "\n")[e.b])
			}
		}
		require.Equal(t, from, strings.Join(olds, "\n"))
		require.Equal(t, to, strings.Join(news, "\n"))
	})
}
