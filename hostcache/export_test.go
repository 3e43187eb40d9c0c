package hostcache

import (
	"bytes"
	"io"
	"iter"
	"time"
	"unsafe"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// SetClock does to a Cache what setting the wall clock forward does: the time of its making is then
// another one, by that clock alone. The seconds of a time.Time with both clocks begin at bit 30.
func (c *Cache[V]) SetClock(forward time.Duration) {
	*(*uint64)(unsafe.Pointer(&c.epoch)) -= uint64(forward/time.Second) << 30
}

// Read is Open of what is in a file.
func Read[V any](r io.Reader, o Options) (c *Cache[V], err error) {
	c = New[V](o)
	if c.codec, err = newCodec[V](); err != nil {
		return nil, err
	}
	return c, c.read(r)
}

// SaveIn saves a cache in another directory.
func (c *Cache[V]) SaveIn(dir vfs.FS, name string) (err error) {
	if c.codec, err = newCodec[V](); err != nil {
		return err
	}
	c.file, c.dir = "/no/such/directory/"+name, func(string) vfs.FS { return dir }
	return c.Save()
}

// Forge returns a file with right checksums, whose values have a type.
func Forge(layout string, entries []byte) []byte {
	var file bytes.Buffer
	w := durable.NewStreamWriter(&file, fileMagic)
	w.Words(0)
	w.Uvarint(uint64(len(layout)))
	w.Buf = append(append(w.Buf, layout...), entries...)
	_, _ = w.Close()
	return file.Bytes()
}

// An Entry is what a Cache knows about a host.
type Entry[V any] struct {
	Value    V         `json:",omitzero"`
	Negative bool      `json:",omitzero"`
	Expires  time.Time `json:",omitzero"`
}

// Lookup returns the entry of a host.
func (c *Cache[V]) Lookup(host string) (Entry[V], bool) {
	s, known := c.find(host)
	if !known {
		return Entry[V]{}, false
	}
	return s.told(c.zero()), true
}

func (e *slot[V]) told(zero int64) Entry[V] {
	told := Entry[V]{Value: e.value, Negative: e.negative()}
	if at := e.expires(); at != never {
		told.Expires = time.UnixMilli(zero + int64(at)).UTC()
	}
	return told
}

// All returns all entries, the negative ones too.
func (c *Cache[V]) All() iter.Seq2[string, Entry[V]] {
	return func(yield func(string, Entry[V]) bool) {
		for host, e := range c.under("") {
			if !yield(host, e.told(c.zero())) {
				return
			}
		}
	}
}

// SetNegative is Set for a host without a value.
func (c *Cache[V]) SetNegative(host string, ttl time.Duration) {
	var none V
	c.set(host, none, ttl, true, nil)
}

// Delete removes an entry, and reports whether there was one.
func (c *Cache[V]) Delete(host string) (deleted bool) {
	s := c.shard(host)
	s.mu.Lock()
	e, known := s.trie.Get(reversed(nil, host))
	deleted = known && !e.expired(c.now())
	s.mu.Unlock()
	var none V
	c.Set(host, none, 0)
	return deleted
}
