package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// readWeb reads a graph and, if there is one, the list of its pages. If the list says which pages
// were fetched, only those are kept: the links of the others are unknown.
func readWeb(graph, pages string) (*web, error) {
	r := reader{numbers: map[string]uint32{}}
	if err := r.file(graph, r.links); err != nil {
		return nil, err
	}
	if pages == "" {
		pages = pagesBeside(graph)
	}
	if pages != "" && len(r.urls) == 0 {
		if err := r.file(pages, r.pages); err != nil {
			return nil, err
		}
	}
	return r.web(nameOf(graph))
}

// pagesBeside looks for the list of pages of a graph: its name with nodes instead of edges, or with
// urls at its end.
func pagesBeside(graph string) string {
	dir, base := filepath.Split(graph)
	stem, _, _ := strings.Cut(base, ".")
	for _, try := range []string{
		strings.Replace(base, "edges", "nodes", 1), strings.Replace(base, "edges", "urls", 1),
		stem + ".urls", stem + ".urls.gz", stem + ".urls.zst",
	} {
		if _, err := os.Stat(filepath.Join(dir, try)); try != base && err == nil {
			return filepath.Join(dir, try)
		}
	}
	return ""
}

// nameOf names a graph after its file, or its directory if the file is just called edges.
func nameOf(graph string) string {
	base, _, _ := strings.Cut(filepath.Base(graph), ".")
	if base == "edges" {
		if dir := filepath.Base(filepath.Dir(graph)); dir != "." && dir != "/" {
			return dir
		}
	}
	return base
}

// A reader collects the contents of files.
type reader struct {
	from, to []uint32
	n        int // ids are below
	urls     []string
	fetched  []bool            // nil: all
	numbers  map[string]uint32 // of URLs, if the graph has URLs
	named    bool              // the graph has URLs
}

// file opens a file, plain or compressed by gzip or zstd, and parses it.
func (r *reader) file(name string, parse func(*bufio.Reader) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	in, err := unpack(file)
	if err == nil {
		err = parse(bufio.NewReaderSize(in, 1<<20))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func unpack(in io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(in)
	magic, _ := buffered.Peek(4)
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return z, nil
	}
	return buffered, nil
}

// maxLine bounds a line: the links of one page in LAW's form.
const maxLine = 1 << 26

// maxID keeps one huge number from using up all memory.
const maxID = 1 << 30

// links parses a graph. A first line of one number is LAW's ASCII form: the number of pages, then a
// line for each of them with its links. Anything else is a list of links, one pair per line,
// numbers or URLs; a single URL is a page without links.
func (r *reader) links(in *bufio.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	page, law := -1, false
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if law {
			page++
			if err := r.successors(page, line); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		if t := bytes.TrimSpace(line); len(t) == 0 || t[0] == '#' || t[0] == '%' {
			continue
		}
		a, b := pair(line)
		if count, err := strconv.Atoi(string(a)); r.n == 0 && len(b) == 0 && err == nil {
			if law = true; count < 0 || count > maxID {
				return fmt.Errorf("line %d: %d pages, want 0 to %d", n, count, maxID)
			}
			r.n = count
			continue
		}
		if err := r.link(a, b, n == 1); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if law && page+1 != r.n {
		return fmt.Errorf("the file has links of %d pages, but its header says %d", page+1, r.n)
	}
	return nil
}

// pair returns the first two words of a line.
func pair(line []byte) (a, b []byte) {
	a, line = word(line)
	b, _ = word(line)
	return a, b
}

// Word separators. URLs may contain commas and semicolons.
const (
	blanks = " \t\r"
	marks  = ",;"
)

// word returns the first word of a line and the rest.
func word(line []byte) (first, rest []byte) {
	line = bytes.TrimLeft(line, blanks+marks)
	end := until(line, blanks+marks)
	if bytes.Contains(line[:end], scheme) {
		end = endOfURL(line, end)
	}
	return bytes.TrimRight(line[:end], marks), line[end:]
}

var scheme = []byte("://")

// endOfURL returns the end of the URL at the start of a line: a blank, or a separator before
// another URL.
func endOfURL(line []byte, mark int) int {
	end := until(line, blanks)
	if next := bytes.Index(line[mark:end], scheme); next >= 0 {
		return bytes.LastIndexAny(line[:mark+next], marks)
	}
	return end
}

// until returns the index of the first of some characters, or the length of the line.
func until(line []byte, chars string) int {
	if i := bytes.IndexAny(line, chars); i >= 0 {
		return i
	}
	return len(line)
}

// successors adds the links of a page in LAW's form.
func (r *reader) successors(page int, line []byte) error {
	for {
		var w []byte
		if w, line = word(line); len(w) == 0 {
			return nil
		}
		to, err := strconv.ParseUint(string(w), 10, 32)
		if err != nil || to >= uint64(r.n) || page >= r.n {
			return fmt.Errorf("page %d links to %q, which is not among the %d pages", page, w, r.n)
		}
		r.from, r.to = append(r.from, uint32(page)), append(r.to, uint32(to))
	}
}

// link adds one link. The first line may be a header.
func (r *reader) link(a, b []byte, first bool) error {
	from, ok1 := r.id(a)
	if len(b) == 0 && ok1 && r.named {
		return nil
	}
	to, ok2 := r.id(b)
	if !ok1 || !ok2 {
		if first {
			return nil
		}
		return fmt.Errorf("%q is not a link; want two numbers or two URLs", string(a)+" "+string(b))
	}
	r.from, r.to = append(r.from, from), append(r.to, to)
	return nil
}

// id returns the id of a page, which is given as a number or a URL.
func (r *reader) id(text []byte) (id uint32, ok bool) {
	if n, ok := decimal(text); ok && !r.named {
		if n >= maxID {
			return 0, false
		}
		r.n = max(r.n, int(n)+1)
		return uint32(n), true
	}
	if !bytes.Contains(text, scheme) || r.n > 0 && !r.named {
		return 0, false
	}
	r.named = true
	id, ok = r.numbers[string(text)]
	if !ok {
		id = uint32(len(r.urls))
		r.urls = append(r.urls, string(text))
		r.numbers[r.urls[id]] = id
		r.n = len(r.urls)
	}
	return id, true
}

func decimal(text []byte) (n uint64, ok bool) {
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// pages parses the list of pages: an id, optionally 1 or 0 for fetched or not, and a URL; or just a
// URL for each id, from 0 on.
func (r *reader) pages(in *bufio.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	r.urls = make([]string, r.n)
	bare := 0
	for n := 1; lines.Scan(); n++ {
		a, rest := word(lines.Bytes())
		if len(a) == 0 || a[0] == '#' {
			continue
		}
		id, isNumber := decimal(a)
		if !isNumber {
			if bytes.Contains(a, scheme) && bare < r.n {
				r.urls[bare] = string(a)
				bare++
			}
			continue // or a header
		}
		b, rest := word(rest)
		if flag := string(b); flag == "0" || flag == "1" {
			r.fetch(id, flag == "1")
			b, _ = word(rest)
		}
		if id < uint64(r.n) {
			r.urls[id] = string(b)
		}
	}
	return lines.Err()
}

func (r *reader) fetch(id uint64, yes bool) {
	if r.fetched == nil {
		r.fetched = make([]bool, r.n)
	}
	if id < uint64(r.n) {
		r.fetched[id] = yes
	}
}

// web returns the web that was read.
func (r *reader) web(name string) (*web, error) {
	if len(r.from) == 0 {
		return nil, errors.New(name + ": no links")
	}
	w := &web{name: name, urls: r.urls}
	w.address()
	w.graph = compare.NewGraph(r.n, func(yield func(from, to uint32) bool) {
		for i, from := range r.from {
			if !yield(from, r.to[i]) {
				return
			}
		}
	})
	if r.fetched == nil {
		return w, nil
	}
	n := 0
	for _, yes := range r.fetched {
		if yes {
			n++
		}
	}
	part, _ := w.only(r.fetched, n, nil)
	return part, nil
}
