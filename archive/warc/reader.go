package warc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// ReaderOptions configures a [Reader]. The zero ReaderOptions is fine for most files.
type ReaderOptions struct {
	// Name is the name of the file in errors. "" means the Name of the source, if it has that
	// method, as *os.File does.
	Name string

	// Verify makes a block that does not match its WARC-Block-Digest a [DamageError], once it is
	// read to its end or skipped. false means that digests are not verified.
	Verify bool

	// Salvage returns everything after damage that can be read as a record. A body may contain
	// bytes that look like records of pages that were never fetched, and damage may expose them.
	// false means that after damage a record is returned only if it has the WARC-Warcinfo-ID that
	// is valid there, which no body can know; a file without these IDs ends at its first damage.
	Salvage bool

	// Dict is the dictionary of zstd frames. nil means the one that the file begins with, if any;
	// set it if reading begins elsewhere.
	Dict []byte
}

// maxWindow bounds the window of zstd frames, and so the memory that a frame can demand. RFC 8878
// recommends supporting 8 MiB; only the highest levels of zstd exceed this limit.
const maxWindow = 32 << 20

// freeExpanded is how many decompressed bytes of a member are always read, see SetMaxRatio.
const freeExpanded = 64 << 10

// errRatio is the damage of a member that expands too much.
var errRatio = errors.New("the member expands too much for its size")

// expanding reads a member, within the maximum ratio. It is not safe for concurrent use.
type expanding struct {
	r    *Reader
	from io.Reader // the decompressor
	n    int64     // decompressed bytes
}

// Read reads from the decompressor.
func (x *expanding) Read(p []byte) (int, error) {
	if most := x.r.ratio; most > 0 && x.n > freeExpanded+most*(x.r.src.pos()-x.r.start) {
		return 0, errRatio
	}
	n, err := x.from.Read(p)
	x.n += int64(n)
	return n, err
}

// bodyBuffer is the size of a decompressor's read in bytes.
const bodyBuffer = 32 << 10

// Reader reads the records of a file one after the other. It is not safe for concurrent use.
type Reader struct {
	opts      ReaderOptions
	name      string
	dict      []byte // for zstd
	found     bool   // the dictionary came from the file
	src       *source
	body      *bufio.Reader // decompressed: inner in a member, else src.Reader
	inner     *bufio.Reader // reads from expanding
	expanding expanding     // reads from the decompressor
	ratio     int64         // see SetMaxRatio
	gz        *gzip.Reader
	zs        *zstd.Decoder
	frame     frame
	check     check

	from   int64 // where reading began
	again  int64 // bytes read again after seeking back
	start  int64 // of the member, or of the plain record
	inside bool  // a member
	lost   bool  // the next record has to be searched for, after start

	salvage  bool
	warcinfo string // the ID of the current warcinfo record; "" if unknown
	required bool   // every record must have it

	kind   [][]byte // the magics to search for
	header []byte
	rec    Record
}

// NewReader reads from the current position of r, which counts as offset 0. To find records inside
// damage, r has to be an [io.Seeker].
func NewReader(r io.Reader, opts ReaderOptions) *Reader {
	reader := &Reader{opts: opts, dict: opts.Dict, src: newSource(r),
		inner: bufio.NewReaderSize(nil, bodyBuffer)}
	reader.expanding.r = reader
	reader.reset(r)
	return reader
}

// reset makes the reader read another source, as if it were new, with the same options. Its buffers
// are reused.
func (r *Reader) reset(src io.Reader) {
	if r.found {
		r.dict, r.found = r.opts.Dict, false
		r.Close()
	}
	r.src.reset(src)
	r.nameOf(src)
	r.inside, r.lost, r.start, r.kind = false, false, 0, unknown
	r.from, r.again = 0, 0
	r.salvage, r.warcinfo, r.required, r.ratio = r.opts.Salvage, "", false, 0
	r.rec = Record{fields: r.rec.fields[:0], ended: true}
}

// ResetAt makes the reader read the part of a file that begins at offset, as if it were new, with
// the same options. It reads a record by its address. Offsets in records and errors are relative to
// the start of the file.
func (r *Reader) ResetAt(f io.ReaderAt, offset, length int64) {
	r.reset(io.NewSectionReader(f, offset, length))
	r.src.under.n, r.from = offset, offset
	r.nameOf(f)
}

// Require makes every record damage that does not have this WARC-Warcinfo-ID, a URI without angle
// brackets, except for the warcinfo record of that ID. It applies until the next ResetAt. It is
// needed if reading does not begin at the warcinfo record, and is stricter than reading from there:
// without checksums, nothing else distinguishes a record from one inside a body.
func (r *Reader) Require(warcinfoID string) { r.warcinfo, r.required = warcinfoID, true }

// SetSalvage replaces [ReaderOptions.Salvage] until the next ResetAt.
func (r *Reader) SetSalvage(salvage bool) { r.salvage = salvage }

// SetMaxRatio makes a member damage that expands to more than this many times its size, beyond 64
// KiB. It applies until the next ResetAt; 0 means no limit. Files of strangers need it: a megabyte of
// zstd frames expands to 32 GB. No gzip member expands more than 1,032 times.
func (r *Reader) SetMaxRatio(ratio int64) { r.ratio = ratio }

// nameOf sets the name of the source in errors.
func (r *Reader) nameOf(src any) {
	r.name = r.opts.Name
	if named, ok := src.(interface{ Name() string }); ok && r.name == "" {
		r.name = named.Name()
	}
}

// Close releases the decompressors. It does not close the source.
func (r *Reader) Close() {
	if r.zs != nil {
		r.zs.Close()
		r.zs = nil
	}
}

// Records returns a single-use iterator over the remaining records. A record is only valid until
// the next step. A [DamageError] comes with a nil record and does not end the walk; any other error
// does. The end of the file is no error.
func (r *Reader) Records() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for {
			rec, err := r.Next()
			if err == io.EOF {
				return
			}
			if !yield(rec, err) || err != nil && !errors.Is(err, ErrDamaged) {
				return
			}
		}
	}
}

// Next returns the next record, which is only valid until the next call, or io.EOF. After a
// [DamageError] it can be called again, and continues after the damage with records that can be
// trusted, see [ReaderOptions.Salvage]. Next skips the rest of the previous record. If that reveals
// damage that Read did not report, Next reports it.
func (r *Reader) Next() (*Record, error) {
	if err := r.rec.Close(); err != nil {
		return nil, err
	}
	for {
		searching := r.lost
		if searching {
			if !r.salvage && r.warcinfo == "" {
				return nil, io.EOF // no further record can be trusted
			}
			if err := r.search(); err != nil {
				return nil, err
			}
		}
		err := r.begin(searching)
		switch {
		case err == nil:
			return &r.rec, nil
		case err == io.EOF:
			return nil, io.EOF
		case r.src.under.err != nil:
			return nil, fmt.Errorf("warc: read %s: %w", r.name, r.src.under.err)
		}
		r.lost, r.inside = true, false
		// A position that only looked like a record belongs to the reported damage.
		if !searching {
			return nil, r.damage(err)
		}
	}
}

// search goes to the next position after start where a record may begin.
func (r *Reader) search() error {
	if !r.goBack(r.start+1) && r.src.pos() == r.start {
		_, _ = r.src.Discard(1)
	}
	err := r.src.find(r.kind)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("warc: read %s: %w", r.name, err)
	}
	return err
}

// Limits of the bytes that a search may read again: a constant, plus a multiple of the bytes read.
// Accidental damage needs a small multiple. In hostile damage, each byte may seem to begin a record
// that extends to the end of the file.
const (
	maxAgain    = 4 << 20
	againFactor = 16
)

// goBack goes back to a position if the source can seek, and reports whether it did. Otherwise the
// search continues at the current position. Beyond the limits it goes back less far, which skips
// part of the bytes in question, so that the search ends.
func (r *Reader) goBack(pos int64) bool {
	if r.src.pos() == pos {
		return true
	}
	taken := r.src.under.n
	if r.again+taken-pos > maxAgain+againFactor*(taken-r.from) {
		if pos += (taken - pos) / againFactor; pos >= r.src.pos() {
			return false
		}
	}
	if !r.src.seek(pos) {
		return false
	}
	r.again += taken - pos
	return true
}

// damage adds the position to err. It replaces the end-of-file errors of decompressors by one
// message.
func (r *Reader) damage(err error) error {
	reason := err.Error()
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "the file ends in the middle of a record"
	}
	return &DamageError{r.name, r.start, reason}
}

// begin reads the header of the next record. It returns io.EOF only at the end of the file.
func (r *Reader) begin(searching bool) error {
	first := !r.inside
	if first {
		if err := r.open(); err != nil {
			return err
		}
	}
	err := r.readHeader(searching)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	version, fields, err := parseHeader(r.header, r.rec.fields[:0])
	if err != nil {
		return err
	}
	n, err := fields.length()
	if err != nil {
		return err
	}
	if !r.trusts(fields, searching) {
		return errForeign
	}
	// The record and the slice of its fields are reused, to save allocations.
	r.rec = Record{Version: version, Offset: r.start, Size: n, fields: fields, left: n, r: r,
		first: first}
	r.check.hash = nil
	if r.opts.Verify {
		r.check.begin(fields.Get("WARC-Block-Digest"))
		if fields.Type() == "revisit" && r.check.ofEmptyBlock() {
			r.check.hash = nil // GNU Wget's revisits have it, whatever their block
		}
	}
	r.lost = false
	return nil
}

// searchHeader bounds the part of a header that a search reads to find WARC-Warcinfo-ID, because
// each byte of hostile damage can look like the start of a header.
const searchHeader = 4 << 10

var errForeign = errors.New("the record does not have the WARC-Warcinfo-ID of its file")

// trusts reports whether a record belongs to the file, and is not part of a body. Without a search,
// all records do, unless an ID is required.
func (r *Reader) trusts(fields Fields, searching bool) bool {
	if fields.Type() == "warcinfo" {
		id := fields.URI("WARC-Record-ID")
		switch {
		case r.required || searching && !r.salvage:
			return id == r.warcinfo
		case !searching:
			r.warcinfo = id // of the records from here on
		}
		return true
	}
	return !r.required && (!searching || r.salvage) || fields.URI("WARC-Warcinfo-ID") == r.warcinfo
}

// open goes to the next non-empty member or plain record. Some writers add an empty member when
// they close a file.
func (r *Reader) open() error {
	for {
		err := skipBlank(r.src.Reader)
		if err != nil {
			return err
		}
		r.start = r.src.pos()
		if r.body, err = r.decompress(); err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if r.body == nil {
			continue
		}
		r.inside = r.body == r.inner
		if _, err = r.body.Peek(1); err != io.EOF {
			return err
		}
		r.inside = false
	}
}

// decompress detects the format of the next member, and returns its reader, or nil if it has no
// records.
func (r *Reader) decompress() (*bufio.Reader, error) {
	magic, err := r.src.Peek(longest)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, magics[0]):
		r.kind = magics[:1]
		return r.inner, r.openGzip()
	case bytes.HasPrefix(magic, magics[1]):
		r.kind = magics[1:2]
		return r.inner, r.openZstd()
	case hasVersion(magic):
		r.kind = magics[2:]
		return r.src.Reader, nil
	case isSkippable(magic):
		return nil, r.skip()
	}
	return nil, errors.New("neither a record nor gzip nor zstd")
}

// openGzip begins one member and stops after it. Otherwise the decompressor would continue with
// the next member, and the offset of its record would be unknown.
func (r *Reader) openGzip() (err error) {
	if r.gz == nil {
		r.gz, err = gzip.NewReader(r.src.Reader)
	} else {
		err = r.gz.Reset(r.src.Reader)
	}
	if err != nil {
		return err
	}
	r.gz.Multistream(false)
	r.expand(r.gz)
	return nil
}

// openZstd begins one frame. The first frame creates the decoder, with the dictionary found so far.
// It runs in this goroutine, because a Reader must not leave goroutines behind.
func (r *Reader) openZstd() error {
	if err := r.frame.begin(r.src); err != nil {
		return err
	}
	if r.zs == nil {
		opts := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow)}
		if len(r.dict) > 0 {
			opts = append(opts, zstd.WithDecoderDicts(r.dict))
		}
		zs, err := zstd.NewReader(nil, opts...)
		if err != nil {
			return err
		}
		r.zs = zs
	}
	if err := r.zs.Reset(&r.frame); err != nil {
		return err
	}
	r.expand(r.zs)
	return nil
}

// expand makes the reader read from a decompressor.
func (r *Reader) expand(from io.Reader) {
	r.expanding.from, r.expanding.n = from, 0
	r.inner.Reset(&r.expanding)
}

// readHeader reads through the blank line, and stores everything before it in r.header.
func (r *Reader) readHeader(searching bool) error {
	r.header = r.header[:0]
	for lines := 0; ; {
		line, err := r.body.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		if err == nil {
			lines++
		}
		if len(r.header)+len(line) > maxHeader || lines > MaxLines {
			return errors.New("the header is too long")
		}
		atStart := len(r.header) == 0 || r.header[len(r.header)-1] == '\n'
		if err == nil && atStart && isBlank(line) {
			return nil
		}
		r.header = append(r.header, line...)
		if len(r.header) >= longest && !hasVersion(r.header) {
			return errors.New("no version line")
		}
		if searching && len(r.header) > searchHeader && !r.salvage &&
			!bytes.Contains(r.header, []byte(r.warcinfo)) {
			return errForeign
		}
	}
}
