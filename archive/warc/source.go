package warc

import (
	"bufio"
	"bytes"
	"io"
)

// sourceBuffer is the size of a read from a file. Magic numbers are searched for in this buffer.
const sourceBuffer = 64 << 10

// source is a buffered file that knows its position. The decompressors read from the buffer
// directly, so that none takes bytes beyond its member.
type source struct {
	*bufio.Reader
	under *tally
}

// tally counts the bytes that the buffer has read, and keeps the error of the file, which a
// decompressor may report as damage.
type tally struct {
	r   io.Reader
	n   int64
	err error // other than the end of the file
}

// Read reads from the file.
func (t *tally) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.n += int64(n)
	if err != nil && err != io.EOF {
		t.err = err
	}
	return n, err
}

// newSource returns a source whose positions count from the current position of r.
func newSource(r io.Reader) *source {
	under := &tally{r: r}
	return &source{bufio.NewReaderSize(under, sourceBuffer), under}
}

// reset reuses the buffer, because each read of a record by its address needs one.
func (s *source) reset(r io.Reader) {
	*s.under = tally{r: r}
	s.Reader.Reset(s.under)
}

// pos returns the position of the next byte. The file itself has been read further.
func (s *source) pos() int64 { return s.under.n - int64(s.Buffered()) }

// seek goes to a position if the source can, and reports whether it did.
func (s *source) seek(pos int64) bool {
	seeker, ok := s.under.r.(io.Seeker)
	if !ok {
		return false
	}
	if _, err := seeker.Seek(pos-s.under.n, io.SeekCurrent); err != nil {
		return false
	}
	s.under.n = pos
	s.Reader.Reset(s.under)
	return true
}

// magics are the first bytes of members and plain records. In sequence, a version line may be in
// any case; a search finds only these two spellings.
var magics = [][]byte{[]byte("\x1f\x8b\x08"), []byte("\x28\xb5\x2f\xfd"), []byte("WARC/"),
	[]byte("warc/")}

// longest is the length of the longest magic.
const longest = 5

// unknown are the magics to search for while the format is unknown. Stored blocks of compressed
// data may contain plain headers, but not at the start of lines.
var unknown = [][]byte{magics[0], magics[1], []byte("\nWARC/"), []byte("\nwarc/")}

// find goes to the next of the magics. It returns io.EOF if there is none.
func (s *source) find(magics [][]byte) error {
	for {
		buf, err := s.Peek(longest)
		if len(buf) == 0 {
			return err
		}
		buf, _ = s.Peek(max(s.Buffered(), len(buf)))
		if at := firstMagic(buf, magics); at >= 0 {
			_, err := s.Discard(at)
			return err
		}
		// The last bytes may be the start of a magic.
		skip := max(len(buf)-longest, 1)
		if _, err := s.Discard(skip); err != nil {
			return err
		}
	}
}

// beginsRecord reports whether a record or a member begins here.
func beginsRecord(buf []byte) bool {
	return bytes.HasPrefix(buf, magics[0]) || bytes.HasPrefix(buf, magics[1]) || hasVersion(buf)
}

// firstMagic returns the index of the first of the magics, or -1. After one is found, the others
// are only searched for before it. Otherwise each occurrence of a common magic would cost a search
// of the whole buffer for a rare one.
func firstMagic(buf []byte, magics [][]byte) int {
	first := -1
	for _, magic := range magics {
		if at := bytes.Index(buf, magic); at >= 0 && (first < 0 || at < first) {
			first, buf = at, buf[:min(len(buf), at+longest+1)]
		}
	}
	return first
}

// skipBlank skips any number of line breaks.
func skipBlank(r *bufio.Reader) error {
	for {
		buf, err := r.Peek(1)
		if len(buf) == 0 {
			return err
		}
		if buf[0] != '\r' && buf[0] != '\n' {
			return nil
		}
		if _, err := r.Discard(1); err != nil {
			return err
		}
	}
}
