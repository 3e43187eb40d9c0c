package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// foreign is a record of a WARC file that another program wrote.
type foreign struct {
	kind, url, fields, block string
	at                       time.Time
}

// imported returns an archive with a WARC file.
func imported(t testing.TB, records ...foreign) *archive.Archive {
	t.Helper()
	var out bytes.Buffer
	for i, r := range records {
		z := gzip.NewWriter(&out)
		fmt.Fprintf(z, "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Target-URI: %s\r\nWARC-Date: %s\r\n"+
			"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012d>\r\n%s"+
			"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n",
			r.kind, r.url, r.at.UTC().Format(time.RFC3339), i, r.fields, len(r.block), r.block)
		require.NoError(t, z.Close())
	}
	path := filepath.Join(t.TempDir(), "foreign.warc.gz")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	a := archiveOf(t)
	_, err := a.Import(path)
	require.NoError(t, err)
	return a
}

// pageBlock is the block of a response with a page.
const pageBlock = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"

// Whatever the length of the addresses, a list of them stays short, and its pages have them all.
func TestLongAddressesAreListedInParts(t *testing.T) {
	var records []foreign
	for i := range 30 {
		url := fmt.Sprintf("http://a.example/p%03d?%s", i, strings.Repeat("&", 60_000))
		records = append(records, foreign{"response", url, "", pageBlock + "x", days(i)})
	}
	v := New(imported(t, records...), Options{})
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`)
	address, listed := browseAddress("http://a.example/", time.Time{}), map[string]bool{}
	for pages := 0; ; pages++ {
		require.Less(t, pages, 10)
		w := ask(t, v, address)
		require.Equal(t, http.StatusOK, w.Code)
		require.Less(t, w.Body.Len(), 20*maxListed)
		body := w.Body.String()
		for _, name := range regexp.MustCompile(`>p(\d\d\d)\?`).FindAllStringSubmatch(body, -1) {
			listed[name[1]] = true
		}
		found := next.FindStringSubmatch(body)
		if found == nil {
			break
		}
		address = strings.ReplaceAll(found[1], "&amp;", "&")
	}
	require.Len(t, listed, len(records))
}

func TestTimelinesOfLongAddressesAreShort(t *testing.T) {
	url := "http://a.example/?" + strings.Repeat("&", 60_000)
	var records []foreign
	for i := range 200 {
		records = append(records, foreign{"response", url, "", pageBlock + fmt.Sprint(i), days(i)})
	}
	w := ask(t, New(imported(t, records...), Options{}), versionsAddress(url))
	require.Equal(t, http.StatusOK, w.Code)
	require.Less(t, w.Body.Len(), 12<<20)
	require.Equal(t, 10, strings.Count(w.Body.String(), `<td class="when"><a `))
}

// A summary is kept, so it must not keep the addresses that it has counted.
func TestSummariesKeepNoLongNames(t *testing.T) {
	long := strings.Repeat("a", 60_000)
	s, err := summarize(imported(t,
		foreign{"response", "http://" + long + ".example/", "", pageBlock, days(0)},
		foreign{"response", "http://b" + long + ".example/", "", pageBlock, days(0)},
		foreign{"response", "http://c.example/", "", pageBlock, days(0)}), maxScan)
	require.NoError(t, err)
	var names []string
	for _, h := range s.Hosts {
		names = append(names, h.Host)
	}
	require.Equal(t, []string{"", "c.example"}, names)
	require.Equal(t, 2, s.Hosts[0].Pages)
}

// A comparison shows a part of what differs if its page would be long.
func TestComparisonsOfLongLinesAreCut(t *testing.T) {
	const url = "http://a.example/"
	body := func(version string) string {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, "%s-%d%s\n", version, i, strings.Repeat(`"`, 1950))
		}
		return b.String()
	}
	v := New(archiveOf(t, typed(days(0), url, "text/plain", body("a")),
		typed(days(1), url, "text/plain", body("b"))), Options{})
	page := ask(t, v, diffAddress(url, days(0), days(1))).Body.String()
	require.Contains(t, page, "Only the first changes are shown.")
	require.Contains(t, page, "a-0")
	require.Less(t, len(page), 6*maxShown)
}

// Versions whose bodies are in a file that is not here are versions: the timeline shows them, too.
func TestListingsHaveVersionsWithoutContents(t *testing.T) {
	a := imported(t, foreign{"revisit", "http://a.example/x", "WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n",
		pageBlock, days(0)})
	body := ask(t, New(a, Options{}), browseAddress("http://a.example/", time.Time{})).Body.String()
	require.Contains(t, body, "1 version of 1 address")
	require.NotContains(t, body, "There is nothing here")
}

// A listing ends when its reader has left.
func TestListingsEndWithTheirRequests(t *testing.T) {
	v := New(archiveOf(t, htmlAt(days(0), "http://a.example/", "x"), htmlAt(days(0), "http://a.example/y", "y")), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := &listing{prefix: "a.example/", size: itemsPerPage, left: maxListed}
	require.ErrorIs(t, v.list(ctx, l, "http://a.example/", time.Time{}), context.Canceled)
	require.Zero(t, l.versions)
}

// Other crawlers write a reference to any older version with the same body.
func TestAPageThatHasChangedBackIsNew(t *testing.T) {
	const url = "http://a.example/"
	a := imported(t,
		foreign{"response", url, "WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n", pageBlock + "10", days(0)},
		foreign{"response", url, "WARC-Payload-Digest: sha1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\r\n", pageBlock + "99", days(1)},
		foreign{"revisit", url, "WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nWARC-Refers-To-Target-URI: " + url +
			"\r\nWARC-Refers-To-Date: " + days(0).Format(time.RFC3339) + "\r\n", pageBlock, days(2)},
		foreign{"revisit", url, "WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nWARC-Refers-To-Target-URI: " + url +
			"\r\nWARC-Refers-To-Date: " + days(0).Format(time.RFC3339) + "\r\n", pageBlock, days(3)})
	body := ask(t, New(a, Options{}), versionsAddress(url)).Body.String()
	require.Contains(t, body, "<strong>4</strong> versions, 3 with new content")
	require.Equal(t, 2, strings.Count(body, ">changes</a>"))
	require.Contains(t, body, diffEscaped(url, days(1), days(2)))
}

// diffEscaped is diffAddress in HTML.
func diffEscaped(url string, a, b time.Time) string {
	return strings.ReplaceAll(diffAddress(url, a, b), "&", "&amp;")
}

// The version that the bar describes is that in the frame, also when a crawl goes on.
func TestTheFrameShowsWhatTheBarDescribes(t *testing.T) {
	const url = "http://a.example/"
	a := archiveOf(t, htmlAt(days(0), url, "old"))
	v := New(a, Options{})
	page := ask(t, v, at(viewPath, time.Time{}, url)).Body.String()
	frame := regexp.MustCompile(`src="(/replay[^"]*)"`).FindStringSubmatch(page)[1]
	file := regexp.MustCompile(`href="(/raw[^"]*)"`).FindStringSubmatch(page)[1]
	_, err := a.Append(archive.Capture{URL: url, Time: time.Now().Add(time.Hour), Body: []byte("new"),
		Head: []byte(pageBlock)})
	require.NoError(t, err)
	require.Equal(t, "old", ask(t, v, frame, "Sec-Fetch-Dest", "iframe").Body.String())
	require.Equal(t, "old", ask(t, v, file).Body.String())
}

// A page that goes while its request waits for memory is not there.
func TestPagesThatGoWhileTheyWait(t *testing.T) {
	const url = "http://a.example/"
	a := archiveOf(t, htmlAt(days(0), url, "<p>here"))
	v := New(a, Options{})
	giveBack, err := v.small.take(t.Context(), maxSmall)
	require.NoError(t, err)
	answered := make(chan *http.Response)
	go func() { answered <- ask(t, v, v.replayOf(days(0), url), "Sec-Fetch-Dest", "iframe").Result() }()
	for len(v.small.turn) == 0 { // until it waits, holding the turn
		time.Sleep(time.Millisecond)
	}
	_, err = a.Erase(t.Context(), archive.Selection{URL: url}, "asked for")
	require.NoError(t, err)
	giveBack()
	resp := <-answered
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	require.NotEmpty(t, resp.Header.Get("Content-Security-Policy"))
	require.Empty(t, resp.Header.Get("Memento-Datetime"))
}
