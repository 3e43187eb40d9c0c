package warc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReader asserts that any bytes are read to their end, and that the records found in them can
// be written and read again.
func FuzzReader(f *testing.F) {
	for _, o := range codings() {
		w := write(f, o, 4)
		f.Add(w.data)
		f.Add(w.data[:len(w.data)-7])
	}
	f.Add([]byte(plain("A: b\r\n c\r\nWARC-Block-Digest: md5:0\r\n", "x") + "filedesc"))
	e, err := NewEncoder(EncoderOptions{Compression: None})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			t.Skip()
		}
		r := NewReader(bytes.NewReader(data), ReaderOptions{Verify: true})
		records, damage, err := readAll(t, r)
		require.NoError(t, err)
		requireTrusted(t, records, damage)
		records, damage, err = readAll(t, NewReader(bytes.NewReader(data),
			ReaderOptions{Verify: true, Salvage: true}))
		require.NoError(t, err)
		for _, d := range damage {
			require.GreaterOrEqual(t, d.Offset, int64(0))
			require.Less(t, d.Offset, int64(len(data)))
		}
		for _, rec := range records {
			requireEncodesBack(t, e, rec)
		}
		streamed, _, err := readAll(t, NewReader(io.MultiReader(bytes.NewReader(data)),
			ReaderOptions{Salvage: true}))
		require.NoError(t, err)
		if len(damage) == 0 {
			require.Equal(t, records, streamed)
		}
	})
}

// requireTrusted requires that the first record after damage is a warcinfo record or has the ID of
// one.
func requireTrusted(t *testing.T, records []copied, damage []*DamageError) {
	for i, rec := range records {
		for _, d := range damage {
			if d.Offset < rec.offset && (i == 0 || records[i-1].offset <= d.Offset) {
				require.True(t, rec.fields.Type() == "warcinfo" ||
					rec.fields.URI("WARC-Warcinfo-ID") != "")
			}
		}
	}
}

// requireEncodesBack requires that a record can be written and read again, except for computed
// fields and those that no header can have.
func requireEncodesBack(t *testing.T, e *Encoder, rec copied) {
	head := Head{Type: "test", ID: ID{1}, Date: someTime}
	for _, field := range rec.fields {
		computed := slices.ContainsFunc(computed, func(name string) bool {
			return strings.EqualFold(name, field.Name)
		})
		if !computed && field.Value != "" {
			head.Extra = append(head.Extra, field)
		}
	}
	var out bytes.Buffer
	if _, _, err := e.Encode(&out, &head, []byte(rec.block)); err != nil {
		require.ErrorIs(t, err, ErrInvalid)
		return
	}
	again := requireRecords(t, NewReader(&out, ReaderOptions{Verify: true}), 1)[0]
	require.Equal(t, rec.block, again.block)
	kept := again.fields[4 : len(again.fields)-1] // between the block digest and the length
	require.Equal(t, len(head.Extra), len(kept))
	for i, field := range head.Extra {
		require.Equal(t, field, kept[i])
	}
}

// FuzzHTTP asserts that a response accepted by net/http is parsed like there.
func FuzzHTTP(f *testing.F) {
	const ok = "HTTP/1.1 200 OK\r\n"
	f.Add([]byte(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\n, w\r\n0\r\n\r\n"))
	f.Add([]byte(ok + "Content-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.0 404\nA: b\n\n"))
	f.Add([]byte("HTTP/1.1 304 Not Modified"))
	f.Add([]byte(ok + "A:\r\n b\r\n\t c\r\n\r\n"))
	e, err := NewEncoder(EncoderOptions{Compression: None})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, block []byte) {
		var file bytes.Buffer
		head := Head{Type: "response", Date: someTime, TargetURI: "http://a.test/"}
		_, _, err := e.Encode(&file, &head, block)
		require.NoError(t, err)
		rec, err := NewReader(&file, ReaderOptions{}).Next()
		require.NoError(t, err)
		got, err := rec.HTTP()
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(block, got.Head))
		body, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.LessOrEqual(t, len(got.Head)+len(body), len(block))

		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(block)), nil)
		if err != nil || !resp.ProtoAtLeast(1, 1) || resp.ProtoMajor > 1 ||
			resp.ContentLength >= 0 || resp.StatusCode < 200 || resp.StatusCode == 204 ||
			resp.StatusCode == 304 {
			return
		}
		want, err := io.ReadAll(resp.Body)
		if err != nil {
			return
		}
		require.Equal(t, resp.StatusCode, got.Status())
		require.Equal(t, string(want), string(body))
		for name := range resp.Header {
			if len(resp.Header[name]) == 1 {
				require.Equal(t, strings.Trim(resp.Header.Get(name), " \t"), got.Get(name))
			}
		}
	})
}

// FuzzParseDigest asserts that a valid digest has the right size, and is also valid in upper case.
func FuzzParseDigest(f *testing.F) {
	f.Add("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")
	f.Add("SHA-256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
	f.Add("md5:d41d8cd98f00b204e9800998ecf8427e")
	f.Fuzz(func(t *testing.T, labelled string) {
		algorithm, sum, ok := Field{Value: labelled}.Digest()
		if !ok {
			return
		}
		require.Equal(t, algorithms[algorithm]().Size(), len(sum))
		again, sum2, ok := Field{Value: strings.ToUpper(labelled)}.Digest()
		require.True(t, ok)
		require.Equal(t, algorithm, again)
		require.Equal(t, sum, sum2)
	})
}

func TestHTTPMessages(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n"
	tests := []struct {
		name, block, head, body string
		status                  int
	}{
		{"without chunks", "HTTP/1.1 200 OK\r\n\r\nbody", "HTTP/1.1 200 OK\r\n\r\n", "body", 200},
		{"chunks", ok + "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n", ok, "body", 200},
		{"chunks that were removed", ok + "body", ok, "body", 200},
		{"one line, chunks removed", ok + "a body\n", ok, "a body\n", 200},
		{"truncated chunks", ok + "9\r\nbody", ok, "body", 200},
		{"invalid chunks", ok + "4\r\nbody\r\nx\r\n", ok, "body", 200},
		{"no body", "HTTP/1.1 304 Not Modified\r\n", "HTTP/1.1 304 Not Modified\r\n", "", 304},
		{"a head with bare LF", "HTTP/1.0 404\nA: b\n\nx", "HTTP/1.0 404\nA: b\n\n", "x", 404},
		{"a request", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "", 0},
		{"a status of letters", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "", 0},
		{"a status of four digits", "HTTP/1.1 2000\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "", 0},
		{"an empty block", "", "", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec, err := NewReader(strings.NewReader(plain("", tt.block)), ReaderOptions{}).Next()
			require.NoError(t, err)
			h, err := rec.HTTP()
			require.NoError(t, err)
			body, err := io.ReadAll(h.Body)
			require.NoError(t, err)
			require.Equal(t, tt.head, string(h.Head))
			require.Equal(t, tt.body, string(body))
			require.Equal(t, tt.status, h.Status())
		})
	}
}

func TestHTTPWithoutEnd(t *testing.T) {
	block := "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxHead/6+1)
	rec, err := NewReader(strings.NewReader(plain("", block)), ReaderOptions{}).Next()
	require.NoError(t, err)
	_, err = rec.HTTP()
	var damage *DamageError
	require.True(t, errors.As(err, &damage))
	require.ErrorContains(t, err, "too long")
}

func TestDates(t *testing.T) {
	for value, want := range map[string]string{
		"2026-11-03T03:05:06Z":           "2026-11-03 03:05:06 +0000 UTC",
		"2026-11-03T03:05:06.007008009Z": "2026-11-03 03:05:06.007008009 +0000 UTC",
		"2026-11-03T03:05Z":              "2026-11-03 03:05:00 +0000 UTC",
		"2026-11-03T03:05:06+01:00":      "2026-11-03 02:05:06 +0000 UTC",
		"2026-11":                        "2026-11-01 00:00:00 +0000 UTC",
		"2026":                           "2026-01-01 00:00:00 +0000 UTC",
	} {
		got, ok := Fields{{"WARC-Date", value}}.Date()
		require.True(t, ok, value)
		require.Equal(t, want, got.String())
	}
	_, ok := Fields{{"WARC-Date", "yesterday"}}.Date()
	require.False(t, ok)
}
