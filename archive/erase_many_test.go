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
