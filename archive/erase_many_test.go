package archive

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// The time of an erasure does not depend on how many parts of one URL a file has, which is its writer's choice.
func TestEraseBesideManyRanges(t *testing.T) {
	var b bytes.Buffer
	for i := range 2000 {
		head := fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %d-9999/10000\r\n\r\n", i)
		fmt.Fprintf(&b, "WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: <urn:x:%d>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"+
			"WARC-Target-URI: http://b.test/\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n",
			i, len(head), head)
	}
	disk := vfs.NewMem()
	disk.Put("other.warc", b.Bytes())
	a, err := OpenOn(disk, Options{})
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://a.test/", "secret", 1))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	report, err := a.Erase(ctx, Selection{Host: "a.test"}, "asked for")
	require.NoError(t, err)
	require.Equal(t, 1, report.Erased)
	require.NoError(t, a.Close())
}

// Nor does that of Verify, when the requests of such a file are lost.
func TestVerifyOfManyRangesWithoutRequests(t *testing.T) {
	var b bytes.Buffer
	record := func(kind string, i int, head string) {
		fmt.Fprintf(&b, "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:x:%s%d>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"+
			"WARC-Target-URI: http://b.test/\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n",
			kind, kind, i, len(head), head)
	}
	const n = 2000
	for i := range n {
		record("request", i, fmt.Sprintf("GET / HTTP/1.1\r\nRange: bytes=%d-\r\n\r\n", i))
		record("response", i, "HTTP/1.1 206 Partial Content\r\n\r\n")
	}
	disk := vfs.NewMem()
	disk.Put("other.warc", b.Bytes())
	a, err := OpenOn(disk, Options{})
	require.NoError(t, err)
	require.NoError(t, a.Close())
	disk.Put("other.warc", bytes.ReplaceAll(b.Bytes(), []byte("WARC-Type: request"), []byte("WARC-Type: unknown")))
	a, err = OpenOn(disk, Options{})
	require.NoError(t, err)
	late := time.AfterFunc(10*time.Second, func() { _ = a.Close() }) // Verify stops
	defer late.Stop()
	report, err := a.Verify(t.Context(), nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, report.Faults, n) // all of them were answers to other requests
	require.NoError(t, a.Close())
}
