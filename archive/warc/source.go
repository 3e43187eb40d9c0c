package warc

import (
	"bufio"
	"bytes"
	"io"
)

// sourceBuffer is what is read from a file at once; magic numbers are searched for in it.
const sourceBuffer = 64 << 10

// source is a file that knows where reading has come. It is a buffer that the decompressors read
// from directly, so that none takes a byte more than belongs to its member.
type source struct {
	*bufio.Reader
	under *tally
}

// tally counts what the buffer has taken, and keeps the error that a decompressor may call damage.
type tally struct {
	r   io.Reader
	n   int64
	err error // other than the end of the file
}

// Read passes on.
func (t *tally) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.n += int64(n)
	if err != nil && err != io.EOF {
		t.err = err
	}
	return n, err
}

// newSource takes positions to count from where r stands.
func newSource(r io.Reader) *source {
	under := &tally{r: r}
	return &source{bufio.NewReaderSize(under, sourceBuffer), under}
}

// reset keeps the buffer: one is needed for each record that is read by its address.
func (s *source) reset(r io.Reader) {
	*s.under = tally{r: r}
	s.Reader.Reset(s.under)
}

// pos is where the next byte comes from, which is behind what the file was asked for.
func (s *source) pos() int64 { return s.under.n - int64(s.Buffered()) }

// seek goes to a position if the source can, and reports whether it did.
func (s *source) seek(pos int64) bool {
	if pos == s.pos() {
		return true
	}
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

// magics are what a member can begin with, and a plain record. In sequence, the version line may be
// in any case; where a record is searched for, these two spellings are found.
var magics = [][]byte{[]byte("\x1f\x8b\x08"), []byte("\x28\xb5\x2f\xfd"), []byte("WARC/"),
	[]byte("warc/")}

// longest is the length of the longest magic.
const longest = 5

// unknown are the magics to look for as long as nothing was understood: in what a compressor could
// not shrink, plain headers shine through, but not at the beginnings of lines.
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
		// What may be the beginning of a magic stays.
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

// firstMagic returns where the first of the magics is, or -1. Once one was found, the others are
// only looked for before it: otherwise a file in which one of them is rare would be searched to the
// end of the buffer for each that is common.
func firstMagic(buf []byte, magics [][]byte) int {
	first := -1
	for _, magic := range magics {
		if at := bytes.Index(buf, magic); at >= 0 && (first < 0 || at < first) {
			first, buf = at, buf[:min(len(buf), at+longest+1)]
		}
	}
	return first
}

// skipBlank skips line breaks, of which there may be any number between two records.
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
