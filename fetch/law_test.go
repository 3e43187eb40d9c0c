package fetch_test

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/weburl"
	"github.com/stretchr/testify/require"
)

// finalHead returns the part of b that net/http parses as the head of the final response, or nil.
func finalHead(b []byte) []byte {
	src := bytes.NewReader(b)
	br := bufio.NewReaderSize(src, 16)
	for {
		start := len(b) - src.Len() - br.Buffered()
		resp, err := http.ReadResponse(br, &http.Request{Method: http.MethodGet})
		if err != nil {
			return nil
		}
		end := len(b) - src.Len() - br.Buffered()
		if resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == 101 {
			return b[start:end]
		}
	}
}

// FuzzRecorder checks that where net/http finds a response, the recorder finds the same head,
// however it is split into pieces.
func FuzzRecorder(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"), uint16(5))
	f.Add([]byte("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.0 404\nA: b\n c\n\n\n"), uint16(40))
	f.Add([]byte("HTTP/1.1  100 \n\nHTTP/1.1 101 Go\r\n\r\n"), uint16(1))
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		want := finalHead(in)
		if want == nil {
			return
		}
		cut := min(int(at), len(in))
		bytewise := make([][]byte, len(in))
		for i := range in {
			bytewise[i] = in[i : i+1]
		}
		for _, pieces := range [][][]byte{{in}, {in[:cut], in[cut:]}, bytewise} {
			if got, done := fetch.Record(pieces...); !done || !bytes.Equal(got, want) {
				t.Errorf("Record(%q) = %q, %t, want %q", pieces, got, done, want)
			}
		}
	})
}

// A server that sends before it is asked can make the recorder and net/http see different heads.
// The recorded head must then not be used for the response.
func TestRecordedHeadsMustFitTheResponse(t *testing.T) {
	require.True(t, fetch.Trusted(200, "HTTP/1.1 200 OK\r\n\r\nbody"))
	require.True(t, fetch.Trusted(404, "HTTP/1.1 100 \r\n\r\nHTTP/1.1 404\n\n"))
	require.False(t, fetch.Trusted(200, "HTTP/1.1 404 No\r\n\r\n"), "another status")
	require.False(t, fetch.Trusted(200, "HTTP/1.1 200 OK\r\nX: y\r\n"), "incomplete")
	require.False(t, fetch.Trusted(200, "the rest of a body\r\n\r\n"), "not a head")
	require.False(t, fetch.Trusted(200, ""), "nothing")
}

// FuzzRequestURI checks that the request target is the path and query of the URL, byte for byte,
// alone or after the scheme and host that make it absolute.
func FuzzRequestURI(f *testing.F) {
	f.Add("http://a.test//x/%zz?y?#z")
	f.Add("https://u:p@[::1]:8080?")
	f.Add("http://a.test/%2e%2E//;a=b&%")
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := fetch.RequestURI(raw)
		if err != nil {
			return
		}
		u, err := weburl.Parse(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := u.Path
		if u.HasQuery {
			want += "?" + u.Query
		}
		host := u.Host
		if u.Port != "" {
			host += ":" + u.Port
		}
		if got != want && got != u.Scheme+"://"+host+want {
			t.Errorf("RequestURI(%q) = %q, want %q", raw, got, want)
		}
	})
}

func TestCodingOf(t *testing.T) {
	tests := []struct {
		name   string
		fields []string
		want   string
	}{
		{"no field", nil, ""},
		{"an empty field", []string{""}, ""},
		{"identity", []string{"identity"}, ""},
		{"gzip", []string{"GZip"}, "gzip"},
		{"the old name of gzip", []string{"x-gzip"}, "gzip"},
		{"commas and spaces", []string{" , gzip ,, "}, "gzip"},
		{"another", []string{"br"}, "br"},
		{"two in one field", []string{"gzip, br"}, "several"},
		{"two in two fields", []string{"gzip", "gzip"}, "several"},
		{"identity adds nothing", []string{"identity", "gzip, identity"}, "gzip"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, fetch.CodingOf(tt.fields), "CodingOf(%q)", tt.fields)
		})
	}
}

func TestTruncationsAreWords(t *testing.T) {
	require.Equal(t, "whole", fetch.Whole.String())
	// WARC 1.1 defines these words, so an archive may write them unchanged.
	require.Equal(t, "length time disconnect",
		fetch.CutLength.String()+" "+fetch.CutTime.String()+" "+fetch.CutDisconnect.String())
}
