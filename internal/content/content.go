// Package content decodes the content codings of HTTP bodies, within bounds: a few kilobytes can
// expand to gigabytes of zeros.
//
// The decoders of gzip, deflate and zstd are pooled: each needs tens of kilobytes, or, for zstd, a
// window of up to 8 MiB. Brotli is a hook, because its module is large and not every caller wants
// it.
//
// A body may have several codings on top of each other, and each multiplies the work. So the bounds
// hold for what each of them decodes to, not just for the last.
package content

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
)

// Errors of a [Reader]. Others are those of its source or of a decoder.
var (
	// ErrUnknown means that a coding is unknown, or that there are too many.
	ErrUnknown = errors.New("unknown content coding")

	// ErrTooLarge means that the decoded body exceeds Options.Max.
	ErrTooLarge = errors.New("decoded body too large")

	// ErrRatio means that the decoded body exceeds Options.Ratio. It wraps ErrTooLarge.
	ErrRatio = fmt.Errorf("%w for its encoded size", ErrTooLarge)

	// ErrClosed is returned by Read after Close.
	ErrClosed = errors.New("read of a closed body")
)

// maxCodings bounds the codings on top of each other. More than one is rare, and each needs a
// window in memory.
const maxCodings = 3

// An Opener opens a reader that decodes one coding of r. The reader is closed when it is no longer
// used, by the goroutine that has read from it last.
type Opener = func(r io.Reader) (io.ReadCloser, error)

// Options bounds what a [Reader] returns. The zero Options has no bounds and does not know br. Its
// methods are safe for concurrent use.
type Options struct {
	Brotli  Opener // nil means that br is unknown
	Max     int64  // decoded bytes; 0 means no bound
	Ratio   int64  // decoded bytes for each encoded one, beyond Free; 0 means no bound
	Free    int64  // decoded bytes that are always allowed; 0 means none
	Lenient bool   // a body that does not begin like its coding is left as it is; false means an error

	// Until ends the reading with its error, if it has one. It is asked for every few kilobytes
	// that a decoder reads, which need not decode to anything. A context will do; nil means never.
	Until interface{ Err() error }
}

// Of returns the codings that Content-Encoding fields list, in normal form: current names in lower
// case, separated by commas, without identity; "" for none. If there are too many to be decoded,
// only the first ones are listed. It does not allocate for a single coding in lower case.
func Of(fields []string) string {
	var list string
	n := 0
	for _, field := range fields {
		for name := range strings.SplitSeq(field, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name == "x-gzip" {
				name = "gzip"
			}
			switch {
			case name == "" || name == "identity":
				continue
			case list == "":
				list = name
			default:
				list += "," + name
			}
			if n++; n > maxCodings {
				return list
			}
		}
	}
	return list
}

// Known reports whether a Reader with these Options can decode the codings of a list by [Of].
func (o *Options) Known(codings string) bool {
	if strings.Count(codings, ",") >= maxCodings {
		return false
	}
	for name := range strings.SplitSeq(codings, ",") {
		if open, _ := o.find(name); open == nil {
			return false
		}
	}
	return true
}

// Fits reports whether a body that begins with head can have the last coding of a list. It is true
// for codings without a magic number.
func Fits(codings string, head []byte) bool {
	_, fits := new(Options).find(codings[strings.LastIndexByte(codings, ',')+1:])
	return fits(head)
}

// find returns the decoder of one coding, and what a body of that coding begins with.
func (o *Options) find(name string) (open Opener, fits func(head []byte) bool) {
	switch name {
	case "gzip":
		return OpenGzip, isGzip
	case "deflate":
		return openDeflate, isAnything
	case "zstd":
		return openZstd, isZstd
	case "br":
		return o.Brotli, isAnything
	}
	return nil, isAnything
}

func isAnything([]byte) bool { return true }

// A Reader decodes a body. The zero Reader must be Reset. It is not safe for concurrent use. But
// Close may be called while another goroutine is in Read.
//
// Decoders are pooled, and a Read that is still running when the body is closed uses its own: they
// return to their pools only from the goroutine in Read, or from Close if no Read is running.
type Reader struct {
	options Options
	codings string
	feeds   [maxCodings]feed // of the decoders; the first is the source
	buf     *bufio.Reader    // of the source; kept by Reset

	closed   atomic.Bool
	mu       sync.Mutex // held by Read, and guards what follows
	decoders [maxCodings]io.ReadCloser
	opened   int // of decoders, from the outermost coding inwards
	n        int64
	err      error
}

// NewReader returns a Reader of src, which has the codings of a list by [Of].
func NewReader(src io.Reader, codings string, o Options) *Reader {
	r := new(Reader)
	r.Reset(src, codings, o)
	return r
}

// Reset makes r as NewReader does. It keeps a buffer of 4 KiB. No Read may be running.
func (r *Reader) Reset(src io.Reader, codings string, o Options) {
	r.release()
	if r.buf == nil {
		r.buf = bufio.NewReader(nil)
	}
	r.options, r.codings = o, codings
	r.feeds = [maxCodings]feed{}
	r.buf.Reset(r.feed(0, src))
	r.n, r.err = 0, nil
	r.closed.Store(false)
}

// Read returns decoded bytes. io.EOF means that the source has ended, too. What it has behind the
// end of the coding is dropped.
func (r *Reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	n, err := r.read(p)
	r.mu.Unlock()
	if r.closed.Load() {
		_ = r.Close() // one that came meanwhile could not release the decoders
	}
	return n, err
}

// read requires that r.mu is held.
func (r *Reader) read(p []byte) (int, error) {
	if r.err == nil && r.opened == 0 {
		r.err = r.cause(r.open())
	}
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	// One byte more than the bound, to tell a body that ends there from a longer one.
	if left := r.options.Max - r.n; r.options.Max > 0 && int64(len(p)) > left {
		p = p[:left+1]
	}
	n, err := r.decoders[r.opened-1].Read(p)
	r.n += int64(n)
	switch over := r.over(r.n); {
	case over == ErrTooLarge:
		n, err = n-1, over
	case over != nil:
		err = over
	case err == io.EOF:
		err = r.drain()
	case err == nil:
		err = r.ended()
	default:
		err = r.cause(err)
	}
	if err != nil {
		r.err = err
		r.release()
	}
	return n, err
}

// cause returns why a decoder failed with err: when it skips something, it takes each error of its feed
// for a broken coding.
func (r *Reader) cause(err error) error {
	for i := range r.feeds {
		if cut := r.feeds[i].err; err != nil && cut != nil && cut != io.EOF {
			return cut
		}
	}
	return err
}

// drain reads what the decoders have left and returns io.EOF, or why a feed has not come to its
// end. Where gzip or zstd may end or go on, a decoder takes a broken connection for the end.
func (r *Reader) drain() error {
	for i := range r.opened {
		if _, err := io.Copy(io.Discard, &r.feeds[i]); err != nil {
			return err
		}
	}
	return io.EOF
}

// Close releases the decoders. The source is left to the caller.
func (r *Reader) Close() error {
	r.closed.Store(true)
	if r.mu.TryLock() {
		defer r.mu.Unlock()
		if r.err == nil {
			r.err = ErrClosed
		}
		r.release()
	}
	return nil
}

// over returns which bound n decoded bytes exceed, if any.
func (r *Reader) over(n int64) error {
	switch encoded := r.feeds[0].n; {
	case r.options.Max > 0 && n > r.options.Max:
		return ErrTooLarge
	case r.options.Ratio > 0 && encoded <= math.MaxInt64/2/r.options.Ratio &&
		n > r.options.Free+encoded*r.options.Ratio:
		return ErrRatio
	}
	return nil
}

// ended returns why nothing more may be decoded, if so.
func (r *Reader) ended() error {
	switch {
	case r.closed.Load():
		return ErrClosed
	case r.options.Until != nil:
		return r.options.Until.Err()
	}
	return nil
}

// open opens the decoders, the one of the last coding first.
func (r *Reader) open() error {
	if r.closed.Load() {
		return ErrClosed
	}
	if !r.options.Known(r.codings) {
		return fmt.Errorf("%w %.40q", ErrUnknown, r.codings)
	}
	src := r.buf
	for rest := r.codings; ; {
		last := strings.LastIndexByte(rest, ',')
		if err := r.openOne(rest[last+1:], src); err != nil {
			r.release()
			return err
		}
		if last < 0 {
			return nil
		}
		rest, src = rest[:last], bufio.NewReader(r.feed(r.opened, r.decoders[r.opened-1]))
	}
}

func (r *Reader) openOne(coding string, src *bufio.Reader) error {
	open, fits := r.options.find(coding)
	head, err := src.Peek(4)
	if len(head) == 0 {
		return err // an empty body has no coding
	}
	if !fits(head) && r.options.Lenient {
		open = func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(r), nil }
	}
	decoder, err := open(src)
	if decoder != nil {
		r.decoders[r.opened] = decoder
		r.opened++
	}
	return err
}

// release requires that r.mu is held or that nobody else uses r.
func (r *Reader) release() {
	for r.opened > 0 {
		r.opened--
		_ = r.decoders[r.opened].Close()
		r.decoders[r.opened] = nil
	}
	if r.buf != nil {
		r.buf.Reset(nil)
	}
	for i := range r.feeds {
		r.feeds[i].src = nil
	}
	r.options.Until = nil // it may hold as much as the source
}

// feed is what a decoder reads: the source, or the output of another decoder.
type feed struct {
	of  *Reader
	src io.Reader // nil once released
	n   int64     // bytes read
	err error     // that ended it
}

// feed returns the i'th feed, which reads from src.
func (r *Reader) feed(i int, src io.Reader) *feed {
	r.feeds[i] = feed{of: r, src: src}
	return &r.feeds[i]
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	if f.src == nil {
		return 0, ErrClosed
	}
	if f.err == nil {
		f.err = f.of.ended()
	}
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.src.Read(p)
	f.n += int64(n)
	if f != &f.of.feeds[0] {
		if over := f.of.over(f.n); over != nil {
			n, err = 0, over
		}
	}
	f.err = err
	return n, err
}
