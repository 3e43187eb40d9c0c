package archivehttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/spinneret-go/spinneret/archive"
)

// recorder is the body of a response that is recorded while it is read. Close may be called while
// another goroutine is in Read, as net/http allows.
type recorder struct {
	x       *exchange
	src     io.ReadCloser
	want    int64 // bytes, or -1 if the head does not say
	chunked bool  // the request's body
	tapped  bool  // src is decoded, and tap receives the bytes as sent

	mu      sync.Mutex // guards what follows
	capture archive.Capture
	spool   spool
	done    bool
	err     error // why it was not recorded
}

// Read implements io.Reader.
func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return n, err
	}
	if !r.tapped {
		r.spool.write(p[:n])
	}
	if err != nil {
		r.finish(r.reason(err))
	}
	return n, err
}

// tap receives the bytes as sent, from the base.
type tap struct{ r *recorder }

// Write never fails: finish reports failures.
func (t tap) Write(p []byte) (int, error) {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if !t.r.done {
		t.r.spool.write(p)
	}
	return len(p), nil
}

// Close implements io.Closer. It returns why the response is not in the archive.
func (r *recorder) Close() error {
	err := r.src.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done && r.spool.n == r.want {
		r.finish("") // all was read, though not io.EOF
	}
	if !r.done {
		r.finish("unspecified")
	}
	if r.err != nil {
		return r.err
	}
	return err
}

// reason returns why a body has ended, as a value of WARC-Truncated. Some transports return errors
// whose String is such a value.
func (r *recorder) reason(err error) string {
	var word fmt.Stringer
	if errors.As(err, &word) && slices.Contains(words, word.String()) {
		return word.String()
	}
	var timeout interface{ Timeout() bool }
	var broken net.Error
	switch {
	case err == io.EOF, r.spool.n == r.want:
		return ""
	case errors.Is(err, http.ErrBodyReadAfterClose), errors.Is(err, context.Canceled):
		return "unspecified"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "time"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken):
		return "disconnect"
	}
	return "unspecified"
}

var words = []string{"length", "time", "disconnect"}

// finish appends the capture. It requires that r.mu is held.
func (r *recorder) finish(truncated string) {
	r.done = true
	defer r.spool.close()
	c := &r.capture
	if r.err = r.spool.err; r.err == nil {
		c.Body, c.Large = r.spool.body()
		if c.Truncated = truncated; truncated == "" && r.spool.cut {
			c.Truncated = "length"
		}
		if sent := r.x.sent; sent != nil {
			c.Request, c.RequestTruncated = sent.request(c.Request, r.x.req.ContentLength,
				r.chunked)
		}
		_, r.err = r.x.t.archive.Append(*c)
	}
	if r.err != nil {
		r.err = describe(c.URL, r.err)
		r.x.t.fail(r.err)
	}
	*c = archive.Capture{}
}

// gunzipped decompresses a recorded body. It starts with the first Read, so that RoundTrip does not
// wait for the body.
type gunzipped struct {
	raw    *recorder
	zr     *gzip.Reader
	err    error
	closed atomic.Bool
}

var gzipReaders sync.Pool // of *gzip.Reader

// Read implements io.Reader.
func (g *gunzipped) Read(p []byte) (n int, err error) {
	if g.closed.Load() {
		return g.raw.Read(p) // returns the error of a closed body
	}
	if g.err != nil {
		return 0, g.err
	}
	if g.zr == nil {
		if g.zr, _ = gzipReaders.Get().(*gzip.Reader); g.zr == nil {
			g.zr = new(gzip.Reader)
		}
		if g.err = g.zr.Reset(g.raw); g.err != nil {
			return 0, g.err
		}
	}
	n, g.err = g.zr.Read(p)
	if g.err == io.EOF {
		gzipReaders.Put(g.zr)
	}
	return n, g.err
}

// Close implements io.Closer.
func (g *gunzipped) Close() error {
	g.closed.Store(true)
	return g.raw.Close()
}
