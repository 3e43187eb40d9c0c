package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Pages that refer to missing content are followed by one that is stored, and by references to it.
// A search that found nothing must not hide content that is newer than its start.
func TestAFruitlessSearchDoesNotHideLaterContent(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "in.warc")
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	const digest = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
	var b strings.Builder
	record := func(i int, kind, fields string) {
		block := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
		fmt.Fprintf(&b, "WARC/1.1\r\nWARC-Type: %s\r\n"+
			"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012d>\r\nWARC-Date: %s\r\n"+
			"WARC-Target-URI: http://a.test/\r\nWARC-Payload-Digest: %s\r\n%s"+
			"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n",
			kind, i, start.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), digest, fields,
			len(block), block)
	}
	for i := range 40 {
		if i == 20 {
			record(i, "response", "")
			continue
		}
		date := start.Add(time.Duration(i)*time.Minute - time.Second)
		record(i, "revisit", "WARC-Profile: "+
			"http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"+
			"WARC-Refers-To-Target-URI: http://a.test/\r\n"+
			"WARC-Refers-To-Date: "+date.Format(time.RFC3339)+"\r\n")
	}
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	a, err := Open(filepath.Join(dir, "archive"), Options{})
	require.NoError(t, err)
	defer a.Close()
	_, err = a.Import(file)
	require.NoError(t, err)
	versions, err := a.Versions("http://a.test/")
	require.NoError(t, err)
	require.Len(t, versions, 40)
	for i, v := range versions {
		require.Equal(t, i >= 20, v.Content != Location{}, i)
	}

	// Each search that finds nothing replaces the one before it.
	var last fruitless
	e := entry{digest: versions[0].digest, kind: Unchanged}
	for i := range 3 {
		ref := reference{"http://a.test/", microseconds(start) + int64(i)*1e6, true}
		found, err := a.resolveReference("a.test/", &e, ref, &last)
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, ref.time+1e6-1, last.from)
	}
	ref := reference{"http://a.test/", microseconds(versions[20].Time), true}
	found, err := a.resolveReference("a.test/", &e, ref, &last)
	require.NoError(t, err)
	require.True(t, found)
}
