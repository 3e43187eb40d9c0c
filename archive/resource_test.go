package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// appendOthers appends a page and a record of each other type.
func appendOthers(t *testing.T, a *Archive) {
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	page, err := a.Append(Capture{URL: "http://a.test/", Time: at, Body: []byte("<p>page"),
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")})
	require.NoError(t, err)
	for _, r := range []Resource{
		{"response", "dns:a.test", at, "text/dns",
			[]byte("20260506070809\na.test. 60 IN A 192.0.2.1\n"), Location{}},
		{"resource", "http://a.test/file", at, "text/plain", []byte("a file"), Location{}},
		{"metadata", "http://a.test/", at, "application/warc-fields", []byte("via: x\r\n"), page},
		{"conversion", "http://a.test/", at.Add(time.Second), "text/plain", []byte("page"), page},
	} {
		_, err := a.AppendRecord(r)
		require.NoError(t, err, "%+v", r)
	}
}

// All records are found, as versions or by Records, even after a repair.
func TestAppendRecord(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, Options{})
	require.NoError(t, err)
	appendOthers(t, a)
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
		types, of := []string{}, ""
		id := ""
		for rec, err := range a.Records() {
			require.NoError(t, err)
			types = append(types, rec.Type())
			switch rec.Type() {
			case "response":
				if id == "" {
					id = rec.Get("WARC-Record-ID")
				}
			case "metadata", "conversion":
				of = rec.Get("WARC-Refers-To")
				require.Equal(t, id, of)
			}
		}
		require.Equal(t, "warcinfo response response resource metadata conversion",
			strings.Join(types, " "), state)
		checked, err := a.Verify(t.Context(), func(f Fault) { t.Errorf("%s: %+v", state, f) })
		require.NoError(t, err)
		require.EqualValues(t, 6, checked.Records)
		require.EqualValues(t, 3, checked.Versions)
	}
	require.NoError(t, a.Close())
}

// Verify reports damaged records of any type.
func TestVerifyOtherRecords(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, Options{Compression: warc.None})
	require.NoError(t, err)
	appendOthers(t, a)
	require.NoError(t, a.Close())
	names, err := filepath.Glob(filepath.Join(dir, "*.warc"))
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

func TestInvalidRecords(t *testing.T) {
	a, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	defer a.Close()
	valid := Resource{Type: "metadata", URL: "http://a.test/", Time: time.Unix(1, 0),
		ContentType: "application/warc-fields"}
	for name, change := range map[string]func(*Resource){
		"no type":       func(r *Resource) { r.Type = "" },
		"a request":     func(r *Resource) { r.Type = "request" },
		"no URL":        func(r *Resource) { r.URL = "" },
		"no time":       func(r *Resource) { r.Time = time.Time{} },
		"a line break":  func(r *Resource) { r.ContentType = "text/plain\r\nWARC-Type: response" },
		"HTTP":          func(r *Resource) { r.ContentType = "application/http" },
		"unknown Of":    func(r *Resource) { r.Of = Location{File: "none.warc.gz", Length: 1} },
		"space in URLs": func(r *Resource) { r.URL = "http://a.test/ b" },
	} {
		r := valid
		change(&r)
		_, err := a.AppendRecord(r)
		require.Error(t, err, name)
	}
	_, err = a.AppendRecord(valid)
	require.NoError(t, err)
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
