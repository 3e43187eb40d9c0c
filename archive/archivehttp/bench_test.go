package archivehttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
)

// BenchmarkRoundTrip fetches a page of 20 KB: without recording it, recording it by hand with heads
// that net/http has parsed, and with a Transport.
func BenchmarkRoundTrip(b *testing.B) {
	page := make([]byte, 20<<10)
	_, _ = io.ReadFull(&counting{}, page[:4<<10])
	for n := 4 << 10; n < len(page); n *= 2 {
		copy(page[n:], page[:n])
	}
	var served atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%20d", served.Add(1)) // each is stored
		_, _ = w.Write(page[20:])
	}))
	defer s.Close()
	for _, how := range []string{"not", "hand", "transport"} {
		b.Run("recorded="+how, func(b *testing.B) {
			a, err := archive.Open(b.TempDir(), archive.Options{})
			require.NoError(b, err)
			defer a.Close()
			base := http.DefaultTransport.(*http.Transport).Clone()
			c := &http.Client{Transport: base}
			if how == "transport" {
				c.Transport = archivehttp.NewTransport(base, a)
			}
			defer c.CloseIdleConnections()
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				resp, err := c.Get(s.URL)
				require.NoError(b, err)
				if how == "hand" {
					byHand(b, a, resp)
					continue
				}
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(b, err)
				require.NoError(b, resp.Body.Close())
			}
		})
	}
}

func byHand(b *testing.B, a *archive.Archive, resp *http.Response) {
	started := time.Now()
	body, err := io.ReadAll(resp.Body)
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
	head, err := httputil.DumpResponse(resp, false)
	require.NoError(b, err)
	var request bytes.Buffer
	require.NoError(b, resp.Request.Write(&request))
	_, err = a.Append(archive.Capture{URL: resp.Request.URL.String(), Time: started,
		Request: request.Bytes(), Head: head, Body: body})
	require.NoError(b, err)
}
