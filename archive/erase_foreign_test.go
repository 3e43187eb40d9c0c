package archive

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// encodeAll writes records of another program.
func encodeAll(t *testing.T, to io.Writer, c warc.Compression, heads ...warc.Head) {
	t.Helper()
	e, err := warc.NewEncoder(warc.EncoderOptions{Compression: c})
	require.NoError(t, err)
	for _, h := range heads {
		block := h.Filename // which only a warcinfo record has
		h.Filename = ""
		if h.ID == (warc.ID{}) {
			h.ID = warc.NewID()
		}
		_, _, err = e.Encode(to, &h, []byte(block))
		require.NoError(t, err)
	}
}

// response is a record of another program, without a digest. Its block is in Filename, for encodeAll.
func response(url string, at time.Time, block string) warc.Head {
	return warc.Head{Type: "response", Date: at, TargetURI: url, Filename: block,
		ContentType: "application/http;msgtype=response"}
}

// revisitOf is a record that refers to another one.
func revisitOf(url string, at time.Time, profile, of string, when time.Time, digest, block string) warc.Head {
	h := response(url, at, block)
	h.Type, h.Profile, h.RefersToURI, h.RefersToDate = "revisit", profile, of, when
	if digest != "" {
		h.Extra = []warc.Field{{Name: "WARC-Payload-Digest", Value: digest}}
	}
	return h
}

const (
	okHead        = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	unchangedHead = "HTTP/1.1 304 Not Modified\r\n\r\n"
)

var wholeSecond = someTime.UTC().Truncate(time.Second)

// withForeign opens an archive with a file of another program in its directory.
func withForeign(t *testing.T, heads ...warc.Head) *Archive {
	t.Helper()
	dir := t.TempDir()
	var file bytes.Buffer
	encodeAll(t, &file, warc.Gzip, heads...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "foreign.warc.gz"), file.Bytes(), 0o600))
	return openDir(t, dir, Options{})
}

// requireNowhere requires that no record has a word.
func requireNowhere(t *testing.T, a *Archive, word string) {
	t.Helper()
	for rec, err := range a.Records() {
		require.NoError(t, err)
		block, err := io.ReadAll(rec)
		require.NoError(t, err)
		require.NotContains(t, string(block), word, rec.Type())
	}
}

// A digest selects what repeats the body, too, whether or not that record has the digest.
func TestEraseByTheDigestOfARepeatedBody(t *testing.T) {
	secret := strings.Repeat("the secret text ", 30)
	for _, repeat := range []struct{ profile, digest, head string }{
		{warc.ProfileNotModified, "", unchangedHead},
		{warc.ProfileNotModified, sha1Of(nil), unchangedHead},
		{warc.ProfileIdentical, "", okHead},
	} {
		a := withForeign(t, response("http://a.test/", wholeSecond, okHead+secret),
			revisitOf("http://a.test/", wholeSecond.Add(time.Hour), repeat.profile, "http://a.test/", wholeSecond,
				repeat.digest, repeat.head))
		report, err := a.Erase(t.Context(), Selection{Digest: sha1Of([]byte(secret))}, "asked for")
		require.NoError(t, err)
		require.Equal(t, 2, report.Erased)
		versions, err := a.Versions("http://a.test/")
		require.NoError(t, err)
		require.Empty(t, versions)
		requireNowhere(t, a, "secret")
	}
}

// Metadata goes with its capture, whenever it was written and wherever it is.
func TestEraseTakesTheMetadataOfACapture(t *testing.T) {
	for _, s := range []Selection{{URL: "http://a.test/", From: someTime.Add(-time.Hour), To: someTime.Add(time.Minute)},
		{Digest: sha1Of([]byte("secret"))}} {
		for _, first := range []bool{false, true} {
			page := response("http://a.test/", wholeSecond, okHead+"secret")
			page.ID = warc.NewID()
			about := warc.Head{Type: "metadata", Date: wholeSecond.Add(2 * time.Minute), TargetURI: "http://a.test/",
				ConcurrentTo: page.ID, ContentType: "application/warc-fields", Filename: "outlink: http://secret/\r\n"}
			other := about
			other.ConcurrentTo, other.Filename = warc.NewID(), "of: another\r\n"
			heads := []warc.Head{page, about, other}
			if first {
				heads = []warc.Head{about, other, page}
			}
			a := withForeign(t, heads...)
			report, err := a.Erase(t.Context(), s, "asked for")
			require.NoError(t, err)
			require.EqualValues(t, 2, report.Records)
			requireNowhere(t, a, "secret")
		}
	}
}

// What stays keeps its body, however it was found: a 304 in a response record, a revisit of a revisit, and
// a revisit without a reference whose body is not that of the last change.
func TestEraseKeepsTheBodyOfWhatStays(t *testing.T) {
	const url = "http://a.test/"
	hour := func(n int) time.Time { return wholeSecond.Add(time.Duration(n) * time.Hour) }
	noReference := revisitOf("http://a.test/", hour(3), warc.ProfileIdentical, "", time.Time{}, sha1Of([]byte("body")), okHead)
	for name, heads := range map[string][]warc.Head{
		"304 in a response record": {response(url, hour(1), okHead+"body"), response(url, hour(3), unchangedHead)},
		"revisit of a revisit": {response("http://c.test/", hour(1), okHead+"body"),
			revisitOf("http://b.test/", hour(2), warc.ProfileIdentical, "http://c.test/", hour(1), sha1Of([]byte("body")), okHead),
			revisitOf("http://a.test/", hour(3), warc.ProfileIdentical, "http://b.test/", hour(2), sha1Of([]byte("body")), okHead)},
		"reference of a later date": {response(url, hour(1), okHead+"body"),
			revisitOf(url, hour(3), warc.ProfileIdentical, url, hour(2), sha1Of([]byte("body")), okHead)},
		"by the digest alone": {response(url, hour(1), okHead+"body"), response(url, hour(2), okHead+"other"), noReference},
	} {
		a := withForeign(t, heads...)
		v, err := a.At(url, hour(3))
		require.NoError(t, err)
		require.Equal(t, "body", body(t, a, v), name)
		_, err = a.Erase(t.Context(), Selection{From: hour(1), To: hour(2)}, "asked for")
		require.NoError(t, err)
		v, err = a.At(url, hour(3))
		require.NoError(t, err, name)
		require.Equal(t, "body", body(t, a, v), name)
		faults, _ := verify(t, a)
		require.Empty(t, faults, name)
	}
	a := openDir(t, t.TempDir(), Options{}) // as a crawler writes it whose captures come out of order
	_, err := a.Append(visit{url, hour(2), 304, ""}.capture())
	require.NoError(t, err)
	_, err = a.Append(visit{url, hour(1), 200, "body"}.capture())
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{URL: url, From: hour(1), To: hour(2)}, "asked for")
	require.NoError(t, err)
	v, err := a.At(url, hour(2))
	require.NoError(t, err)
	require.Equal(t, "body", body(t, a, v))
}

// Files that are not written anew, or are not there, may have what is selected, or refer to it.
func TestErasureIsRefusedForWhatItCannotReach(t *testing.T) {
	imported := func(write func(io.Writer)) (a *Archive, path string) {
		a = openDir(t, t.TempDir(), Options{})
		_, err := a.Append(visit{"http://a.test/", wholeSecond, 200, "body"}.capture())
		require.NoError(t, err)
		path = filepath.Join(t.TempDir(), "x.warc.gz")
		var file bytes.Buffer
		write(&file)
		require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
		_, err = a.Import(path)
		require.NoError(t, err)
		return a, path
	}
	refused := func(a *Archive, name string) {
		t.Helper()
		_, err := a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
		require.ErrorContains(t, err, name)
		v, err := a.At("http://a.test/", time.Time{})
		require.NoError(t, err)
		require.Equal(t, "body", body(t, a, v))
		requireNoLeftovers(t, a.fs)
	}
	a, path := imported(func(w io.Writer) { // several records in one member, which are not indexed
		z := gzip.NewWriter(w)
		encodeAll(t, z, warc.None, response("http://b.test/", wholeSecond, okHead), response("http://a.test/1", wholeSecond, okHead))
		require.NoError(t, z.Close())
	})
	refused(a, path)
	a, path = imported(func(w io.Writer) {
		encodeAll(t, w, warc.Gzip, revisitOf("http://b.test/", wholeSecond.Add(time.Hour), warc.ProfileIdentical,
			"http://a.test/", wholeSecond, sha1Of([]byte("body")), okHead))
	})
	refused(a, path)
	a, path = imported(func(w io.Writer) { encodeAll(t, w, warc.Gzip, response("http://b.test/", wholeSecond, okHead)) })
	require.NoError(t, os.Rename(path, path+".away"))
	refused(a, path)
	require.NoError(t, os.Rename(path+".away", path))
	_, err := a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
	require.NoError(t, err)

	dir := t.TempDir() // a file of ours on a volume that is not mounted
	a = openDir(t, dir, Options{MaxFile: 1})
	require.NoError(t, appendText(a, "http://a.test/secret", "secret", 1))
	require.NoError(t, appendText(a, "http://a.test/", "body", 1))
	v, err := a.At("http://a.test/secret", time.Time{})
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(dir, v.Location.File), filepath.Join(dir, "away")))
	refused(a, v.Location.File)
}

// A page is confirmed for years, and each record names the one before, as some programs write it.
func TestManyRevisitsOfRevisits(t *testing.T) {
	const n = maxBack + 200
	minute := func(i int) time.Time { return wholeSecond.Add(time.Duration(i) * time.Minute) }
	heads := []warc.Head{response("http://a.test/", minute(0), okHead+"x")}
	for i := range n {
		heads = append(heads, revisitOf("http://a.test/", minute(i+1), warc.ProfileIdentical, "http://a.test/", minute(i),
			sha1Of([]byte("x")), okHead))
	}
	a := withForeign(t, heads...)
	for i := range n {
		v, err := a.At("http://a.test/", minute(i+1))
		require.NoError(t, err)
		require.Equal(t, "x", body(t, a, v), i)
	}
}

// The entry of a record is found whatever was asked of its URL.
func TestAnswerOfAnyRequest(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	want := map[Location]string{}
	for i, request := range []string{"GET / HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\n\r\nx", "POSTS / HTTP/1.1\r\n\r\n",
		"HEAD / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nRange: bytes=0-9\r\n\r\n", "GET / HTTP/1.1\r\nRange: bytes=0-99\r\n\r\n"} {
		for k := range 3 {
			c := page("http://a.test/", "x")
			c.Time, c.Request = someTime.Add(time.Duration(10*k+i)*time.Hour), []byte(request)
			if strings.Contains(request, "Range") {
				c.Head = []byte("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/100\r\n\r\n")
			}
			loc, err := a.Append(c)
			require.NoError(t, err)
			want[loc] = fmt.Sprint(askedOf(c.Request, map[bool]int{true: 206, false: 200}[i > 3], ""))
		}
	}
	for v, err := range a.All() {
		require.NoError(t, err)
		e := entry{time: microseconds(v.Time), offset: v.Location.Offset}
		plain, _ := urlkey.Of(v.URL)
		key, _, found, err := a.index.answer(plain, &e)
		require.NoError(t, err)
		require.True(t, found)
		_, q := cutAsked(key)
		require.Equal(t, want[v.Location], fmt.Sprint(q))
		delete(want, v.Location)
	}
	require.Empty(t, want)
}

// A request belongs to its capture, whose time is that of the response: it moves with its revisit, although it
// is earlier.
func TestEraseOfARequestWhoseRevisitMoves(t *testing.T) {
	const url = "http://a.test/"
	minute := func(n int) time.Time { return wholeSecond.Add(time.Duration(n) * time.Minute) }
	text := strings.Repeat("body ", 10)
	revisit := revisitOf(url, minute(3), warc.ProfileIdentical, url, minute(1), sha1Of([]byte(text)), okHead)
	revisit.ID = warc.NewID()
	request := warc.Head{Type: "request", Date: minute(2), TargetURI: url, ContentType: "application/http;msgtype=request",
		ConcurrentTo: revisit.ID, Filename: "POST / HTTP/1.1\r\nHost: a.test\r\nCookie: own\r\n\r\n"}
	for _, pair := range [][]warc.Head{{request, revisit}, {revisit, request}} {
		a := withForeign(t, append([]warc.Head{response(url, minute(1), okHead+text)}, pair...)...)
		_, err := a.Erase(t.Context(), Selection{URL: url, To: minute(3)}, "asked for")
		require.NoError(t, err)
		require.NoError(t, a.Close())
		a = openDir(t, a.dir, Options{})
		answers, err := a.Answers(url, "POST", "")
		require.NoError(t, err)
		require.Len(t, answers, 1)
		require.Equal(t, text, body(t, a, answers[0]))
		faults, _ := verify(t, a)
		require.Empty(t, faults)
		_, err = a.keptSum(t.Context(), "foreign.warc.gz", 200, []hole{{0, 100}, {50, 100}}) // with a plan, it would be too late
		require.Error(t, err)
	}
}

// Metadata need not name a URL: then it belongs to the capture that it names, whatever selects that.
func TestEraseTakesMetadataWithoutAURL(t *testing.T) {
	for _, first := range []bool{false, true} {
		page := response("http://a.test/", wholeSecond, okHead+"secret")
		page.ID = warc.NewID()
		about := warc.Head{Type: "metadata", Date: wholeSecond, ConcurrentTo: page.ID,
			ContentType: "application/warc-fields", Filename: "title: secret\r\n"}
		text := strings.Repeat("body ", 50)
		heads := []warc.Head{response("http://a.test/2", wholeSecond, okHead+text), // which moves
			revisitOf("http://b.test/", wholeSecond, warc.ProfileIdentical, "http://a.test/2", wholeSecond, sha1Of([]byte(text)), okHead),
			page, about}
		if first {
			heads[2], heads[3] = about, page
		}
		a := withForeign(t, heads...)
		report, err := a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
		require.NoError(t, err)
		require.Equal(t, 2, report.Erased)
		require.EqualValues(t, 3, report.Records)
		requireNowhere(t, a, "secret")
		v, err := a.At("http://b.test/", wholeSecond)
		require.NoError(t, err)
		require.Equal(t, text, body(t, a, v))
		requireNoLeftovers(t, a.fs)
		faults, _ := verify(t, a)
		require.Empty(t, faults)
	}
}
