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

// A CorruptError says where a stored Filter is damaged. It unwraps to [ErrCorrupt].
type CorruptError struct {
	File   string // "" if the reader has no method Name, as an *os.File has
	Offset int64  // in bytes from where Read started
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string { return (*durable.CorruptError)(e).Error() }

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// These constants are on disk. Do not change them; add a version. FORMAT.md describes the rest.
const (
	magic        = "SPNFILT3"
	maxLayers    = maxGenerations + 1 // doubling never reaches it
	maxLayerBits = 1 << 46            // 8 TiB
)

// oldMagics are those of versions 1 and 2.
var oldMagics = []string{"SPNFILT1", "SPNFILT\x00"}

// WriteTo writes the Filter to w, for [Read]. Other goroutines can add URLs during the call; only
// the shard that is being written is locked. Such URLs may or may not be written.
//
// The output contains the hash key. Anyone who reads it can craft URLs that collide.
func (f *Filter) WriteTo(w io.Writer) (int64, error) {
	out := durable.NewStreamWriter(w, magic)
	out.Words(f.key[0], f.key[1],
		uint64(f.plan.Capacity), math.Float64bits(f.plan.Rate), uint64(f.plan.Recent),
		uint64(f.plan.Generations), uint64(len(f.shards)))
	for i := range f.shards {
		f.shards[i].report() // so that all shards are written with the same layers
	}
	for i := range f.shards {
		f.shards[i].writeTo(out)
	}
	n, err := out.Close()
	if err != nil {
		return n, fmt.Errorf("dedupe: write filter: %w", err)
	}
	return n, nil
}

// WriteFile replaces a file by what WriteTo writes. After a power failure, the old or the new file is
// there. Only the owner may read a new file, since it has the hash key; an old one keeps its mode.
func (f *Filter) WriteFile(name string) error {
	if err := durable.WriteFile(name, f); err != nil {
		return fmt.Errorf("dedupe: %w", err)
	}
	return nil
}

func (s *shard) writeTo(out *durable.StreamWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	var hashes []uint64
	if s.recent != nil {
		hashes = s.recent.Keys() // the oldest first
	}
	out.Words(uint64(s.added), uint64(s.settled),
		uint64(s.latest), uint64(len(s.layers)), uint64(len(hashes)))
	for _, l := range s.layers {
		out.Words(l.Bits(), l.Functions(), uint64(l.Keys()))
		out.Words(l.Words()...)
	}
	for _, hash := range hashes {
		layer, _ := s.recent.Peek(hash)
		out.Words(hash, uint64(layer))
	}
}

// Read reads a Filter that [Filter.WriteTo] wrote, and not a byte more. The options must be those
// of the Filter that was written, except for MaxBytes: otherwise the error wraps [ErrOptions]. A
// Filter that was saturated may grow again if MaxBytes permits, but keeps the error that it has. A
// damaged or truncated Filter is rejected with a [CorruptError], one of another version with
// [ErrVersion].
func Read(r io.Reader, o Options) (*Filter, error) {
	in := &reader{durable.NewStreamReader(r, magic, oldMagics...)}
	f := in.filter(o.withDefaults())
	if err := in.End(); err != nil {
		return nil, fmt.Errorf("dedupe: read filter: %w", err)
	}
	return f, nil
}

// A reader reads what WriteTo wrote.
type reader struct{ *durable.StreamReader }

// words reads n words. It allocates memory as they arrive, so a forged number costs little more than
// the words that are there.
func (r *reader) words(n int) (words []uint64) {
	const piece = 1 << 12
	var b [8 * piece]byte
	for len(words) < n && r.Err == nil {
		if len(words) == cap(words) {
			words = append(make([]uint64, 0, min(n, max(piece, 2*cap(words)))), words...)
		}
		part := b[:8*min(cap(words)-len(words), piece)]
		r.Fill(part)
		for ; len(part) > 0; part = part[8:] {
			words = append(words, binary.LittleEndian.Uint64(part))
		}
	}
	return words
}

// number reads a count. It rejects one beyond the bound or the range of an int.
func (r *reader) number(bound uint64) int {
	word := r.Word()
	if word > min(bound, math.MaxInt) {
		r.Fail("a number is out of range")
		return 0
	}
	return int(word)
}

// filter reads everything after the magic.
func (r *reader) filter(plan Options) *Filter {
	key := siphash.Key{r.Word(), r.Word()}
	saved := Options{
		Capacity: int(r.Word()), Rate: math.Float64frombits(r.Word()), Recent: int(r.Word()),
		MaxBytes: plan.MaxBytes, Generations: int(r.Word()),
	}
	shards := r.number(maxShards)
	switch {
	case r.Err != nil:
	case saved != plan:
		r.Err = fmt.Errorf("%w: %+v, not %+v", ErrOptions, saved, plan)
	case shards < 1 || shards&(shards-1) != 0:
		r.Fail("impossible number of shards")
	}
	if r.Err != nil {
		return nil
	}
	f := newFilter(plan, key, shards)
	for i := range f.shards {
		r.shard(&f.shards[i])
	}
	if r.Err == nil {
		f.growth.resume(f.shards)
	}
	return f
}

// shard reads what shard.writeTo wrote.
func (r *reader) shard(s *shard) {
	const most = math.MaxInt / maxShards // so that no sum of them overflows
	s.added, s.settled = r.number(most), r.number(most)
	s.reported = s.settled
	s.latest = int64(r.number(math.MaxUint32))
	count := r.number(maxLayers)
	entries := r.number(most)
	if r.Err == nil && !s.plausible(count, entries) {
		r.Fail("impossible sizes of a shard")
	}
	left := s.settled // hashes that are in no layer yet
	for i := 0; r.Err == nil && i < count; i++ {
		layer := r.layer(s.growth, s.latest-int64(count-1-i), left)
		if layer != nil {
			left -= layer.Keys()
			s.layers = append(s.layers, layer)
		}
	}
	if left > 0 && s.growth.plan.Generations == 0 {
		r.Fail("%d hashes are in no layer", left)
	}
	held := s.settled // hashes that are in a layer, or only in the list
	for ; r.Err == nil && entries > 0; entries-- {
		hash, layer := r.Word(), r.Word()
		if layer > uint64(s.latest) || s.recent.Contains(hash) {
			r.Fail("a URL is in a layer that does not exist, or twice in the list")
		}
		if layer == 0 {
			held++
		}
		s.recent.Add(hash, uint32(layer))
	}
	if s.added > held {
		r.Fail("%d new URLs, but %d hashes", s.added, held)
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

// layer reads a layer of at most so many keys. Its size follows from the plan, except for rounding on
// another machine. Any other size is rejected before memory is allocated for it.
func (r *reader) layer(g *growth, number int64, most int) *layers.Layer {
	size, functions, keys := r.Word(), r.Word(), r.number(uint64(most))
	want, wantFunctions := layers.Size(g.shareOf(number), g.rateOf(number))
	wrong := max(size, want)-min(size, want) > want/1000+1
	if size == 0 || size > min(maxLayerBits, math.MaxInt) || wrong || functions != wantFunctions {
		r.Fail("a layer's size does not fit the plan")
		return nil
	}
	words := r.words(int((size + 63) / 64))
	if r.Err != nil {
		return nil
	}
	return layers.Of(words, size, functions, keys)
}
