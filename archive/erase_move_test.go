package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

func claims(h warc.Head, digest string) warc.Head {
	h.Extra = []warc.Field{{Name: "WARC-Payload-Digest", Value: digest}}
	return h
}

func minuteOf(n int) time.Time { return wholeSecond.Add(time.Duration(n) * time.Minute) }

// seen is what the archive says of all versions.
func seen(t *testing.T, a *Archive) (all []string) {
	t.Helper()
	for v, err := range a.All() {
		require.NoError(t, err)
		text := "no body"
		if body, err := a.Body(v); err == nil {
			text = string(body)
		}
		all = append(all, fmt.Sprintf("%s %s %v %s %q", v.Method, v.URL, v.Time.Format(time.TimeOnly), v.Media, text))
	}
	return all
}

// requireErased erases, and requires that what stays is as it was, also with a new index.
func requireErased(t *testing.T, a *Archive, s Selection, gone int) *Archive {
	t.Helper()
	_, before := verify(t, a)
	all := seen(t, a)
	report, err := a.Erase(t.Context(), s, "asked for")
	require.NoError(t, err)
	require.Equal(t, gone, report.Erased)
	var stay []string
	after := seen(t, a)
	for _, line := range all {
		if len(after) > len(stay) && after[len(stay)] == line {
			stay = append(stay, line)
		}
	}
	require.Equal(t, after, stay, "all: %v", all)
	require.Len(t, stay, len(all)-gone)
	_, now := verify(t, a)
	require.Equal(t, before.Faults, now.Faults)
	dir := a.dir
	require.NoError(t, a.Close())
	a = openDir(t, dir, Options{Reindex: true})
	require.Equal(t, stay, seen(t, a), "with a new index")
	return a
}

// A digest of another program proves nothing: two bodies that claim one stay two, and no capture is taken for
// a repetition of the wrong one, which a record of ours then has.
func TestEraseTrustsNoDigest(t *testing.T) {
	digest := sha1Of([]byte("the real page"))
	a := withForeign(t, claims(response("http://gone.test/1", minuteOf(1), okHead+"body one"), digest),
		claims(response("http://gone.test/2", minuteOf(2), okHead+"body two"), digest),
		revisitOf("http://kept.test/1", minuteOf(3), warc.ProfileIdentical, "http://gone.test/1", minuteOf(1), digest, okHead),
		revisitOf("http://kept.test/2", minuteOf(4), warc.ProfileIdentical, "http://gone.test/2", minuteOf(2), digest, okHead),
		revisitOf("http://kept.test/2", minuteOf(5), warc.ProfileIdentical, "http://gone.test/2", minuteOf(2), digest, okHead))
	a = requireErased(t, a, Selection{Host: "gone.test"}, 2)
	c := page("http://kept.test/1", "the real page")
	c.Time = minuteOf(10)
	_, err := a.Append(c)
	require.NoError(t, err)
	v, err := a.At("http://kept.test/1", time.Time{})
	require.NoError(t, err)
	require.Equal(t, "the real page", body(t, a, v))
}

// Python's warcio hashes the chunks. The record of ours has the digest of the body.
func TestEraseMovesAChunkedBody(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
	const chunks = "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
	digest := sha1Of([]byte(chunks))
	requireErased(t, withForeign(t, claims(response("http://gone.test/", minuteOf(1), head+chunks), digest),
		revisitOf("http://kept.test/", minuteOf(2), warc.ProfileIdentical, "http://gone.test/", minuteOf(1), digest, head)),
		Selection{Host: "gone.test"}, 1)
}

// The head of a revisit may lack the blank line, the status line or everything: nothing of the body is taken
// for a part of it.
func TestErasePromotesRevisitsWithAnyHead(t *testing.T) {
	const text = "line one: x\r\nline two\r\n\r\nline three <p>"
	const html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	for _, head := range []string{html, strings.TrimSpace(html), "HTTP/1.1 200 OK", "", "\r\n", "Server: x\r\n", "none"} {
		revisit := revisitOf("http://kept.test/", minuteOf(2), warc.ProfileIdentical, "http://gone.test/", minuteOf(1),
			sha1Of([]byte(text)), head)
		if head == "none" {
			revisit.ContentType, revisit.Filename = "", ""
		}
		a := requireErased(t, withForeign(t, response("http://gone.test/", minuteOf(1), html+"\r\n"+text), revisit),
			Selection{Host: "gone.test"}, 1)
		v, err := a.At("http://kept.test/", time.Time{})
		require.NoError(t, err)
		resp, err := a.Response(v)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode, "%q", head)
		require.NoError(t, resp.Body.Close())
	}
	file := warc.Head{Type: "resource", Date: minuteOf(1), TargetURI: "http://gone.test/", ContentType: "text/css", Filename: text}
	revisit := revisitOf("http://kept.test/", minuteOf(2), warc.ProfileIdentical, "http://gone.test/", minuteOf(1), sha1Of([]byte(text)), "")
	revisit.ContentType = ""
	requireErased(t, withForeign(t, file, revisit), Selection{Host: "gone.test"}, 1)
}

// A request goes with its capture, and not because its own body has the digest that is selected.
func TestEraseByDigestKeepsOtherRequests(t *testing.T) {
	visit := func(url, method, form, answer string, n int) []warc.Head {
		r := claims(response(url, minuteOf(n), okHead+answer), sha1Of([]byte(answer)))
		r.ID = warc.NewID()
		return []warc.Head{r, claims(warc.Head{Type: "request", Date: minuteOf(n), TargetURI: url, ConcurrentTo: r.ID,
			ContentType: "application/http; msgtype=request", Filename: method + " / HTTP/1.1\r\n\r\n" + form}, sha1Of([]byte(form)))}
	}
	heads := append(visit("http://kept.test/", "GET", "", "the page", 1), visit("http://kept.test/", "POST", "{}", "an answer", 2)...)
	requireErased(t, withForeign(t, append(heads, visit("http://gone.test/", "GET", "", "{}", 3)...)...),
		Selection{Digest: sha1Of([]byte("{}"))}, 1)
}

// A field that may be repeated is, and one that no record of ours may have is dropped.
func TestEraseMovesFieldsOfOtherPrograms(t *testing.T) {
	request := warc.Head{ID: warc.NewID(), Type: "request", Date: minuteOf(3), TargetURI: "http://kept.test/",
		ContentType: "application/http; msgtype=request", Filename: "POST / HTTP/1.1\r\n\r\nform"}
	revisit := revisitOf("http://kept.test/", minuteOf(3), warc.ProfileIdentical, "http://gone.test/", minuteOf(1),
		sha1Of([]byte("body")), okHead)
	for _, id := range []warc.ID{warc.NewID(), request.ID} {
		revisit.Extra = append(revisit.Extra, warc.Field{Name: "WARC-Concurrent-To", Value: "<" + id.String() + ">"})
	}
	revisit.Extra = append(revisit.Extra, warc.Field{Name: "X-Odd", Value: "value"})
	var file bytes.Buffer
	encodeAll(t, &file, warc.None, response("http://kept.test/", minuteOf(2), okHead+"the page"),
		response("http://gone.test/", minuteOf(1), okHead+"body"), request, revisit)
	for _, odd := range []string{"X-Odd: value", "X Odd: value", "X-Odd: val\x01e"} {
		dir := t.TempDir()
		data := strings.Replace(file.String(), "X-Odd: value", odd, 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f.warc"), []byte(data), 0o600))
		requireErased(t, openDir(t, dir, Options{}), Selection{Host: "gone.test"}, 1)
	}
}

// Records of other programs move although one lacks a date, or no reference can name its URL.
func TestEraseMovesWhatNoReferenceNames(t *testing.T) {
	revisit := func(url string, minute int) warc.Head {
		return revisitOf(url, minuteOf(minute), warc.ProfileIdentical, "http://gone.test/", minuteOf(1), sha1Of([]byte("body")), okHead)
	}
	request := response("http://a.test/b-c", minuteOf(9), "GET / HTTP/1.1\r\n\r\n")
	request.Type, request.ContentType = "request", "application/http;msgtype=request"
	var file bytes.Buffer
	encodeAll(t, &file, warc.None, response("http://gone.test/", minuteOf(1), okHead+"body"), request,
		revisit("http://a.test/b-c", 2), revisit("http://d.test/", 3))
	data := strings.ReplaceAll(file.String(), "/b-c\r\n", "/b c\r\n")
	undated := strings.Replace(data, "WARC-Date: "+minuteOf(9).UTC().Format("2006-01-02T15:04"), "X-Date: ", 1)
	require.NotEqual(t, data, undated)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f.warc"), []byte(undated), 0o600))
	require.NoError(t, requireErased(t, openDir(t, dir, Options{}), Selection{Host: "gone.test"}, 1).Close())
}

// A 304 without a reference repeats the version before it, which goes although it only refers to the body.
func TestEraseKeepsWhatA304Repeats(t *testing.T) {
	const url = "http://a.test/"
	requireErased(t, withForeign(t, response(url, minuteOf(1), okHead+"one"), response(url, minuteOf(5), okHead+"two"),
		revisitOf(url, minuteOf(8), warc.ProfileIdentical, url, minuteOf(1), sha1Of([]byte("one")), okHead),
		response(url, minuteOf(9), unchangedHead)), Selection{URL: url, From: minuteOf(8), To: minuteOf(9)}, 1)
}

// A revisit whose body was never here has nothing to lose, and keeps its reference: an import may have the body.
func TestEraseLeavesARevisitWithoutABody(t *testing.T) {
	a := requireErased(t, withForeign(t, response("http://gone.test/2", minuteOf(1), okHead+"x"),
		revisitOf("http://kept.test/", minuteOf(8), warc.ProfileIdentical, "http://gone.test/1", minuteOf(1), sha1Of([]byte("body")), okHead)),
		Selection{Host: "gone.test"}, 1)
	var file bytes.Buffer
	encodeAll(t, &file, warc.Gzip, response("http://gone.test/1", minuteOf(1), okHead+"body"))
	name := filepath.Join(t.TempDir(), "later.warc.gz")
	require.NoError(t, os.WriteFile(name, file.Bytes(), 0o600))
	_, err := a.Import(name)
	require.NoError(t, err)
	v, err := a.At("http://kept.test/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, "body", body(t, a, v))
}

// A version becomes an original whose head would be too long with the fields of the one that goes, too.
func TestErasePromotesWithALongHead(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	for i, status := range []string{"200 OK", "304 Not Modified"} {
		c := page("http://a.test/", "body"[:4-4*i])
		c.Time = minuteOf(i)
		fields := ""
		for k := range warc.MaxLines * 2 / 3 {
			fields += fmt.Sprintf("X-%d-%d: y\r\n", i, k)
		}
		c.Head = []byte("HTTP/1.1 " + status + "\r\n" + fields + "\r\n")
		_, err := a.Append(c)
		require.NoError(t, err)
	}
	_, err := a.Erase(t.Context(), Selection{URL: "http://a.test/", To: minuteOf(1)}, "asked for")
	require.NoError(t, err)
	v, err := a.At("http://a.test/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, "body", body(t, a, v))
	faults, _ := verify(t, a)
	require.Empty(t, faults)
}
