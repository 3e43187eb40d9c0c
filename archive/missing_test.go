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
}

// The bodies of a deduplicated crawl are elsewhere. A search for one passes a bounded number of versions. A body
// that is indexed later, but is older, is found.
func TestUnresolvableRevisits(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	defer a.Close()
	const key = "test,a)/"
	revisit := func(second int) *entry {
		return &entry{time: int64(second) * 1e6, offset: int64(second), length: 1, kind: Unchanged, status: 200,
			digest: sha1Digest(&[20]byte{byte(second), byte(second >> 8)})}
	}
	for i := 10; i < 3000; i++ {
		e := revisit(i)
		require.NoError(t, a.resolve(key, e, reference{"http://b.test/", e.time, true}))
		require.Zero(t, e.content)
		a.index.add("x.warc.gz", key, e, "", e.offset)
	}
	e := revisit(100)
	e.offset = 1
	require.NoError(t, a.resolve(key, e, reference{}))
	require.Zero(t, e.content)
	stored := revisit(100)
	stored.time, stored.offset, stored.kind = 80_500_000, 2, Changed
	a.index.add("x.warc.gz", key, stored, "", stored.offset)
	require.NoError(t, a.resolve(key, e, reference{}))
	require.Equal(t, stored.address(), e.content)
	far := revisit(100)
	far.time = int64(150) * 1e6
	require.NoError(t, a.resolve(key, far, reference{}))
	require.Zero(t, far.content, "more than maxSought versions before")
}
