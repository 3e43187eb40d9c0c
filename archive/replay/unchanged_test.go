package replay

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// preconnecting are documents that ask for a connection, which no policy prevents. LIVE is where.
func preconnecting() []visit {
	const root = "http://probe.example/"
	xhtml := ` xmlns="http://www.w3.org/1999/xhtml" rel="preconnect" href="LIVE"/>`
	return []visit{
		htmlAt(days(0), root, `<link rel="preconnect" href="LIVE"><img src="seen.png">`),
		typed(days(0), root+"xml", "text/xml", "<link"+xhtml),
		typed(days(0), root+"feed", "application/rss+xml", "<link"+xhtml),
		typed(days(0), root+"svg", svg, `<svg xmlns="http://www.w3.org/2000/svg"><link`+xhtml+
			`<image href="/seen.png"/></svg>`),
		htmlAt(days(0), root+"long", `<link rel="preconnect" href="LIVE"><img src="seen.png">`+
			"<!--"+strings.Repeat("x", 1<<20)+"-->"),
	}
}

// What is not rewritten is no document, so that nothing in it connects to the live web.
func TestUnchangedContentConnectsToNothing(t *testing.T) {
	for i, page := range preconnecting() {
		var live atomic.Int32
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				live.Add(1)
			}
		}
		server.Start()
		defer server.Close()
		page.body = strings.ReplaceAll(page.body, "LIVE", server.URL)
		v := New(archiveOf(t, page), Options{})
		v.maxRewrite = 1 << 20
		viewer := record(t, v)
		b := drive(t, viewer.URL+at(viewPath, days(0), page.url))
		viewer.wait(t, "/replay/")
		b.evaluate("new Promise((resolve) => setTimeout(resolve, 1000))")
		require.Zero(t, live.Load(), page.url)
		if i == 0 {
			continue
		}
		for _, dest := range []string{"iframe", "object", "embed"} {
			h := ask(t, v, v.replayOf(days(0), page.url), "Sec-Fetch-Dest", dest)
			if strings.HasSuffix(page.url, "svg") {
				require.Contains(t, h.Body.String(), `<img src="/replay/`)
			} else {
				require.Equal(t, "text/plain; charset=utf-8", h.Header().Get("Content-Type"))
			}
		}
	}
}

// An SVG image stays one, also for a browser that does not say what it is for.
func TestSVGIsAnImage(t *testing.T) {
	const url = "http://a.example/i.svg"
	v := New(archiveOf(t, typed(days(0), url, svg, "<svg/>")), Options{})
	for _, dest := range []string{"image", ""} {
		w := ask(t, v, v.replayOf(days(0), url), "Sec-Fetch-Dest", dest)
		require.Equal(t, svg, w.Header().Get("Content-Type"))
		require.Equal(t, "<svg/>", w.Body.String())
		require.Equal(t, dest == "", w.Header().Get("Content-Disposition") == "attachment",
			"it would not be shown as a document")
	}
}

// A navigation to a file that another website makes is answered alike, whatever the archive has.
func TestFilesNeedTheirOwnAddress(t *testing.T) {
	const known, unknown = "http://a.example/known", "http://a.example/unknown"
	v := New(archiveOf(t, typed(days(0), known, "text/plain", "x")), Options{})
	for _, url := range []string{known, unknown} {
		for _, seal := range []string{"", "guess", v.fileSeal(placeOf(t, days(1), url))} {
			w := ask(t, v, at(rawPath+seal+"/", days(0), url))
			require.Equal(t, http.StatusFound, w.Code)
			require.Equal(t, at(viewPath, days(0), url), w.Header().Get("Location"))
		}
	}
	require.Equal(t, "x", ask(t, v, v.rawOf(days(0), known)).Body.String())
}

// A file that cannot be read to its end is not sent as if it could.
func TestDamagedFilesAreNotWhole(t *testing.T) {
	const url = "http://a.example/file"
	packed := gzipped(strings.Repeat("0123456789 and so on", 1000))
	bad := typed(days(0), url, "application/zip\nContent-Encoding: gzip", packed[:len(packed)/2])
	v := New(archiveOf(t, bad), Options{})
	server := httptest.NewServer(v)
	defer server.Close()
	for _, address := range []string{v.rawOf(days(0), url), v.replayOf(days(0), url)} {
		answer, err := http.Get(server.URL + address)
		if err == nil {
			_, err = answer.Body.Read(make([]byte, 1<<20))
			for err == nil {
				_, err = answer.Body.Read(make([]byte, 1<<20))
			}
			require.NoError(t, answer.Body.Close())
		}
		require.ErrorContains(t, err, "EOF")
		require.NotEqual(t, "EOF", err.Error())
	}
}

// The first version after a time is found without the versions after it.
func TestFirstAfter(t *testing.T) {
	const url = "http://a.example/"
	var visits []visit
	for i := range 300 {
		visits = append(visits, htmlAt(days(0).Add(time.Duration(i)*time.Second), url, "x"))
	}
	v := New(archiveOf(t, visits...), Options{})
	for _, none := range []time.Time{days(-9999), days(-1), days(0).Add(-time.Microsecond)} {
		first, err := v.firstAfter(url, none)
		require.NoError(t, err)
		require.Equal(t, days(0), first.Time)
		require.Less(t, testing.AllocsPerRun(1, func() { _, _ = v.firstAfter(url, none) }), 2000.0)
	}
}
