package archivehttp

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzHeads asserts that a head is the same however reads split it, and that net/http parses the
// same status.
func FuzzHeads(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"), 3)
	f.Add([]byte("HTTP/1.1 103 x\n\nHTTP/1.0 404 No\nA:b\n\n"), 1)
	f.Add([]byte("HTTP/1.1 101 Switching\r\n\r\n\r\n\r\n"), 9)
	f.Fuzz(func(t *testing.T, answer []byte, step int) {
		var whole, parts heads
		whole.receive(answer)
		for rest := answer; len(rest) > 0; {
			n := min(max(step, 1), len(rest))
			if !parts.done {
				parts.receive(rest[:n])
			}
			rest = rest[n:]
		}
		require.Equal(t, whole.done, parts.done)
		if !whole.done {
			return
		}
		require.Equal(t, whole.got, parts.got)
		require.True(t, bytes.Contains(answer, whole.got))
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(whole.got)), nil)
		if err == nil {
			require.Equal(t, resp.StatusCode, statusOf(whole.got))
			_ = resp.Body.Close()
		}
	})
}
