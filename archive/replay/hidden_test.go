package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// shownMarkups are pages whose price a browser shows although an element around it has text that is
// hidden elsewhere.
var shownMarkups = []string{
	`<svg><style></p><span>7777`, `<svg><style></br><span>7777`,
	`<svg><foreignObject><div></svg></div></foreignObject><style><b>7777</b></style>`,
	`<math><title><style><span>7777`, `<math><desc><style><i>7777</i></style>`,
	`<math><annotation-xml><style><p>7777</style>`, `<svg><mi><style><p>7777</p></style>`,
	`<svg><annotation-xml><iframe><p>7777</p></iframe>`, `<svg><mi><iframe><p>7777</p></iframe>`,
	`<svg><mi><noembed><p>7777</p></noembed>`, `<math><desc><iframe><p>7777</p></iframe>`,
	`<math><foreignObject><iframe><p>7777</p></iframe>`, `<template></template></template><p>7777`,
	`<svg><template/></svg><p>7777`, `<svg><template></svg><p>7777`, `<math><template><p>7777`,
	`<template><svg></template><template></template><p>7777`, `<svg><foreignObject><template></template>7777`,
}

// hiddenMarkups are pages whose price a browser does not show.
var hiddenMarkups = []string{
	`<svg><style>7777</style></svg>`, `<math><mi><style>7777</style></mi></math>`,
	`<svg><foreignObject><style>7777</style></foreignObject></svg>`,
	`<math><annotation-xml encoding="Text/HTML"><style><p>7777</style>`,
	`<svg><foreignObject><div></svg><style>7777</style></div></foreignObject></svg>`,
	`<template><template></template><p>7777</template>`, `<template><img alt=7777></template>`,
	`<template><svg><template></template></svg>7777</template>`, `<template><svg></template><template>7777`,
	`<svg><desc><template>7777</template></desc></svg>`,
}

func TestTextThatBrowsersShow(t *testing.T) {
	for shown, markups := range map[bool][]string{true: shownMarkups, false: hiddenMarkups} {
		for _, markup := range markups {
			text := strings.Join(visibleText([]byte(markup)), " ")
			require.Equal(t, shown, strings.Contains(text, "7777"), markup)
			out := string(rewrittenHTML([]byte(markup), testLinker(home)))
			require.Equal(t, shown, strings.Contains(strings.Join(visibleText([]byte(out)), " "), "7777"), out)
		}
	}
}

func TestChromiumShowsTheSameText(t *testing.T) {
	b := drive(t, "about:blank")
	for shown, markups := range map[bool][]string{true: shownMarkups, false: hiddenMarkups} {
		for _, markup := range markups {
			for _, page := range []string{markup, string(rewrittenHTML([]byte(markup), testLinker(home)))} {
				data, err := json.Marshal("<!DOCTYPE html><p>A kettle</p>" + page)
				require.NoError(t, err)
				b.evaluate(`document.open();document.write(` + string(data) + `);document.close()`)
				require.Equal(t, shown, b.evaluate(`document.body.innerText.includes("7777")`), page)
			}
		}
	}
}

// A range of widths and a type mean the same after rewriting.
func TestChromiumReadsTheSameSheets(t *testing.T) {
	b := drive(t, "about:blank")
	b.evaluate(`globalThis.rules = (t) => {
		const s = new CSSStyleSheet(); s.replaceSync(t); return [...s.cssRules].map(r => r.cssText.replaceAll("\\6c ", "l")).join() }`) // as it was written
	for _, sheet := range []string{`@media (400px<=width<=800px){a{color:red}}`, `@media (400px < width){a{color:red}}`,
		`@media (400px<width<800px){a{color:red}}`, `@container (width <= 9px){a{color:red}}`,
		`@media (width<calc(9px)){a{color:red}}`, `a{width:attr(data-x type(<length>), 0px)}`,
		`@function --f(--x <length>){result:1px}`, `a{--x:1<2}`, `@media (aspect-ratio<16/9){a{color:red}}`} {
		pair, err := json.Marshal([]string{sheet, rewrittenCSS(sheet, testLinker(home))})
		require.NoError(t, err)
		require.Equal(t, true, b.evaluate(fmt.Sprintf(`(([a, b]) => a != "" && a == b)(%s.map(rules))`, pair)), string(pair))
	}
}

// piecesOf returns what Changes yields for the versions of two times.
func piecesOf(t *testing.T, a *archive.Archive, url string, x, y time.Time) (list []Piece, err error) {
	t.Helper()
	from, failed := a.At(url, x)
	require.NoError(t, failed)
	to, failed := a.At(url, y)
	require.NoError(t, failed)
	for piece, failed := range Changes(a, from, to) {
		if err = failed; err == nil {
			list = append(list, piece)
		}
	}
	return list, err
}

// A line that is long is shown in parts. A line break at the end of a part is still a change.
func TestALineBreakInALongLineIsAChange(t *testing.T) {
	const url = "http://a.example/s.js"
	long := "function f(){" + strings.Repeat("x+=1;", 50) + "return"
	a := archiveOf(t, typed(days(0), url, "text/javascript", long+"{price:1}}"),
		typed(days(1), url, "text/javascript", long+"\n{price:1}}"))
	list, err := piecesOf(t, a, url, days(0), days(1))
	require.NoError(t, err)
	require.Equal(t, []Kind{Kept, Removed, Added, Kept}, []Kind{list[0].Kind, list[1].Kind, list[2].Kind, list[3].Kind})
	require.Equal(t, list[1].Text, list[2].Text)
	page := ask(t, New(a, Options{}), diffAddress(url, days(0), days(1))).Body.String()
	require.NotContains(t, page, "nothing changed")
	require.Contains(t, page, "<mark> …</mark>")
}

// What is not text, and how lines end, is not compared by line.
func TestBytesThatDifferInNoLine(t *testing.T) {
	const url = "http://a.example/"
	const kind = "text/plain; charset=utf-8"
	v := New(archiveOf(t, typed(days(0), url, kind, "caf\xff costs 1"), typed(days(1), url, kind, "caf\xfe costs 1"),
		typed(days(2), url, kind, "a\r\nb"), typed(days(3), url, kind, "a\nb"), typed(days(4), url, kind, "a\nb")), Options{})
	for from, note := range map[int]bool{0: true, 2: true, 3: false} {
		page := ask(t, v, diffAddress(url, days(from), days(from+1))).Body.String()
		require.Contains(t, page, "nothing changed")
		require.Equal(t, note, strings.Contains(page, "The bytes differ"), from)
	}
}

func TestChangesOfATruncatedVersion(t *testing.T) {
	const url = "http://a.example/"
	a := archiveOf(t, htmlAt(days(0), url, "<p>one<p>two<p>three"))
	_, err := a.Append(archive.Capture{URL: url, Time: days(1), Head: []byte(pageBlock), Body: []byte("<p>one<p>tw"),
		Truncated: "disconnect"})
	require.NoError(t, err)
	list, err := piecesOf(t, a, url, days(0), days(1))
	require.Len(t, list, 4)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// Which part of a time a digit belongs to is not guessed.
func TestTimesThatAreNoTimes(t *testing.T) {
	for _, s := range []string{"2026-1-2", "2026-1-1", "2026-1-2 10:15", "26-11-02", "02.11.2026", "2026-11-2", "2026:11:02",
		"2026-11-02-09", "2026-11-02T09:30:00.5", "2026-13-01", "2026-11-02T09:30:00.000000000"} {
		_, ok := parseTime(s)
		require.False(t, ok, s)
	}
	for s, want := range map[string]time.Time{"2026-11-02T09:30:05.000007Z": time.Date(2026, 11, 2, 9, 30, 5, 7000, time.UTC),
		"2026-11-02 09:30": time.Date(2026, 11, 2, 9, 30, 59, 999999000, time.UTC), "20261102": days(1).Truncate(24 * time.Hour).Add(-time.Microsecond)} {
		got, ok := parseTime(s)
		require.True(t, ok, s)
		require.Equal(t, want, got, s)
	}
}

// A long value that grows is dropped, since it is rewritten in memory.
func TestLongValuesDoNotGrow(t *testing.T) {
	const n = 2 << 20
	for _, page := range []string{`<b style='"` + strings.Repeat("\x7f", n) + `'>`,
		`<b style='a:url("data:image/png,` + strings.Repeat("é", n) + `")'>`, `<a href="` + strings.Repeat("é", n) + `">`,
		`<img srcset="data:image/png,` + strings.Repeat("é", n) + `">`, `<img src="data:image/png,` + strings.Repeat("\x01", n) + `">`} {
		require.Less(t, len(rewrittenHTML([]byte(page), testLinker(home))), 100)
	}
	image := `data:image/png;base64,` + strings.Repeat("A", n)
	l := testLinker(home)
	l.left = 4 * n
	require.Contains(t, string(rewrittenHTML([]byte(`<img src="`+image+`">`), l)), image)
}

// deadlines is a response that remembers its deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// The deadline of the operator's server holds again after the handler's own, and a server that has none gets one
// that moves on with each write.
func TestDeadlines(t *testing.T) {
	const url = "http://a.example/"
	v := New(archiveOf(t, htmlAt(days(0), url, strings.Repeat("<p>words</p>", 1<<20/12)),
		typed(days(0), url+"bin", "image/png", strings.Repeat("x", 1<<20))), Options{})
	v.maxRewrite = 1 << 10 // the page is sent as its source
	for _, page := range []string{url, url + "bin"} {
		for _, timeout := range []time.Duration{0, time.Hour} {
			server := &http.Server{WriteTimeout: timeout}
			address := v.replayOf(days(0), page)
			r := httptest.NewRequest("GET", "http://127.0.0.1"+address, nil)
			r = r.WithContext(contextWithServer(r, server))
			r.RequestURI = address
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			start := time.Now()
			v.ServeHTTP(w, r)
			require.Equal(t, 200, w.Code)
			if timeout > 0 {
				for i, deadline := range w.set {
					require.Equal(t, i%2 == 1, deadline.After(start.Add(maxHolding+time.Minute)), page)
				}
				continue
			}
			require.True(t, w.set[len(w.set)-1].IsZero(), "the next response of the connection")
			require.Greater(t, len(w.set), 10, "each write")
		}
	}
}

// A client that reads nothing loses its connection when the time of the server is over.
func TestAClientThatDoesNotRead(t *testing.T) {
	const url = "http://a.example/"
	v := New(archiveOf(t, htmlAt(days(0), url, strings.Repeat("<p>words</p>", 40<<20/12))), Options{})
	ended := make(chan struct{}, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		v.ServeHTTP(w, r)
	}))
	s.Config.WriteTimeout = time.Second
	s.Start()
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", v.replayOf(days(0), url))
	require.NoError(t, err)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the response does not end")
	}
}

// Without scripts, what is in a noscript counts.
func TestTagsInANoscript(t *testing.T) {
	const url = "http://a.example/"
	v := New(archiveOf(t, htmlAt(days(0), url, `<noscript><base href="/dir/"><meta http-equiv=refresh content="0;url=next"></noscript><a href=x>`)), Options{})
	require.Contains(t, ask(t, v, at(viewPath, days(0), url)).Body.String(), "would redirect")
	require.Contains(t, ask(t, v, v.replayOf(days(0), url)).Body.String(), "http://a.example/dir/x")
}
