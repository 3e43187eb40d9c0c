package export_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/export"
)

// forms are requests with their keys and texts in warcio.js. TestCDXJMatchesWarcio verifies them.
var forms = []struct{ query, method, media, body, key, text string }{
	{"", "POST", "application/x-www-form-urlencoded", "b=2&a=1",
		"?__wb_method=post&a=1&b=2", "b=2&a=1"},
	{"?q=1", "POST", "application/x-www-form-urlencoded; charset=utf-8", "a=1",
		"?__wb_method=post&a=1&q=1", "a=1"},
	{"", "PUT", "application/json", `{"a":1,"b":{"c":"d","a":true},"e":[1,2.5,null],"f":""}`,
		"?__wb_method=put&a=1&a.2_=true&c=d&e=1&e.2_=2.5&e.3_=null",
		"a=1&c=d&a.2_=true&e=1&e.2_=2.5&e.3_=null"},
	{"", "POST", "application/json", "{ broken", "?&__wb_method=post", ""},
	{"", "POST", "text/plain", `{"x":1e21}`, "?__wb_method=post&x=1e+21", "x=1e%2B21"},
	{"", "POST", "text/plain", "no JSON", "?&__wb_method=post", ""},
	{"", "POST", "multipart/form-data; boundary=----XyZ",
		"------XyZ\r\nContent-Disposition: form-data; name=\"one\"\r\n\r\nfirst\r\n" +
			"------XyZ\r\nContent-Disposition: form-data; name=\"two\"\r\n\r\nsecond\r\n" +
			"------XyZ--\r\n",
		"?__wb_method=post&one=first&two=second", "one=first&two=second"},
	{"", "POST", "application/octet-stream", "\x00\x01\xff",
		"?__wb_method=post&__wb_post_data=aah/", "__wb_post_data=AAH/"},
	{"", "HEAD", "", "", "?__wb_method=head&__wb_post_data=", "__wb_post_data="},
	{"", "POST", "application/x-www-form-urlencoded", "a=%ff", "?&__wb_method=post", "a=%ff"},
}

// Responses to different requests have different lines.
func TestPostedKeys(t *testing.T) {
	for _, form := range forms {
		a, err := archive.Open(t.TempDir(), archive.Options{})
		require.NoError(t, err)
		_, err = a.Append(archive.Capture{URL: "http://forms.test/" + form.query, Time: began,
			Request: fmt.Appendf(nil, "%s / HTTP/1.1\r\nContent-Type: %s\r\n\r\n%s", form.method,
				form.media, form.body),
			Head: []byte("HTTP/1.1 200 OK\r\n\r\n")})
		require.NoError(t, err)
		_, err = a.Append(archive.Capture{URL: "http://forms.test/" + form.query,
			Time:    began.Add(time.Hour),
			Request: []byte("GET / HTTP/1.1\r\n\r\n"), Head: []byte("HTTP/1.1 200 OK\r\n\r\n")})
		require.NoError(t, err)
		lines := cdxj(t, a)
		require.Len(t, lines, 2)
		posted := lines[0]
		if !strings.Contains(posted, "method") {
			posted = lines[1]
		}
		key, rest, _ := strings.Cut(posted, " ")
		require.Equal(t, "test,forms)/"+form.key, key)
		require.Contains(t, rest, `"method":"`+form.method+`"`)
		if form.text != "" {
			require.Contains(t, rest, `"requestBody":"`+form.text+`"`)
		}
		require.NoError(t, a.Close())
	}
}

// A deep document needs bounded stack, and a long body a bounded part of a line.
func TestPostedBounds(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	for i, body := range []string{strings.Repeat("[", 900_000), strings.Repeat("a=bé&", 200_000)} {
		media := []string{"application/json", "application/x-www-form-urlencoded"}[i]
		_, err := a.Append(archive.Capture{URL: fmt.Sprint("http://a.test/", i), Time: began,
			Request: []byte("POST / HTTP/1.1\r\nContent-Type: " + media + "\r\n\r\n" + body),
			Head:    []byte("HTTP/1.1 200 OK\r\n\r\n")})
		require.NoError(t, err)
	}
	for _, line := range cdxj(t, a) {
		require.Less(t, len(line), 20_000)
	}
	require.NoError(t, export.CDXJ(&strings.Builder{}, a))
}

// A long name that stands for many values, and many names, cost memory and time in proportion to
// the body.
func TestRepeatedNames(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	name := strings.Repeat("n", 500_000)
	form := []byte("--x--")
	for i := range 25_000 {
		form = fmt.Appendf(form, "x\r\nname=\"%d\"\r\n\r\n%d", i, i)
	}
	for media, body := range map[string]string{
		"application/json":               `{"` + name + `":[1` + strings.Repeat(",1", 200_000) + "]}",
		"multipart/form-data;boundary=x": string(form),
	} {
		_, err := a.Append(archive.Capture{URL: "http://a.test/" + media, Time: began,
			Request: []byte("POST / HTTP/1.1\r\nContent-Type: " + media + "\r\n\r\n" + body),
			Head:    []byte("HTTP/1.1 200 OK\r\n\r\n")})
		require.NoError(t, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lines := cdxj(t, a)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30))
	require.Len(t, lines, 2)
	for _, line := range lines {
		require.Less(t, len(line), 20_000)
	}
}

// A damaged request does not end an export: the page is intact.
func TestDamagedRequest(t *testing.T) {
	dir := t.TempDir()
	a, err := archive.Open(dir, archive.Options{Level: -1})
	require.NoError(t, err)
	for i := range 3 {
		_, err := a.Append(archive.Capture{URL: fmt.Sprint("http://a.test/", i), Time: began,
			Request: []byte("POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\nform"),
			Head:    []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: []byte("text")})
		require.NoError(t, err)
	}
	var v archive.Version // At has only answers to a plain GET
	for posted, err := range a.All() {
		require.NoError(t, err)
		if posted.URL == "http://a.test/1" {
			v = posted
		}
	}
	require.NoError(t, a.Close())
	path := filepath.Join(dir, v.Location.File)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	a, err = archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	for at := v.Request.Offset; at < v.Request.Offset+v.Request.Length; at += 3 {
		data := bytes.Clone(whole)
		data[at] ^= 1
		require.NoError(t, os.WriteFile(path, data, 0o600))
		var out bytes.Buffer
		require.NoError(t, export.CDXJ(&out, a), "byte %d", at)
		require.Equal(t, 3, bytes.Count(out.Bytes(), []byte("\n")))
		require.NoError(t, export.WACZ(io.Discard, a, export.Options{}))
	}
}
