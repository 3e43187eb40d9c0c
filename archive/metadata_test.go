package archive

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// others writes a file of another program with a page and a record of each other type.
func others(t *testing.T) (path string) {
	t.Helper()
	e, err := warc.NewEncoder(warc.EncoderOptions{})
	require.NoError(t, err)
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	page := warc.NewID()
	var file bytes.Buffer
	for _, r := range []struct {
		head  warc.Head
		block string
	}{
		{warc.Head{Type: "response", ID: page, TargetURI: "http://a.test/",
			ContentType: "application/http"}, "HTTP/1.1 200 OK\r\n\r\n<p>page"},
		{warc.Head{Type: "response", TargetURI: "dns:a.test", ContentType: "text/dns"},
			"20260506070809\na.test. 60 IN A 192.0.2.1\n"},
		{warc.Head{Type: "resource", TargetURI: "http://a.test/file", ContentType: "text/plain"}, "a file"},
		{warc.Head{Type: "metadata", TargetURI: "http://a.test/", RefersTo: page,
			ContentType: "application/warc-fields"}, "via: x\r\n"},
		{warc.Head{Type: "conversion", TargetURI: "http://a.test/", RefersTo: page,
			ContentType: "text/plain"}, "page"},
	} {
		r.head.Date = at
		_, _, err := e.Encode(&file, &r.head, []byte(r.block))
		require.NoError(t, err)
	}
	path = filepath.Join(t.TempDir(), "others.warc.gz")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	return path
}

// All records are found, as versions or by Records, even after a repair.
func TestOtherRecords(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = a.Import(others(t))
	require.NoError(t, err)
	for _, state := range []string{"open", "opened again", "repaired"} {
		if state != "open" {
			require.NoError(t, a.Close())
			if state == "repaired" {
				_, err := Repair(dir, Options{})
				require.NoError(t, err)
			}
			a, err = Open(dir, Options{})
			require.NoError(t, err)
		}
		for url, want := range map[string]string{
			"dns:a.test": "192.0.2.1", "http://a.test/file": "a file", "http://a.test/": "<p>page",
		} {
			versions, err := a.Versions(url)
			require.NoError(t, err)
			require.Len(t, versions, 1, "%s %s", state, url)
			require.Equal(t, 200, versions[0].Status)
			require.Equal(t, Changed, versions[0].Kind)
			body, err := a.Body(versions[0])
			require.NoError(t, err)
			require.Contains(t, string(body), want)
		}
		var types []string
		for rec, err := range a.Records() {
			require.NoError(t, err)
			types = append(types, rec.Type())
		}
		require.Equal(t, "response response resource metadata conversion", strings.Join(types, " "), state)
		checked, err := a.Verify(t.Context(), func(f Fault) { t.Errorf("%s: %+v", state, f) })
		require.NoError(t, err)
		require.EqualValues(t, 5, checked.Records)
		require.EqualValues(t, 3, checked.Versions)
	}
	require.NoError(t, a.Close())
}

// Metadata belongs to its capture, and is not a version of the page. Verify reports damage in it.
func TestAppendMetadata(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, Options{Level: -1})
	require.NoError(t, err)
	c := page("http://a.test/", "one")
	loc, err := a.Append(c)
	require.NoError(t, err)
	_, err = a.AppendMetadata(loc, warc.Field{Name: "via", Value: "x"}, warc.Field{Name: "b", Value: "y"})
	require.NoError(t, err)
	rec, err := a.Read(loc)
	require.NoError(t, err)
	id := rec.Get("WARC-Record-ID")
	require.NoError(t, rec.Close())
	for range 2 {
		versions, err := a.Versions(c.URL)
		require.NoError(t, err)
		require.Len(t, versions, 1)
		n := 0
		for rec, err := range a.Records() {
			require.NoError(t, err)
			if rec.Type() == "metadata" {
				n++
				require.Equal(t, id, rec.Get("WARC-Refers-To"))
				require.Equal(t, c.URL, rec.Get("WARC-Target-URI"))
				date, _ := rec.Fields().Date()
				require.Equal(t, c.Time.UnixMicro(), date.UnixMicro())
				block, err := io.ReadAll(rec)
				require.NoError(t, err)
				require.Equal(t, "via: x\r\nb: y\r\n", string(block))
			}
		}
		require.Equal(t, 1, n)
		_, err = a.Verify(t.Context(), func(f Fault) { t.Error(f) })
		require.NoError(t, err)
		require.NoError(t, a.Close())
		_, err = Repair(dir, Options{})
		require.NoError(t, err)
		a, err = Open(dir, Options{})
		require.NoError(t, err)
	}
	for name, append := range map[string]func() (Location, error){
		"a line break": func() (Location, error) {
			return a.AppendMetadata(loc, warc.Field{Name: "a", Value: "b\r\nc: d"})
		},
		"no name":        func() (Location, error) { return a.AppendMetadata(loc, warc.Field{Value: "b"}) },
		"another record": func() (Location, error) { return a.AppendMetadata(Location{File: "x.warc.gz", Length: 1}) },
		"no record":      func() (Location, error) { return a.AppendMetadata(Location{}) },
	} {
		_, err := append()
		require.Error(t, err, name)
	}
	require.NoError(t, a.Close())

	names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	require.NoError(t, err)
	data, err := os.ReadFile(names[0])
	require.NoError(t, err)
	at := strings.Index(string(data), "via: x")
	data[at]++
	require.NoError(t, os.WriteFile(names[0], data, 0o600))
	a, err = Open(dir, Options{})
	require.NoError(t, err)
	defer a.Close()
	checked, err := a.Verify(t.Context(), func(f Fault) {
		require.ErrorIs(t, f.Err, warc.ErrDamaged)
	})
	require.NoError(t, err)
	require.NotZero(t, checked.Faults)
}

// Requests are found on either side of their responses.
func TestRequests(t *testing.T) {
	e, err := warc.NewEncoder(warc.EncoderOptions{})
	require.NoError(t, err)
	const url = "http://a.test/rpc"
	write := func(file *strings.Builder, at int, kinds ...string) {
		for _, kind := range kinds {
			h := warc.Head{Type: "response", Date: time.Unix(int64(1e9+at), 0), TargetURI: url,
				ContentType: "application/http;msgtype=response"}
			block := fmt.Sprintf("HTTP/1.1 200 OK\r\n\r\n%d", at)
			if kind != "response" {
				h.Type, h.ContentType = "request", "application/http;msgtype=request"
				block = fmt.Sprintf("%s /rpc HTTP/1.1\r\n\r\n%d", kind, at)
			}
			_, _, err := e.Encode(file, &h, []byte(block))
			require.NoError(t, err)
		}
	}
	for name, order := range map[string][]string{
		"before": {"POST", "response"}, "after": {"response", "POST"},
		"GET before": {"GET", "response"}, "GET after": {"response", "GET"},
		"none": {"response"},
	} {
		t.Run(name, func(t *testing.T) {
			var file strings.Builder
			for i := range 3 {
				write(&file, i, order...)
			}
			path := filepath.Join(t.TempDir(), "x.warc.gz")
			require.NoError(t, os.WriteFile(path, []byte(file.String()), 0o600))
			a, err := Open(t.TempDir(), Options{})
			require.NoError(t, err)
			defer a.Close()
			_, err = a.Import(path)
			require.NoError(t, err)
			method := "GET"
			if strings.Contains(strings.Join(order, " "), "POST") {
				method = "POST"
			}
			versions, err := a.Answers(url, method, "")
			require.NoError(t, err)
			require.Len(t, versions, 3)
			for i, v := range versions {
				if method == "GET" {
					require.Zero(t, v.Request)
					continue
				}
				rec, err := a.Read(v.Request)
				require.NoError(t, err)
				require.Equal(t, "request", rec.Type())
				message, err := rec.HTTP()
				require.NoError(t, err)
				body := make([]byte, 1)
				_, err = message.Body.Read(body)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(i), string(body))
				require.NoError(t, rec.Close())
			}
			checked, err := a.Verify(t.Context(), func(f Fault) { t.Error(f) })
			require.NoError(t, err)
			require.Zero(t, checked.Faults)
		})
	}
}
