package stage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/pagerank"
)

// A saved order is a line with its version, the number of pages, the URL and the state of each page,
// the CRC-32C of all that, and the output of the frontier. Numbers are uvarints, the checksum is
// four bytes, little endian; a URL follows its length. A forgotten page has an empty URL.
const (
	orderKind    = "spinneret order"
	orderVersion = 2
)

// ErrOrder is returned for bytes that are not a complete saved order.
var ErrOrder = errors.New("stage: not a saved order")

// longestURL bounds a URL of a saved order.
const longestURL = 1 << 16

// WriteTo saves the order: all URLs, and the scores and links of their pages. Items in flight
// count as not given out. Items are not saved: they are added again.
func (o *Order) WriteTo(w io.Writer) (n int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sum := crc32.New(castagnoli)
	to := bufio.NewWriter(io.MultiWriter(w, sum))
	line := binary.AppendUvarint([]byte(formLine(orderKind, orderVersion)), uint64(len(o.pages)))
	for _, p := range o.pages {
		line = binary.AppendUvarint(line, uint64(len(p.url)))
		line = append(line, p.url...)
		at := isAway
		if p.at == isDone || p.fetched {
			at = isDone
		}
		line = append(line, byte(at))
		n += int64(len(line))
		if _, err := to.Write(line); err != nil {
			return n, err
		}
		line = line[:0]
	}
	n += int64(len(line)) // of an empty order
	if _, err := to.Write(line); err != nil {
		return n, err
	}
	if err := to.Flush(); err != nil {
		return n, err
	}
	if err := binary.Write(w, binary.LittleEndian, sum.Sum32()); err != nil {
		return n, err
	}
	links, err := o.frontier.WriteTo(w)
	return n + 4 + links, err
}

// ReadOrder reads the output of WriteTo. Pages that were not visited are not given out before they
// are added again, with their old scores. Errors wrap [ErrOrder], durable.ErrVersion,
// or those of pagerank.Read; memory is bounded by the size of the input.
func ReadOrder(r io.Reader) (*Order, error) {
	o := NewOrder(pagerank.New)
	in := bufio.NewReader(r)
	sum := crc32.New(castagnoli)
	if err := o.readPages(&summed{in, sum}); errors.Is(err, durable.ErrVersion) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	var want uint32
	if err := binary.Read(in, binary.LittleEndian, &want); err != nil || want != sum.Sum32() {
		return nil, fmt.Errorf("%w: the checksum of the URLs is wrong", ErrOrder)
	}
	var err error
	if o.frontier, err = pagerank.Read(in, o.options()); err != nil {
		return nil, err
	}
	for id := range o.frontier.All() {
		if int(id) >= len(o.pages) {
			return nil, fmt.Errorf("%w: it ranks more pages than it names", ErrOrder)
		}
	}
	return o, nil
}

func (o *Order) readPages(r *summed) error {
	line, err := r.line()
	if err != nil {
		return err
	}
	if string(line) == orderKind+" 1\n" { // it had no checksum
		return fmt.Errorf("%w: %s 1", durable.ErrVersion, orderKind)
	}
	if err := checkForm(string(line), orderKind, orderVersion); err != nil {
		return err
	}
	pages, err := binary.ReadUvarint(r)
	if err != nil || pages > MaxOrdered {
		return errors.New("it has too many pages")
	}
	for range pages {
		length, err := binary.ReadUvarint(r)
		if err != nil || length > longestURL {
			return errors.New("it ends early, or a URL is too long")
		}
		line = append(line[:0], make([]byte, length+1)...)
		if _, err := io.ReadFull(r, line); err != nil {
			return err
		}
		url, at := string(line[:length]), orderedAt(line[length])
		if _, met := o.ids[url]; met || at != isAway && at != isDone {
			return fmt.Errorf("%q is repeated, or has an invalid state", url)
		}
		o.pages[o.assign(url)].at = at
		delete(o.ids, "")
	}
	return nil
}

// summed is a reader that computes the checksum of the bytes read.
type summed struct {
	r   *bufio.Reader
	sum hash.Hash32
}

func (s *summed) Read(b []byte) (n int, err error) {
	n, err = s.r.Read(b)
	s.sum.Write(b[:n])
	return n, err
}

// line returns the first line, which is short.
func (s *summed) line() (line []byte, err error) {
	const longest = 64
	for len(line) < longest {
		b, err := s.ReadByte()
		if err != nil {
			return nil, err
		}
		if line = append(line, b); b == '\n' {
			return line, nil
		}
	}
	return nil, errForm
}

func (s *summed) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err == nil {
		s.sum.Write([]byte{b})
	}
	return b, err
}
