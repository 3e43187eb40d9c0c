package archivehttp

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/internal/httpctx"
)

// recorder is the body of a response that is recorded while it is read. Close may be called while
// another goroutine is in Read, as net/http allows.
type recorder struct {
	x      *exchange
	req    *http.Request // as it was sent
	src    io.ReadCloser
	want   int64 // bytes as sent, or -1 if the head does not say
	tapped bool  // src is decoded, and a tap receives the bytes as sent

	mu      sync.Mutex // guards what follows
	capture archive.Capture
	spool   spool
	end     bool // a tap has received everything
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

// tap receives the bytes as sent, from a layer below that decodes them.
type tap struct {
	r     *recorder
	above io.Writer // of another recorder; nil if there is none
}

// Write never fails: finish reports failures.
func (t tap) Write(p []byte) (int, error) {
	if t.above != nil {
		_, _ = t.above.Write(p)
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if !t.r.done {
		t.r.spool.write(p)
	}
	return len(p), nil
}

// Close is called after the last byte.
func (t tap) Close() error {
	if above, ok := t.above.(io.Closer); ok {
		_ = above.Close()
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.r.end = true
	return nil
}

// Close implements io.Closer. It returns why the response is not in the archive.
func (r *recorder) Close() error {
	err := r.src.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done && r.whole() {
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

// whole reports whether the body came as the server sent it, to its end. It requires that r.mu is
// held.
func (r *recorder) whole() bool { return r.end || r.spool.n == r.want }

// reason returns why a body has ended, as a value of WARC-Truncated. Some transports return errors
// whose String is such a value; another one, as of a corrupt coding, is not a disconnect. io.EOF proves
// little if a layer in between may limit bodies: they are whole if they have the length that the head
// states or, if they are decoded, if the tap has seen the end. It requires that r.mu is held.
func (r *recorder) reason(err error) string {
	var word fmt.Stringer
	named := errors.As(err, &word)
	if named && slices.Contains(words, word.String()) {
		return word.String()
	}
	var timeout interface{ Timeout() bool }
	var broken net.Error
	//lint:ignore SA1019 an http.Client sets it
	left := httpctx.Ended(r.x.req.Context(), r.x.req.Cancel)
	switch {
	case r.whole(), err == io.EOF && !r.tapped && r.spool.n > r.want:
		return ""
	case errors.Is(err, http.ErrBodyReadAfterClose):
		return "unspecified"
	case errors.Is(left, context.DeadlineExceeded):
		return "time"
	case errors.Is(err, context.Canceled):
		return "unspecified"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "time"
	case !named && (errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken)):
		return "disconnect"
	}
	return "unspecified"
}

var words = []string{"length", "time", "disconnect"}

// discard ends the recording of a response that the client does not get.
func (r *recorder) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		r.done = true
		r.spool.close()
	}
}

// finish appends the capture. It requires that r.mu is held.
func (r *recorder) finish(truncated string) {
	r.done = true
	defer r.spool.close()
	c := &r.capture
	if r.err = r.spool.err; r.err == nil {
		c.Body, c.Large = r.spool.body()
		if truncated != "" {
			c.Truncated = truncated
		} else if r.spool.cut {
			c.Truncated = "length"
		}
		if sent := r.x.sent; sent != nil && r.req.Body != nil && r.req.Body != http.NoBody {
			c.Request, c.RequestTruncated = sent.last.Load().request(c.Request, r.req.ContentLength, c.Rebuilt)
		}
		_, r.err = r.x.t.archive.Append(*c)
	}
	if r.err != nil {
		invalid := errors.Is(r.err, archive.ErrInvalid)
		r.err = &recordError{fmt.Errorf("archivehttp: record %.200s: %w", c.URL, r.err)}
		if !invalid { // a server that sends what cannot be recorded harms no other
			r.x.t.fail(r.err)
		}
	}
	*c = archive.Capture{}
}

// gunzipped decompresses a recorded body as net/http does: without limits, and with the errors of package
// gzip, also for what is behind the end. As with net/http, Close may be called while another goroutine is
// in Read.
type gunzipped struct {
	raw    *recorder
	text   *gzip.Reader // nil before the first Read and after an error
	err    error        // that ended it
	closed atomic.Bool
}

var gunzips sync.Pool // of *gzip.Reader

// Read implements io.Reader.
func (g *gunzipped) Read(p []byte) (n int, err error) {
	switch {
	case g.closed.Load():
		return g.raw.Read(p) // returns the error of a closed body
	case g.err != nil:
		return 0, g.err
	case g.text == nil:
		g.text, _ = gunzips.Get().(*gzip.Reader)
		if g.text == nil {
			g.text = new(gzip.Reader)
		}
		if g.err = g.text.Reset(g.raw); g.err == nil {
			return g.Read(p)
		}
	default:
		n, g.err = g.text.Read(p)
	}
	if g.err != nil {
		gunzips.Put(g.text)
		g.text = nil
	}
	return n, g.err
}

// Close implements io.Closer.
func (g *gunzipped) Close() error {
	g.closed.Store(true)
	return g.raw.Close()
}

// A recordError is a failure of this machine, not of the server. Layers above see that.
type recordError struct{ error }

func (e *recordError) Unwrap() error { return e.error }

func (e *recordError) Local() bool { return true }
