package archivehttp_test

import (
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// open opens an empty archive, which is closed when the test ends.
func open(t testing.TB) *archive.Archive {
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// client returns a client that records all responses.
func client(t testing.TB, base http.RoundTripper) (*http.Client, *archive.Archive) {
	a := open(t)
	c := &http.Client{Transport: archivehttp.NewTransport(base, a)}
	t.Cleanup(c.CloseIdleConnections)
	return c, a
}

// record is a record of a WARC file.
type record struct {
	kind   string
	fields warc.Fields
	block  string
}

// records returns the recorded requests and responses of a URL.
func records(t testing.TB, a *archive.Archive, url string) (requests, responses []record) {
	names, err := a.Files()
	require.NoError(t, err)
	for _, name := range names {
		f, err := a.OpenFile(name)
		require.NoError(t, err)
		for rec, err := range warc.NewReader(f, warc.ReaderOptions{Verify: true}).Records() {
			require.NoError(t, err)
			if rec.Fields().URI("WARC-Target-URI") != url {
				continue
			}
			block, err := io.ReadAll(rec)
			require.NoError(t, err)
			r := record{rec.Type(), slices.Clone(rec.Fields()), string(block)}
			if r.kind == "request" {
				requests = append(requests, r)
			} else {
				responses = append(responses, r)
			}
		}
		require.NoError(t, f.Close())
	}
	return requests, responses
}

// only returns the records of a URL that was fetched once.
func only(t testing.TB, a *archive.Archive, url string) (request, response record) {
	requests, responses := records(t, a, url)
	require.Len(t, requests, 1)
	require.Len(t, responses, 1)
	return requests[0], responses[0]
}

// wire reports whether the head of a record has the bytes of the wire.
func (r record) wire() bool { return r.fields.Get("Spinneret-Heads") == "" }

var quiet = log.New(io.Discard, "", 0)

// raw starts a server that answers each connection with the same bytes and closes it.
func raw(t testing.TB, answer string) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// site has a page for each behavior of servers.
func site() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, strings.Repeat("hello", 1000))
			_ = z.Close()
			return
		}
		fmt.Fprint(w, strings.Repeat("hello", 1000))
	})
	mux.HandleFunc("/notgzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, "this is not gzip")
	})
	mux.HandleFunc("/morethangzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		for range 2 { // two members are one body
			zw := gzip.NewWriter(w)
			fmt.Fprint(zw, "hello")
			_ = zw.Close()
		}
		fmt.Fprint(w, "trailing")
	})
	mux.HandleFunc("/emptygzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
	})
	mux.HandleFunc("/chunks", func(w http.ResponseWriter, r *http.Request) {
		for i := range 5 {
			fmt.Fprintf(w, "chunk %d\n", i)
			_ = http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) {})
	mux.HandleFunc("/204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"x"`)
		w.WriteHeader(304)
	})
	mux.HandleFunc("/404", http.NotFound)
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/chunks", http.StatusFound)
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "after the hints")
	})
	mux.HandleFunc("/post", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %x", r.Method, r.ContentLength, crc32.ChecksumIEEE(body))
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	mux.HandleFunc("/abort", func(w http.ResponseWriter, r *http.Request) {
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(w, &counting{}, 3<<20)
	})
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return mux
}

// counting is an endless body that does not compress.
type counting struct{ n uint64 }

// Read fills p.
func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		c.n = c.n*6364136223846793005 + 1442695040888963407
		p[i] = byte(c.n >> 56)
	}
	return len(p), nil
}

// serve starts the site.
func serve(t testing.TB, start func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(site())
	s.Config.ErrorLog = quiet
	start(s)
	t.Cleanup(s.Close)
	return s
}
