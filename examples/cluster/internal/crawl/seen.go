package crawl

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// Names of counts.
const (
	countURLs       = "URLs admitted"
	countDuplicates = "links seen before"
	countAgain      = "pages sent out again"
)

// seen is the state of a partition of dedupe: the URLs that have passed, as 64 bits of SHA-256
// each, and the plan of those that are due again. Among a million URLs, two are confused with a
// probability of 3 in 10^8. A Bloom filter would take a quarter of the memory. But its errors
// depend on how often it was saved and loaded, and successive owners must agree on every URL. FNV,
// which selects the partition, would let a site construct URLs that hide those of another site;
// SHA-256 does not.
type seen struct {
	plan
	crawl  *Options
	keys   map[uint64]struct{}
	fresh  []uint64 // since the last checkpoint
	counts map[string]int64
}

func newSeen(o *Options) *seen {
	return &seen{
		plan: newPlan(), crawl: o, keys: map[uint64]struct{}{}, counts: map[string]int64{},
	}
}

func keyOf(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.LittleEndian.Uint64(sum[:])
}

// Apply lets a new URL pass, or records the result of a visit.
func (s *seen) Apply(it message.Item, at time.Time, emit engine.Emit) {
	if it.Kind == message.Visited {
		s.visited(it)
		return
	}
	key := pageKey(it.URL, it.Kind == message.Sitemap)
	if _, old := s.keys[key]; old {
		if it.Again && s.requested(key, at) {
			s.counts[countAgain]++
			emit(message.Hosts, s.crawl.partOfHost(it.URL), it)
			return
		}
		s.counts[countDuplicates]++
		s.hinted(key, it.LastMod, at)
		return
	}
	it.Again = false
	s.keys[key] = struct{}{}
	s.fresh = append(s.fresh, key)
	s.counts[countURLs]++
	emit(message.Hosts, s.crawl.partOfHost(it.URL), it)
}

// Advance sends out the due pages.
func (s *seen) Advance(at time.Time, emit engine.Emit) {
	s.advance(at, func(it message.Item) {
		s.counts[countAgain]++
		emit(message.Hosts, s.crawl.partOfHost(it.URL), it)
	})
}

// Next returns when the next page is due.
func (s *seen) Next() time.Time { return s.next() }

// Wants returns nothing: the state needs no answers.
func (s *seen) Wants() []string { return nil }

// Open returns the number of planned pages without a successful visit: the crawl is not finished
// without them. Pages that are only revisited do not count.
func (s *seen) Open() int { return s.open }

// Counts returns the counts by name.
func (s *seen) Counts() map[string]int64 { return s.counts }

// The first byte of a chunk is its kind.
const (
	chunkKeys = 1 // eight bytes each
	chunkPlan = 2 // encoded planned pages
)

// Changes returns the new keys, which never change or disappear, and the changes of the plan.
func (s *seen) Changes(all bool, size int) (chunks [][]byte) {
	keys := s.fresh
	if all {
		keys = slices.AppendSeq(make([]uint64, 0, len(s.keys)), maps.Keys(s.keys))
		clear(s.dirty)
		for key, page := range s.pages {
			s.dirty[key] = page.url
		}
	}
	for some := range slices.Chunk(keys, max(size/8, 1)) {
		chunk := append(make([]byte, 0, 1+8*len(some)), chunkKeys)
		for _, key := range some {
			chunk = binary.LittleEndian.AppendUint64(chunk, key)
		}
		chunks = append(chunks, chunk)
	}
	var items []message.Item
	bytes := 0
	end := func() {
		if len(items) > 0 {
			chunks = append(chunks, message.Encode([]byte{chunkPlan}, items...))
			items, bytes = items[:0], 0
		}
	}
	for key, url := range s.dirty {
		it := s.item(key, url)
		length := len(it.URL) + 4*len(it.State)/3 + lineBytes
		if bytes+length > size {
			end()
		}
		bytes += length
		items = append(items, it)
	}
	end()
	s.fresh = s.fresh[:0]
	clear(s.dirty)
	return chunks
}

// lineBytes is as many as a planned page takes as JSON, without its URL and its state. It keeps a chunk
// of the plan below the size limit of a message.
const lineBytes = 128

// Load adds the content of a chunk.
func (s *seen) Load(chunk []byte) error {
	if len(chunk) == 0 {
		return errPlan
	}
	kind, rest := chunk[0], chunk[1:]
	switch {
	case kind == chunkPlan:
		items, err := message.Decode(rest)
		for _, it := range items {
			if err == nil {
				err = s.load(it)
			}
		}
		clear(s.dirty) // loading is not a change
		return err
	case kind != chunkKeys || len(rest)%8 != 0:
		return errPlan
	}
	for ; len(rest) > 0; rest = rest[8:] {
		s.keys[binary.LittleEndian.Uint64(rest)] = struct{}{}
	}
	return nil
}

// errPlan means that the stored state of a partition cannot be read.
var errPlan = errors.New("crawl: state of dedupe: corrupt")
