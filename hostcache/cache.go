package hostcache

import (
	"errors"
	"hash/maphash"
	"iter"
	"math/bits"
	"sync"
	"time"
)

// The values that zero fields of [Options] stand for.
const (
	DefaultMaxBytes    = 64 << 20
	DefaultTTL         = time.Hour
	DefaultNegativeTTL = 5 * time.Minute
)

// ErrNegative says that a host is known to have no value. A [Loader] returns it, perhaps wrapped,
// to have that remembered.
var ErrNegative = errors.New("hostcache: host has no value")

// Options sizes a [Cache]. The zero Options holds about a million small values for an hour each.
type Options struct {
	// MaxBytes bounds the memory of the entries, without what their values point to. Some entries
	// are evicted for each new one when it is reached. What lies between the blocks of memory
	// comes on top, mostly less than a fifth. 0 means DefaultMaxBytes, negative means that nothing is
	// evicted.
	MaxBytes int

	// TTL is how long a value lives for which no ttl is given.
	// 0 means DefaultTTL, negative means forever.
	TTL time.Duration

	// NegativeTTL is the same for negative entries.
	// 0 means DefaultNegativeTTL, negative means that they are not kept.
	NegativeTTL time.Duration
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.NegativeTTL == 0 {
		o.NegativeTTL = DefaultNegativeTTL
	}
	return o
}

// A Cache keeps values of type V for hosts, for a time, in bounded memory. What [Trie] says about
// the type V holds for it too. Host names are compared byte by byte: spell a host in one way. Its
// methods are safe for concurrent use.
//
// Inside, "www.example.com" is "com.example.www", so that the hosts of a domain lie together and
// share their beginning. An entry takes six bytes more than in a Trie: for the time when it
// expires, in milliseconds, rounded up, and for what the eviction needs to know.
type Cache[V any] struct {
	options Options
	epoch   time.Time // times are kept as milliseconds since then
	seed    maphash.Seed
	shards  []shard[V] // a power of two
}

// A shard is a cache for those hosts whose hash begins with its number.
type shard[V any] struct {
	mu      sync.Mutex
	tree    tree
	store   store[V]
	clock   hand
	broom   hand
	writes  uint
	budget  int // bytes, negative if there is none
	flights map[string]*flight[V]
	counts  Stats // without the sizes
	_       [64]byte
}

const (
	maxShards     = 16
	minShardBytes = 1 << 20
)

// New returns an empty Cache. It keeps no goroutine running, so it needs no Close.
func New[V any](o Options) *Cache[V] {
	o = o.withDefaults()
	count := maxShards
	if o.MaxBytes > 0 {
		count = min(max(o.MaxBytes/minShardBytes, 1), maxShards)
		count = 1 << (bits.Len(uint(count)) - 1)
	}
	c := &Cache[V]{
		options: o,
		epoch:   time.Now(),
		seed:    maphash.MakeSeed(),
		shards:  make([]shard[V], count),
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.store = newStore[V]()
		s.tree = newTree(s.store.width() + metaSize)
		s.budget = o.MaxBytes
		if s.budget > 0 {
			s.budget /= count
		}
		s.flights = make(map[string]*flight[V])
	}
	return c
}

func (c *Cache[V]) shard(host string) *shard[V] {
	return &c.shards[maphash.String(c.seed, host)%uint64(len(c.shards))]
}

// Get returns the value of a host, and whether it has one: a negative entry is none.
func (c *Cache[V]) Get(host string) (v V, found bool) {
	e, known := c.Lookup(host)
	if !known || e.Negative {
		return v, false
	}
	return e.Value, true
}

// An Entry is what a [Cache] knows about a host.
type Entry[V any] struct {
	Value    V
	Negative bool      // the host is known to have no value
	Expires  time.Time // zero if it never does

	flags byte // of the meta, less the credit
}

// Lookup returns what is known about a host, and whether anything is.
func (c *Cache[V]) Lookup(host string) (e Entry[V], known bool) {
	var buf [keyBuffer]byte
	key := appendReversed(buf[:0], host)
	s := c.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.lookup(s, key)
}

// lookup requires that s.mu is held.
func (c *Cache[V]) lookup(s *shard[V], key []byte) (e Entry[V], known bool) {
	b := s.tree.get(key)
	if b == nil {
		s.counts.Misses++
		return e, false
	}
	m := metaOf(b)
	if m.expired(c.now()) {
		s.drop(key, b)
		s.counts.Expired++
		s.counts.Misses++
		return e, false
	}
	m.use()
	s.counts.Hits++
	return c.entry(s, b), true
}

// entry requires that s.mu is held.
func (c *Cache[V]) entry(s *shard[V], b []byte) Entry[V] {
	m := metaOf(b)
	e := Entry[V]{Value: s.store.load(b), Negative: m.negative(), flags: m[5] &^ creditMask}
	if at := m.expires(); at != never {
		e.Expires = c.epoch.Add(time.Duration(at) * time.Millisecond)
	}
	return e
}

// Set gives a host a value for a time; a ttl of 0 means Options.TTL, a negative one that the host
// is forgotten. It also looks for expired entries among a few others, so that a cache that is
// written to does not fill up with them.
func (c *Cache[V]) Set(host string, v V, ttl time.Duration) {
	c.keep(host, v, ttl, 0)
}

// keep is Set of a value that took so long to get.
func (c *Cache[V]) keep(host string, v V, ttl, took time.Duration) {
	if ttl == 0 {
		ttl = c.options.TTL
		if ttl < 0 {
			ttl = forever
		}
	}
	c.set(host, v, false, ttl, took)
}

// SetNegative remembers that a host has no value, for a time; a ttl of 0 means Options.NegativeTTL,
// a negative one that the host is forgotten.
func (c *Cache[V]) SetNegative(host string, ttl time.Duration) {
	var none V
	c.setNegative(host, none, ttl, 0)
}

func (c *Cache[V]) setNegative(host string, v V, ttl, took time.Duration) {
	if ttl == 0 {
		ttl = c.options.NegativeTTL
	}
	c.set(host, v, true, ttl, took)
}

func (c *Cache[V]) set(host string, v V, negative bool, ttl, took time.Duration) {
	var buf [keyBuffer]byte
	key := appendReversed(buf[:0], host)
	s := c.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ttl <= 0 {
		s.forget(key, c.now())
		return
	}
	b := s.put(key, v)
	metaOf(b).set(c.deadline(ttl), worthOf(took), negative)
	s.sweep(c.now())
}

// put requires that s.mu is held, and that the meta is set next.
func (s *shard[V]) put(key []byte, v V) (entry []byte) {
	b, added := s.tree.put(key)
	s.store.save(b, v, added)
	return b
}

// Delete forgets what is known about a host, and reports whether anything was.
func (c *Cache[V]) Delete(host string) (deleted bool) {
	var buf [keyBuffer]byte
	key := appendReversed(buf[:0], host)
	s := c.shard(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget(key, c.now())
}

// forget requires that s.mu is held.
func (s *shard[V]) forget(key []byte, now uint64) (known bool) {
	b := s.tree.get(key)
	if b == nil {
		return false
	}
	known = !metaOf(b).expired(now)
	s.drop(key, b)
	return known
}

// drop requires that s.mu is held and that b is the value of the key.
func (s *shard[V]) drop(key, b []byte) {
	s.store.drop(b)
	s.tree.del(key)
}

// bytes requires that s.mu is held.
func (s *shard[V]) bytes() int { return s.tree.bytes() + s.store.bytes() }

// All returns all hosts that have a value, in the order of their reversed labels. Entries may be
// set and deleted meanwhile, as in [Trie.All]. No lock is held while the loop's body runs, and
// nothing counts as used.
func (c *Cache[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for key, e := range c.stored(nil) {
			if !e.Negative && !yield(reversedHost(key), e.Value) {
				return
			}
		}
	}
}

// Under is All for a domain: the host of that name, and then all below it. It costs a search, and
// then what the hosts that it shows cost.
func (c *Cache[V]) Under(domain string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		key := appendReversed(nil, domain)
		s := c.shard(domain)
		s.mu.Lock()
		var e Entry[V]
		b := s.tree.get(key)
		found := b != nil && !metaOf(b).negative() && !metaOf(b).expired(c.now())
		if found {
			e = c.entry(s, b)
		}
		s.mu.Unlock()
		if found && !yield(domain, e.Value) {
			return
		}
		for key, e := range c.stored(append(key, '.')) {
			if !e.Negative && !yield(reversedHost(key), e.Value) {
				return
			}
		}
	}
}

// stored returns the entries whose keys have a prefix and that have not expired.
func (c *Cache[V]) stored(prefix []byte) iter.Seq2[[]byte, Entry[V]] {
	return func(yield func([]byte, Entry[V]) bool) {
		var all []*stream[Entry[V]]
		for i := range c.shards {
			s := &c.shards[i]
			decode := func(b []byte) Entry[V] { return c.entry(s, b) }
			all = append(all, newStream(&s.tree, prefix, decode, s.mu.Lock, s.mu.Unlock))
		}
		for key, e := range merge(all) {
			expired := !e.Expires.IsZero() && !time.Now().Before(e.Expires)
			if !expired && !yield(key, e) {
				return
			}
		}
	}
}

// Len returns the number of entries: also negative ones, and expired ones not yet dropped.
func (c *Cache[V]) Len() int { return c.Stats().Entries }

// Stats describes a [Cache]. The counts are those since New.
type Stats struct {
	Entries  int // negative and expired ones too
	Bytes    int // that the entries take, without what their values point to
	Reserved int // that are held: Bytes and what is free for later entries
	InFlight int // loads that are under way

	Hits    uint64 // lookups that found an entry, a negative one too
	Misses  uint64 // lookups that did not
	Loads   uint64 // calls of a Loader
	Evicted uint64 // entries dropped to keep to Options.MaxBytes
	Expired uint64 // entries dropped since their time was over
}

// Stats adds up the shards one by one: it is exact when nothing is written meanwhile.
func (c *Cache[V]) Stats() (total Stats) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		total.Entries += s.tree.count
		total.Bytes += s.bytes()
		total.Reserved += s.tree.reserved() + s.store.reserved()
		total.InFlight += len(s.flights)
		total.Hits += s.counts.Hits
		total.Misses += s.counts.Misses
		total.Loads += s.counts.Loads
		total.Evicted += s.counts.Evicted
		total.Expired += s.counts.Expired
		s.mu.Unlock()
	}
	return total
}

// keyBuffer holds any host name that DNS allows.
const keyBuffer = 256

// appendReversed appends the labels of a host in reverse order. Whatever the host, the same applied
// to the result gives the host.
func appendReversed[S string | []byte](to []byte, host S) []byte {
	end := len(host)
	for i := end - 1; i >= 0; i-- {
		if host[i] == '.' {
			to = append(append(to, host[i+1:end]...), '.')
			end = i
		}
	}
	return append(to, host[:end]...)
}

func reversedHost(key []byte) string {
	var buf [keyBuffer]byte
	return string(appendReversed(buf[:0], key))
}
