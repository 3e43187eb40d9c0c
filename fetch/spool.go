package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
)

// spool is what a body has beyond the part that is kept in memory: in a file that has no name, so
// that nothing is left of it, whatever becomes of the program.
type spool struct {
	file *os.File
	name string // of the file where the system does not let it go before it is closed; else ""
	size int64
	hash [sha256.Size]byte // of the whole body: it is computed on the way, with no second look
}

// newSpool creates the file.
func newSpool(dir string) (*spool, error) {
	file, err := os.CreateTemp(dir, "body-*.tmp")
	if err != nil {
		return nil, err
	}
	s := &spool{file: file}
	if os.Remove(file.Name()) != nil {
		s.name = file.Name()
	}
	return s, nil
}

// close gives the file back. A nil spool has none.
func (s *spool) close() {
	if s == nil {
		return
	}
	s.file.Close()
	if s.name != "" {
		_ = os.Remove(s.name)
	}
}

// spoolRest moves what is left of a body to a file, up to limit bytes. raw is the part in memory,
// and next what was read after it. A file that takes no more ends the body like a connection that
// breaks.
func (c *Client) spoolRest(
	ctx context.Context, raw, next []byte, body io.Reader, limit int64, progress func(n int),
) (*spool, Truncation) {
	s, err := newSpool(c.opts.Spool)
	if err != nil {
		return nil, CutDisk
	}
	sum := sha256.New()
	sum.Write(raw)
	over, err := s.fill(io.MultiReader(bytes.NewReader(next), watched{body, progress}), sum, limit)
	sum.Sum(s.hash[:0])
	return s, cutBy(ctx, over, err)
}

// errDisk says that an error is one of the file, not of the connection.
var errDisk = errors.New("fetch: write body to file")

// fill copies r to the file, and reports whether there was more than limit bytes.
func (s *spool) fill(r io.Reader, sum hash.Hash, limit int64) (over bool, err error) {
	buf := make([]byte, 32<<10)
	for {
		n, readErr := r.Read(buf)
		if left := limit - s.size; int64(n) > left {
			n, over = int(left), true
		}
		written, err := s.file.Write(buf[:n])
		sum.Write(buf[:written])
		s.size += int64(written)
		switch {
		case err != nil:
			return false, errors.Join(errDisk, err)
		case over:
			return true, nil
		case readErr == io.EOF:
			return false, nil
		case readErr != nil:
			return false, readErr
		}
	}
}

// watched tells progress of what is read.
type watched struct {
	io.Reader
	progress func(n int)
}

// Read implements io.Reader.
func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.progress(n)
	}
	return n, err
}

// rawBody is a whole raw body, as far as it came.
type rawBody struct {
	memory []byte
	spool  *spool // nil if memory holds all of it
}

func (b rawBody) size() int64 {
	n := int64(len(b.memory))
	if b.spool != nil {
		n += b.spool.size
	}
	return n
}

// ReadAt implements io.ReaderAt.
func (b rawBody) ReadAt(p []byte, off int64) (n int, err error) {
	inMemory := int64(len(b.memory))
	if off < inMemory {
		n = copy(p, b.memory[off:])
	}
	if n == len(p) {
		return n, nil
	}
	if b.spool == nil {
		return n, io.EOF
	}
	m, err := b.spool.file.ReadAt(p[n:], off+int64(n)-inMemory)
	return n + m, err
}
