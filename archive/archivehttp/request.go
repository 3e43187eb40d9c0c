package archivehttp

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// sentBody records the body of a request. A transport may still read it after the response has
// arrived. Its methods are safe for concurrent use.
type sentBody struct {
	max int64

	mu   sync.Mutex
	data []byte
	cut  bool // the body is longer than max
	end  bool // all of the body was read
}

// wrap makes a request record its body. A retry restarts the recording.
func (s *sentBody) wrap(req *http.Request) {
	req.Body = &sending{req.Body, s}
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.data, s.cut, s.end = nil, false, false
			return &sending{body, s}, nil
		}
	}
}

// sending is a body that is recorded while it is read.
type sending struct {
	io.ReadCloser
	kept *sentBody
}

// Read reads from the body.
func (r *sending) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	s := r.kept
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := min(int64(n), s.max-int64(len(s.data)))
	s.data = append(s.data, p[:keep]...)
	s.cut = s.cut || keep < int64(n)
	s.end = s.end || err == io.EOF
	return n, err
}

// request returns head followed by the body, and why the body is truncated, if it is. net/http
// stops reading at the length of a body and may not see [io.EOF].
func (s *sentBody) request(head []byte, length int64, chunked bool) (request []byte, cut string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cut:
		cut = "length"
	case !s.end && int64(len(s.data)) != length:
		cut = "unspecified" // the server responded before it received everything
	}
	request = bytes.Clone(head)
	if !chunked {
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
