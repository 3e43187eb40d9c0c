package archivehttp

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// maxMemory is the size up to which a body is held in memory. Nearly all are far smaller.
const maxMemory = 1 << 20

// spool keeps a body, in memory or in a temporary file. It is not safe for concurrent use.
type spool struct {
	max int64 // negative: no limit

	n    int64   // bytes passed to write
	cut  bool    // they were more than max
	data *[]byte // nil once there is a file
	file *os.File
	name string // of the file; "" if it has none any more
	size int64  // of the file
	err  error  // the first one
}

// buffers are reused.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// write appends to the body.
func (s *spool) write(p []byte) {
	s.n += int64(len(p))
	if s.max >= 0 && s.n > s.max {
		keep := max(int64(len(p))-(s.n-s.max), 0)
		p, s.cut = p[:keep], true
	}
	if s.err != nil || len(p) == 0 {
		return
	}
	if s.file == nil && s.data == nil {
		s.data = buffers.Get().(*[]byte)
	}
	if s.file == nil && len(*s.data)+len(p) <= maxMemory {
		*s.data = append(*s.data, p...)
		return
	}
	if s.file == nil {
		s.create()
		s.append(*s.data)
		s.free()
	}
	s.append(p)
}

// create makes a temporary file. Where the system can, it has no name, so that it goes with the
// process, however that ends.
func (s *spool) create() {
	s.file, s.err = os.CreateTemp("", "archivehttp-")
	if s.err != nil {
		s.err = fmt.Errorf("temporary file: %w", s.err)
		return
	}
	if name := s.file.Name(); os.Remove(name) != nil {
		s.name = name
	}
}

func (s *spool) append(p []byte) {
	if s.err != nil {
		return
	}
	_, s.err = s.file.Write(p)
	s.size += int64(len(p))
	if s.err != nil {
		s.err = fmt.Errorf("temporary file: %w", s.err)
	}
}

// body returns the recorded body, valid until close.
func (s *spool) body() ([]byte, *io.SectionReader) {
	switch {
	case s.file != nil:
		return nil, io.NewSectionReader(s.file, 0, s.size)
	case s.data != nil:
		return *s.data, nil
	}
	return nil, nil
}

// close removes the file.
func (s *spool) close() {
	s.free()
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	if s.name != "" {
		_ = os.Remove(s.name)
		s.name = ""
	}
}

func (s *spool) free() {
	if s.data != nil {
		*s.data = (*s.data)[:0]
		buffers.Put(s.data)
		s.data = nil
	}
}
