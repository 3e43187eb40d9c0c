package archive

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// What belongs to a capture goes with it, whatever other programs have written: segments, records that name several
// others, and those that look like what an erasure leaves.
func TestEraseTakesWhatBelongsToACapture(t *testing.T) {
	sum := "sha1:" + strings.Repeat("A", 32)
	record := func(fields, block string) string {
		return fmt.Sprintf("WARC/1.1\r\n%sWARC-Date: 2020-01-01T00:00:00Z\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", fields, len(block), block)
	}
	response := "WARC-Type: response\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: http://a.test/\r\nContent-Type: application/http\r\n" +
		"WARC-Payload-Digest: " + sum + "\r\nWARC-Segment-Number: 1\r\n"
	of := "WARC-Record-ID: <urn:x:2>\r\nWARC-Target-URI: http://a.test/\r\n"
	for name, more := range map[string]string{
		"segment":   "WARC-Type: continuation\r\nWARC-Segment-Number: 2\r\nWARC-Segment-Origin-ID: <urn:x:1>\r\n",
		"several":   "WARC-Type: metadata\r\nWARC-Concurrent-To: <urn:x:0>\r\nWARC-Concurrent-To: <urn:x:1>\r\n",
		"a forgery": "WARC-Type: metadata\r\nSpinneret-Erased: 0123456789ab\r\nWARC-Refers-To: <urn:x:1>\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			disk.Put("other.warc", []byte(record(response, "HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat("secret", 100))+
				record(more+of, strings.Repeat("secret", 100))))
			a, err := OpenOn(disk, Options{})
			require.NoError(t, err)
			_, err = a.Erase(t.Context(), Selection{Digest: sum}, "asked for")
			require.NoError(t, err)
			require.False(t, bytes.Contains(disk.Data("other.warc"), []byte("secret")))
			for rec, err := range a.Records() {
				require.NoError(t, err)
				require.Contains(t, []string{"warcinfo", "metadata"}, rec.Type())
			}
			require.NoError(t, a.Close())
		})
	}
}
