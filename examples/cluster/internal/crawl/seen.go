package crawl

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// What the partitions count.
const (
	countURLs       = "URLs admitted"
	countDuplicates = "links seen before"
)

// seen is the state of a partition of dedupe: the URLs that have passed, as 64 bits of SHA-256
// each. Two of a million URLs are taken for one with a probability of 3 in 10^8. A Bloom filter
// would take a quarter of the memory, but what it takes for old depends on how often it was saved
// and loaded, and owners that come after one another must agree on each URL. Of FNV, which chooses
// the partition, a site could make up URLs that hide another site's; of SHA-256 it cannot.
type seen struct {
	crawl  *Options
	keys   map[uint64]struct{}
	fresh  []uint64 // since the last checkpoint
	counts map[string]int64
}

func newSeen(o *Options) *seen {
	return &seen{crawl: o, keys: map[uint64]struct{}{}, counts: map[string]int64{}}
}

// Apply lets a URL pass that was not here before.
func (s *seen) Apply(it message.Item, _ time.Time, emit engine.Emit) {
	sum := sha256.Sum256([]byte(it.URL))
	key := binary.LittleEndian.Uint64(sum[:])
	if _, old := s.keys[key]; old {
		s.counts[countDuplicates]++
		return
	}
	s.keys[key] = struct{}{}
	s.fresh = append(s.fresh, key)
	s.counts[countURLs]++
	emit(message.Hosts, s.crawl.partOfHost(it.URL), it)
}

// Wants returns nothing: the state needs no answers.
func (s *seen) Wants() []string { return nil }

// Open returns 0: nothing waits here.
func (s *seen) Open() int { return 0 }

// Counts returns what was counted.
func (s *seen) Counts() map[string]int64 { return s.counts }

// Changes returns the keys that have come, eight bytes each: nothing here ever changes or goes.
func (s *seen) Changes(all bool, size int) (chunks [][]byte) {
	keys := s.fresh
	if all {
		keys = make([]uint64, 0, len(s.keys))
		for key := range s.keys {
			keys = append(keys, key)
		}
	}
	for len(keys) > 0 {
		n := min(len(keys), max(size/8, 1))
		chunk := make([]byte, 0, 8*n)
		for _, key := range keys[:n] {
			chunk = binary.LittleEndian.AppendUint64(chunk, key)
		}
		chunks, keys = append(chunks, chunk), keys[n:]
	}
	s.fresh = s.fresh[:0]
	return chunks
}

// Load takes in keys.
func (s *seen) Load(chunk []byte) error {
	if len(chunk)%8 != 0 {
		return fmt.Errorf("crawl: %d bytes of keys", len(chunk))
	}
	for ; len(chunk) > 0; chunk = chunk[8:] {
		s.keys[binary.LittleEndian.Uint64(chunk)] = struct{}{}
	}
	return nil
}

// hostOf is weburl.Host, which cuts the host out of a canonical URL.
func hostOf(url string) string { return weburl.Host(url) }
