// Package upload watches the bodies of requests, and tells their failures from those of the server.
package upload

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Watch remembers whether a body of a request failed, and knows whether one is still being sent. The zero
// Watch is ready to use. Its methods are safe for concurrent use.
type Watch struct {
	// Asked is called before each Read, and Sent after it with the length of the piece; nil means that
	// nobody is told. Either both are set or none.
	Asked  func()
	Sent   func(n int)
	failed atomic.Bool

	mu   sync.Mutex // guards what follows
	open int        // bodies that are not closed
	then func()     // waits for the last Close
}

// Failed reports whether a body could not be read, or is not as long as its request says.
func (w *Watch) Failed() bool { return w.failed.Load() }

// Then calls f as soon as all bodies are closed, which a transport does once they are sent or given up.
func (w *Watch) Then(f func()) {
	w.mu.Lock()
	w.then = f
	w.mu.Unlock()
	w.opened(0)
}

func (w *Watch) opened(n int) {
	w.mu.Lock()
	var then func()
	if w.open += n; w.open == 0 {
		then, w.then = w.then, nil
	}
	w.mu.Unlock()
	if then != nil {
		then()
	}
}

// Attach makes the bodies of req, of which it changes the fields, report to w.
func (w *Watch) Attach(req *http.Request) {
	length := req.ContentLength
	Wrap(req, func(of io.ReadCloser) io.ReadCloser {
		w.opened(1)
		return &body{ReadCloser: of, watch: w, left: length, known: length > 0}
	})
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			another, err := again()
			if err != nil {
				w.failed.Store(true)
			}
			return another, err
		}
	}
}

// Wrap puts what wrap returns in place of the body of req, if it has one, and of those of GetBody.
func Wrap(req *http.Request, wrap func(io.ReadCloser) io.ReadCloser) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	req.Body = wrap(req.Body)
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			another, err := again()
			if err != nil {
				return nil, err
			}
			return wrap(another), nil
		}
	}
}

type body struct {
	io.ReadCloser
	watch  *Watch
	left   int64 // bytes still to come, if that is known
	known  bool
	closed atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.watch.Asked != nil {
		b.watch.Asked()
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.watch.Sent != nil {
		b.watch.Sent(n)
	}
	length := b.known && (b.left < 0 || b.left > 0 && err == io.EOF)
	// After Close, an error is that of a transport which reads on.
	if (length || err != nil && err != io.EOF) && !b.closed.Load() {
		b.watch.failed.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	if !b.closed.Swap(true) {
		defer b.watch.opened(-1)
	}
	return b.ReadCloser.Close()
}
