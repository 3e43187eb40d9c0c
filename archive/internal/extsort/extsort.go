package extsort

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
)

// Sorter sorts byte strings, and keeps duplicates. It is not safe for concurrent use.
type Sorter struct {
	memory int
	count  int
	most   int // bytes of a string

	buf   []byte // strings, one after the other
	ends  []int  // of the strings in buf
	spill *os.File
	runs  []run
}

// run is a part of the temporary file.
type run struct {
	start, end int64
	count      int
}

// perString is the memory overhead of a string.
const perString = 40

// New returns a sorter that uses about that many bytes of memory, and a temporary file in
// [os.TempDir] for the rest.
func New(memory int) *Sorter { return &Sorter{memory: memory} }

// Len returns the number of strings.
func (s *Sorter) Len() int { return s.count }

// Add copies one string.
func (s *Sorter) Add(item []byte) error {
	if len(s.buf)+len(item)+perString*(len(s.ends)+1) > s.memory && len(s.ends) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.buf = append(s.buf, item...)
	s.ends = append(s.ends, len(s.buf))
	s.count++
	s.most = max(s.most, len(item))
	return nil
}

// order returns the strings in memory, sorted.
func (s *Sorter) order() [][]byte {
	items := make([][]byte, len(s.ends))
	start := 0
	for i, end := range s.ends {
		items[i] = s.buf[start:end:end]
		start = end
	}
	slices.SortFunc(items, bytes.Compare)
	return items
}

// flush writes the strings in memory as one run.
func (s *Sorter) flush() (err error) {
	if s.spill == nil {
		if s.spill, err = os.CreateTemp("", "spinneret-sort-*"); err != nil {
			return fmt.Errorf("extsort: %w", err)
		}
		_ = os.Remove(s.spill.Name()) // where this works, a crash leaves nothing behind
	}
	start, err := s.spill.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("extsort: %w", err)
	}
	w := bufio.NewWriterSize(s.spill, 1<<18)
	var size [binary.MaxVarintLen64]byte
	end := start
	for _, item := range s.order() {
		n := binary.PutUvarint(size[:], uint64(len(item)))
		_, _ = w.Write(size[:n]) // Flush returns the error
		_, _ = w.Write(item)
		end += int64(n + len(item))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("extsort: %w", err)
	}
	s.runs = append(s.runs, run{start, end, len(s.ends)})
	s.buf, s.ends = s.buf[:0], s.ends[:0]
	return nil
}

// Sort must be called after the last Add. If all strings are in memory, they stay there.
func (s *Sorter) Sort() error {
	if len(s.runs) == 0 {
		return nil
	}
	// If there are runs on disk, the rest becomes one too, so that merge has one kind of source.
	if len(s.ends) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.buf, s.ends = nil, nil
	return nil
}

// Items returns all strings, sorted, each valid until the next one. It can be called again.
func (s *Sorter) Items() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if len(s.runs) == 0 {
			for _, item := range s.order() {
				if !yield(item, nil) {
					return
				}
			}
			return
		}
		if err := s.merge(func(item []byte) bool { return yield(item, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// merge calls yield with the strings of all runs, sorted, until it returns false.
func (s *Sorter) merge(yield func([]byte) bool) error {
	// The runs share the memory that Add used. Each gets enough for efficient reads, even if the
	// sum is larger.
	var all []*cursor
	for _, r := range s.runs {
		size := max(s.memory/len(s.runs), 4096)
		src := bufio.NewReaderSize(io.NewSectionReader(s.spill, r.start, r.end-r.start),
			min(size, 1<<18))
		c := &cursor{src: src, left: r.count, most: uint64(s.most)}
		if err := c.next(); err != nil {
			return err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, (*cursor).compare)
	for len(all) > 0 {
		c := all[0]
		if !yield(c.item) {
			return nil
		}
		switch err := c.next(); err {
		case nil: // it moves behind those with lesser strings
			at, _ := slices.BinarySearchFunc(all[1:], c, (*cursor).compare)
			copy(all, all[1:1+at])
			all[at] = c
		case io.EOF:
			all = all[1:]
		default:
			return err
		}
	}
	return nil
}

// Close removes the temporary file.
func (s *Sorter) Close() error {
	if s.spill == nil {
		return nil
	}
	name := s.spill.Name()
	err := s.spill.Close()
	s.spill, s.runs, s.count = nil, nil, 0
	if removed := os.Remove(name); err == nil && !errors.Is(removed, os.ErrNotExist) {
		err = removed
	}
	return err
}

// cursor reads one run.
type cursor struct {
	src  *bufio.Reader
	left int    // strings
	most uint64 // bytes of a string
	item []byte
}

// next returns io.EOF after the last string.
func (c *cursor) next() error {
	if c.left == 0 {
		return io.EOF
	}
	c.left--
	size, err := binary.ReadUvarint(c.src)
	if err == nil && size > c.most {
		return errors.New("extsort: the temporary file is damaged")
	}
	if err == nil {
		c.item = slices.Grow(c.item[:0], int(size))[:size]
		_, err = io.ReadFull(c.src, c.item)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("extsort: %w", err)
	}
	return nil
}

// compare orders cursors by their strings.
func (c *cursor) compare(other *cursor) int { return bytes.Compare(c.item, other.item) }
