package archivehttp

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
)

// sentBody records the body of a request: that which was read last, if a layer below makes several
// attempts. A layer may ask for a spare one that it does not need.
// Its methods are safe for concurrent use.
type sentBody struct {
	max  int64
	last atomic.Pointer[sending]
}

// record records a body. It is for upload.Wrap.
func (s *sentBody) record(body io.ReadCloser) io.ReadCloser {
	r := &sending{ReadCloser: body, of: s}
	s.last.CompareAndSwap(nil, r)
	return r
}

// sending is a body that is recorded while it is read. A transport may still read it after the
// response has arrived, and after the next attempt has begun.
type sending struct {
	io.ReadCloser
	of *sentBody

	mu   sync.Mutex
	read bool
	data []byte
	cut  bool // the body is longer than max
	end  bool // all of the body was read
}

// Read reads from the body.
func (s *sending) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read {
		s.read = true
		s.of.last.Store(s)
	}
	keep := min(int64(n), s.of.max-int64(len(s.data)))
	s.data = append(s.data, p[:keep]...)
	s.cut = s.cut || keep < int64(n)
	s.end = s.end || err == io.EOF
	return n, err
}

// request returns head followed by the body, and why the body is truncated, if it is. net/http
// stops reading at the length of a body and may not see [io.EOF]. A head on the wire may announce another
// body, or none, if a layer below has encoded the body or followed a redirect: then this one is left out.
func (s *sending) request(head []byte, length int64, rebuilt bool) (request []byte, cut string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const field = "\r\nContent-Length: "
	announced := rebuilt || hasChunks(head) ||
		bytes.Contains(head, append(strconv.AppendInt([]byte(field), length, 10), '\r'))
	switch {
	case !announced && !bytes.Contains(head, []byte(field)):
		return head, ""
	case !announced:
		return head, "unspecified"
	case s.cut:
		cut = "length"
	case !s.end && int64(len(s.data)) != length:
		cut = "unspecified" // the server responded before it received everything
	}
	request = bytes.Clone(head)
	if !hasChunks(head) {
		return append(request, s.data...), cut
	}
	if len(s.data) > 0 { // one chunk, as in the body of a response
		request = strconv.AppendInt(request, int64(len(s.data)), 16)
		request = append(append(append(request, "\r\n"...), s.data...), "\r\n"...)
	}
	return append(request, "0\r\n\r\n"...), cut
}

// hasChunks reports whether net/http sends the body of a request in chunks.
func hasChunks(head []byte) bool {
	return bytes.Contains(head, []byte("\r\nTransfer-Encoding: chunked\r\n"))
}
