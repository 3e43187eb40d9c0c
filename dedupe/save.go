package dedupe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spinneret-go/spinneret/dedupe/internal/layers"
	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
	"github.com/spinneret-go/spinneret/internal/durable"
)

// The errors of [Read], besides those of the reader.
var (
	ErrCorrupt = durable.ErrCorrupt // every [CorruptError] unwraps to it
	ErrVersion = durable.ErrVersion // sound, but written by another version of this package
	ErrOptions = errors.New("dedupe: filter saved with other options")
)

// A CorruptError reports where a stored Filter is damaged or truncated.
type CorruptError struct {
	Offset int64  // in bytes from where Read started; the chunks before it are intact
	Reason string // a few words
}

// Error returns the offset and the reason.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("dedupe: stored filter: byte %d: %s", e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// These constants are on disk. Do not change them; add a version. FORMAT.md describes the rest.
const (
	magic        = "SPNFILT\x00"
	oldMagic     = "SPNFILT1" // of version 1
	version      = 2
	maxChunk     = 1 << 20
	headerWords  = 8
	shardWords   = 5
	layerWords   = 3
	recentWords  = 2
	maxLayers    = maxGenerations + 1 // doubling never reaches it
	maxLayerBits = 1 << 46            // 8 TiB
)

// WriteTo writes the Filter to w, for [Read]. Other goroutines can add URLs during the call; only
// the shard that is being written is locked. Such URLs may or may not be written.
//
// The output contains the hash key. Anyone who reads it can craft URLs that collide.
func (f *Filter) WriteTo(w io.Writer) (int64, error) {
	out := &chunkWriter{to: w}
	out.raw([]byte(magic))
	out.words([]uint64{
		version, f.key[0], f.key[1],
		uint64(f.plan.Capacity), math.Float64bits(f.plan.Rate), uint64(f.plan.Recent),
		uint64(f.plan.Generations), uint64(len(f.shards)),
	})
	for i := range f.shards {
		f.shards[i].report() // so that all shards are written with the same layers
	}
	for i := range f.shards {
		f.shards[i].writeTo(out)
	}
	out.words(nil) // so that a file truncated between two shards is detected
	if out.err != nil {
		return out.n, fmt.Errorf("dedupe: write filter: %w", out.err)
	}
	return out.n, nil
}

func (s *shard) writeTo(out *chunkWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	var hashes []uint64
	if s.recent != nil {
		hashes = s.recent.Keys() // the oldest first
	}
	out.words([]uint64{
		uint64(s.added), uint64(s.settled),
		uint64(s.latest), uint64(len(s.layers)), uint64(len(hashes)),
	})
	var sizes []uint64
	for _, l := range s.layers {
		sizes = append(sizes, l.Bits(), l.Functions(), uint64(l.Keys()))
	}
	out.words(sizes)
	for _, l := range s.layers {
		out.words(l.Words())
	}
	entries := make([]uint64, 0, recentWords*len(hashes))
	for _, hash := range hashes {
		layer, _ := s.recent.Peek(hash)
		entries = append(entries, hash, uint64(layer))
	}
	out.words(entries)
}

// A chunkWriter writes chunks of words and remembers the first error. The checksum of a chunk
// continues that of the chunk before, so that chunks cannot be lost or swapped.
type chunkWriter struct {
	to  io.Writer
	n   int64
	sum uint32
	buf []byte
	err error
}

func (w *chunkWriter) raw(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.to.Write(b)
	w.n += int64(n)
	w.err = err
}

// words writes words in one or more chunks.
func (w *chunkWriter) words(words []uint64) {
	for first := true; first || len(words) > 0; first = false {
		n := min(len(words), maxChunk/8)
		w.buf = binary.LittleEndian.AppendUint32(w.buf[:0], uint32(8*n))
		for _, word := range words[:n] {
			w.buf = binary.LittleEndian.AppendUint64(w.buf, word)
		}
		w.sum = durable.SumOn(w.sum, w.buf)
		w.buf = binary.LittleEndian.AppendUint32(w.buf, w.sum)
		w.raw(w.buf)
		words = words[n:]
	}
}

// Read reads a Filter that [Filter.WriteTo] wrote, and not a byte more. The options must be those
// of the Filter that was written, except for MaxBytes: otherwise the error wraps [ErrOptions]. A
// damaged or truncated Filter is rejected with a [CorruptError], one of another version with
// [ErrVersion].
func Read(r io.Reader, o Options) (*Filter, error) {
	in := &chunkReader{from: r}
	switch start := string(in.raw(len(magic))); {
	case in.err != nil:
	case start == oldMagic:
		in.err = fmt.Errorf("dedupe: %w: 1, not %d", ErrVersion, version)
	case start != magic:
		in.fail("not a stored filter")
	}
	in.n += int64(len(magic))
	f := in.filter(o.withDefaults())
	if in.err == nil {
		in.words(0)
	}
	if in.err != nil {
		return nil, in.err
	}
	return f, nil
}

// A chunkReader reads what a chunkWriter wrote and remembers the first error.
type chunkReader struct {
	from io.Reader
	n    int64
	sum  uint32
	buf  []byte
	err  error
}

func (r *chunkReader) fail(reason string) {
	if r.err == nil {
		r.err = &CorruptError{r.n, reason}
	}
}

// raw reads n bytes, which are valid until the next call.
func (r *chunkReader) raw(n int) []byte {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	b := r.buf[:n]
	if r.err != nil {
		clear(b)
		return b
	}
	switch _, err := io.ReadFull(r.from, b); {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		r.fail("ends too early")
	case err != nil:
		r.err = fmt.Errorf("dedupe: read filter: %w", err)
	}
	return b
}

// words reads n words from one or more chunks. It allocates memory only as the words arrive, so a
// wrong number costs at most twice the memory of the actual input.
func (r *chunkReader) words(n int) []uint64 {
	words := make([]uint64, 0, min(n, maxChunk))
	for first := true; r.err == nil && (first || len(words) < n); first = false {
		want := min(n-len(words), maxChunk/8)
		if len(words)+want > cap(words) {
			grown := make([]uint64, len(words), min(n, 2*cap(words)))
			copy(grown, words)
			words = grown
		}
		words = r.chunk(words, want)
	}
	return words
}

// chunk reads a chunk of n words and appends them to words.
func (r *chunkReader) chunk(words []uint64, n int) []uint64 {
	b := r.raw(4 + 8*n + 4)
	if r.err != nil {
		return words
	}
	body, sum := b[:4+8*n], binary.LittleEndian.Uint32(b[4+8*n:])
	r.sum = durable.SumOn(r.sum, body)
	switch {
	case binary.LittleEndian.Uint32(body) != uint32(8*n):
		r.fail("a chunk has an unexpected size")
	case r.sum != sum:
		r.fail("wrong checksum")
	default:
		for b := body[4:]; len(b) > 0; b = b[8:] {
			words = append(words, binary.LittleEndian.Uint64(b))
		}
		r.n += int64(len(b))
	}
	return words
}

// number converts a count. It rejects one beyond the bound or the range of an int.
func (r *chunkReader) number(word, bound uint64) int {
	if word > min(bound, math.MaxInt) {
		r.fail("a number is out of range")
		return 0
	}
	return int(word)
}

// filter reads everything after the magic.
func (r *chunkReader) filter(plan Options) *Filter {
	head := r.words(headerWords)
	if r.err != nil {
		return nil
	}
	shards := r.number(head[7], maxShards)
	saved := Options{int(head[3]), math.Float64frombits(head[4]), int(head[5]), plan.MaxBytes, int(head[6])}
	switch {
	case head[0] != version:
		r.err = fmt.Errorf("dedupe: %w: %d, not %d", ErrVersion, head[0], version)
	case saved != plan:
		r.err = fmt.Errorf("%w: %+v, not %+v", ErrOptions, saved, plan)
	case shards < 1 || shards&(shards-1) != 0:
		r.fail("impossible number of shards")
	}
	if r.err != nil {
		return nil
	}
	f := newFilter(plan, siphash.Key(head[1:3]), shards)
	for i := range f.shards {
		r.shard(&f.shards[i])
	}
	if r.err == nil {
		f.growth.resume(f.shards)
	}
	return f
}

// shard reads what shard.writeTo wrote.
func (r *chunkReader) shard(s *shard) {
	head := r.words(shardWords)
	if r.err != nil {
		return
	}
	s.added = r.number(head[0], math.MaxInt)
	s.settled = r.number(head[1], math.MaxInt/maxShards)
	s.reported = s.settled
	s.latest = int64(r.number(head[2], math.MaxUint32))
	count := r.number(head[3], maxLayers)
	entries := r.number(head[4], math.MaxInt/recentWords)
	sizes := r.words(layerWords * count)
	if r.err == nil && !s.plausible(count, entries) {
		r.fail("impossible sizes of a shard")
	}
	for i := 0; r.err == nil && i < count; i++ {
		number := s.latest - int64(count-1-i)
		s.layers = append(s.layers, r.layer(s.growth, number, sizes[layerWords*i:]))
	}
	recent := r.words(recentWords * entries)
	for ; r.err == nil && len(recent) > 0; recent = recent[recentWords:] {
		if recent[1] > uint64(s.latest) {
			r.fail("a URL is in a layer that does not exist")
		}
		s.recent.Add(recent[0], uint32(recent[1]))
	}
}

// plausible reports whether a shard can have that many layers, up to its latest, and that many
// entries in its list.
func (s *shard) plausible(layers, entries int) bool {
	n := s.growth.plan.Generations
	if n == 0 && int64(layers) != s.latest || n > 0 && layers > n+1 {
		return false
	}
	return layers > 0 && int64(layers) <= s.latest && entries <= s.growth.listSize()
}

// layer reads the words of a layer with the given numbers of bits, functions and keys. Its size
// follows from the plan, except for rounding on another machine. Any other size is rejected before
// memory is allocated for it.
func (r *chunkReader) layer(g *growth, number int64, size []uint64) *layers.Layer {
	bits, functions := layers.Size(float64(g.keysOf(number))/float64(g.shards), g.rateOf(number))
	if size[0] == 0 || max(size[0], bits)-min(size[0], bits) > bits/1000+1 || size[1] != functions {
		r.fail("a layer's size does not fit the plan")
		return nil
	}
	keys := r.number(size[2], math.MaxInt)
	wanted := uint64(r.number(size[0], maxLayerBits))
	words := r.words(int((wanted + 63) / 64))
	if r.err != nil {
		return nil
	}
	return layers.Of(words, size[0], functions, keys)
}
