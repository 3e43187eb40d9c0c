package hostcache

import (
	"errors"
	"hash/maphash"
	"iter"
	"math"
	"math/bits"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/spinneret-go/spinneret/hostcache/hattrie"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

const (
	// DefaultMaxBytes is the default of [Options.MaxBytes].
	DefaultMaxBytes = 64 << 20

	// Forever is the ttl of a value that is kept until it is evicted or deleted.
	Forever time.Duration = math.MaxInt64

	// MaxHost is the length of the longest host name. Longer ones are never stored.
	MaxHost = 253
)

var (
	// ErrNegative means that a host has no value. A [Loader] returns it, possibly wrapped, to have that
	// cached.
	ErrNegative = errors.New("hostcache: host has no value")

	// ErrStored means that the value that a [Loader] returns with it is cached. The error of [Cache.Load] does
	// not wrap it.
	ErrStored = errors.New("hostcache: a record of the failure is stored")
)

// Options configures a [Cache]. The zero Options holds about a million small values.
type Options struct {
	// MaxBytes bounds the memory of the entries, without what their values point to. When it is
	// reached, entries that were not used recently make room for new ones. 0 means DefaultMaxBytes,
	// negative means unlimited. The minimum is 256 KiB.
	MaxBytes int
}

// A Cache stores a value of type V per host, for a limited time. Names are compared byte by byte,
// so spell each host in one way. Its methods are safe for concurrent use. Use [New] or [Open]: a Cache
// has no zero value.
type Cache[V any] struct {
	epoch  time.Time // expiry times count from here
	seed   maphash.Seed
	shards []shard[V] // a power of two

	file  string // "" unless the cache is from Open
	dir   func(path string) vfs.FS
	saves sync.Mutex
	codec codec[V]
}

// A shard is a cache for the hosts whose hash selects it.
type shard[V any] struct {
	mu      sync.Mutex
	trie    hattrie.Trie[slot[V]] // by reversed labels
	budget  int                   // bytes
	hand    string                // where the eviction continues
	broom   string                // where the removal of expired entries continues
	writes  int
	flights map[string]*flight[V]
	counts  Stats // without the sizes
	_       [64]byte
}

// A slot is what the trie stores for a host. Meta has, from the highest bit on, the expiry in
// milliseconds since the epoch, whether the entry is negative, and whether it was used since the
// eviction last passed it.
type slot[V any] struct {
	value V
	meta  [6]byte
}

const (
	usedBit     = 1
	negativeBit = 2
	expiryShift = 2
	never       = 1<<46 - 1 // the last millisecond, after two thousand years

	maxShards     = 16
	minShardBytes = 1 << 20
	minBudget     = 256 << 10
)

func newSlot[V any](v V, expires uint64, negative bool) (e slot[V]) {
	e.value = v
	bits := expires << expiryShift
	if negative {
		bits |= negativeBit
	}
	for i := range e.meta {
		e.meta[i] = byte(bits >> (8 * i))
	}
	return e
}

func (e *slot[V]) expires() (bits uint64) {
	for i, b := range e.meta {
		bits |= uint64(b) << (8 * i)
	}
	return bits >> expiryShift
}

func (e *slot[V]) negative() bool         { return e.meta[0]&negativeBit != 0 }
func (e *slot[V]) used() bool             { return e.meta[0]&usedBit != 0 }
func (e *slot[V]) expired(at uint64) bool { x := e.expires(); return x != never && x <= at }

// New returns an empty Cache. It keeps no goroutine running, so it needs no Close.
func New[V any](o Options) *Cache[V] {
	count, budget := maxShards, math.MaxInt
	if o.MaxBytes >= 0 {
		if o.MaxBytes == 0 {
			o.MaxBytes = DefaultMaxBytes
		}
		bytes := max(o.MaxBytes, minBudget)
		count = min(max(bytes/minShardBytes, 1), maxShards)
		count = 1 << (bits.Len(uint(count)) - 1)
		budget = bytes / count
	}
	now := time.Now()
	c := &Cache[V]{
		dir:    func(path string) vfs.FS { return vfs.OS(path) },
		epoch:  now.Add(-time.Duration(now.Nanosecond()) % time.Millisecond), // whole milliseconds
		seed:   maphash.MakeSeed(),
		shards: make([]shard[V], count),
	}
	for i := range c.shards {
		c.shards[i].budget = budget
		c.shards[i].flights = map[string]*flight[V]{}
	}
	return c
}

func (c *Cache[V]) shard(host string) *shard[V] {
	return &c.shards[maphash.String(c.seed, host)%uint64(len(c.shards))]
}

// now returns the milliseconds since the epoch, rounded down.
func (c *Cache[V]) now() uint64 { return uint64(time.Since(c.epoch) / time.Millisecond) }

// deadline returns the expiry of an entry with a ttl, rounded up.
func (c *Cache[V]) deadline(ttl time.Duration) uint64 {
	since := time.Since(c.epoch)
	if ttl > Forever-since-time.Millisecond {
		return never
	}
	return min(uint64((since+ttl+time.Millisecond-1)/time.Millisecond), never)
}

// zero returns the epoch in milliseconds of Unix time, by the current wall clock. Expiry follows
// the monotonic clock, so adjusting the wall clock does not change when entries expire.
func (c *Cache[V]) zero() int64 {
	now := time.Now()
	return now.Add(-now.Sub(c.epoch)).Round(time.Millisecond).UnixMilli()
}

// Get returns the value of a host, and whether it has one. A negative entry has none.
func (c *Cache[V]) Get(host string) (v V, found bool) {
	e, known := c.find(host)
	return e.value, known && !e.negative()
}

func (c *Cache[V]) find(host string) (e slot[V], known bool) {
	if len(host) > MaxHost {
		return e, false
	}
	var buf [MaxHost]byte
	s := c.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.lookup(s, reversed(buf[:0], host))
}

// lookup requires that s.mu is held.
func (c *Cache[V]) lookup(s *shard[V], key string) (e slot[V], known bool) {
	e, known = s.trie.Get(key)
	if known && e.expired(c.now()) {
		s.trie.Delete(key)
		s.counts.Expired++
		known = false
	}
	if !known {
		s.counts.Misses++
		return slot[V]{}, false
	}
	if s.budget < math.MaxInt && !e.used() {
		e.meta[0] |= usedBit
		s.trie.Set(key, e)
	}
	s.counts.Hits++
	return e, true
}

// Set stores the value of a host for a time, rounded up to milliseconds. If the ttl is zero or negative the
// value is not stored, and the host's previous entry is dropped.
func (c *Cache[V]) Set(host string, v V, ttl time.Duration) { c.set(host, v, ttl, false, nil) }

// set is Set if by is nil. Otherwise the value comes from that flight, and is stored unless the
// flight was abandoned or superseded by another call.
func (c *Cache[V]) set(host string, v V, ttl time.Duration, negative bool, by *flight[V]) {
	if len(host) > MaxHost {
		return
	}
	var buf [MaxHost]byte
	key := reversed(buf[:0], host)
	s := c.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	if by != nil && s.flights[host] != by {
		return
	}
	delete(s.flights, host)
	if ttl <= 0 {
		s.trie.Delete(key)
		return
	}
	s.put(key, newSlot(v, c.deadline(ttl), negative), c.now())
}

// Drop removes the entry of a host if stale reports that of its value. Unlike Set, it does not end a
// call of a loader, so of many callers who drop the same value, one loads a new one and all get it.
// stale must not use the Cache.
func (c *Cache[V]) Drop(host string, stale func(V) bool) {
	if len(host) > MaxHost {
		return
	}
	var buf [MaxHost]byte
	key := reversed(buf[:0], host)
	s := c.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.trie.Get(key); found && !e.negative() && stale(e.value) {
		s.trie.Delete(key)
	}
}

// restore adds an entry of a file, unless it has expired.
func (c *Cache[V]) restore(host string, e slot[V]) {
	var buf [MaxHost]byte
	key := reversed(buf[:0], host)
	s := c.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := c.now(); !e.expired(now) {
		s.put(key, e, now)
	}
}

// Under returns the hosts of a domain with their values, in no particular order: the host of that
// name, and all below it; "" means all hosts. Negative entries are left out. The cost depends on
// the number of hosts, not on the size of the cache.
//
// The cache may change during the iteration: an entry that is there all the time is yielded once,
// others at most once. Entries are read a few hundred at a time, so one may expire before it is
// yielded. No lock is held while the loop's body runs, and no entry counts as used.
func (c *Cache[V]) Under(domain string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for host, e := range c.under(domain) {
			if !e.negative() && !yield(host, e.value) {
				return
			}
		}
	}
}

// under iterates over a domain, "" for all.
func (c *Cache[V]) under(domain string) iter.Seq2[string, slot[V]] {
	return func(yield func(string, slot[V]) bool) {
		key := reversed(nil, domain)
		w := walk[V]{cache: c}
		for i := range c.shards {
			s := &c.shards[i]
			if domain == "" {
				if !w.over(s, "", yield) {
					return
				}
				continue
			}
			w.one(s, key)
			if !w.yield(yield) || !w.over(s, key+".", yield) {
				return
			}
		}
	}
}

// A walk copies entries in batches, so that no lock is held for long.
type walk[V any] struct {
	cache *Cache[V]
	keys  []string
	slots []slot[V]
}

const batch = 512

// one makes a batch of a single entry, if it exists.
func (w *walk[V]) one(s *shard[V], key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.trie.Get(key); found {
		w.keys, w.slots = append(w.keys, key), append(w.slots, e)
	}
}

// over yields the entries of a shard whose keys have a prefix.
func (w *walk[V]) over(s *shard[V], prefix string, yield func(string, slot[V]) bool) bool {
	for from, more := prefix, true; more; {
		s.mu.Lock()
		for key, e := range s.trie.From(prefix, from) {
			w.keys, w.slots = append(w.keys, key), append(w.slots, e)
			if len(w.keys) == batch {
				break
			}
		}
		s.mu.Unlock()
		if more = len(w.keys) == batch; more {
			from = w.keys[batch-1] + "\x00"
		}
		if !w.yield(yield) {
			return false
		}
	}
	return true
}

// yield yields the batch, and empties it.
func (w *walk[V]) yield(yield func(string, slot[V]) bool) bool {
	now := w.cache.now()
	var buf [MaxHost]byte
	for i := range w.slots {
		e := w.slots[i]
		if !e.expired(now) && !yield(strings.Clone(reversed(buf[:0], w.keys[i])), e) {
			return false
		}
	}
	clear(w.slots) // their values may have pointers
	w.keys, w.slots = w.keys[:0], w.slots[:0]
	return true
}

// Len returns the number of entries, including negative ones and expired ones that were not dropped
// yet.
func (c *Cache[V]) Len() int { return c.Stats().Entries }

// Stats describes a [Cache]. The counters start at New.
type Stats struct {
	Entries  int // including negative and expired ones
	Bytes    int // held for entries, without what their values point to
	InFlight int // loaders that are running, including those whose callers have left

	Hits    uint64 // lookups that found an entry, possibly a negative one
	Misses  uint64 // lookups that did not
	Loads   uint64 // calls of a Loader
	Evicted uint64 // entries dropped to stay within Options.MaxBytes
	Expired uint64 // entries dropped because their time was over
}

// Stats adds up the shards one by one: it is exact if nothing is written at the same time.
func (c *Cache[V]) Stats() (total Stats) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		_, reserved := s.trie.Memory()
		total.Entries += s.trie.Len()
		total.Bytes += reserved
		total.InFlight += s.counts.InFlight
		total.Hits += s.counts.Hits
		total.Misses += s.counts.Misses
		total.Loads += s.counts.Loads
		total.Evicted += s.counts.Evicted
		total.Expired += s.counts.Expired
		s.mu.Unlock()
	}
	return total
}

// reversed returns a host with its labels in reverse order, or the other way round. The result is in
// buf, and valid until buf is written to again.
func reversed(buf []byte, host string) string {
	buf = hattrie.AppendReverse(buf, host)
	return unsafe.String(unsafe.SliceData(buf), len(buf))
}
