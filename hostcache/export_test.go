package hostcache

import (
	"io"
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

// Frames returns a file of some frames with right checksums, as a cache of strings has them.
func Frames(w io.Writer, payloads ...[]byte) error {
	if _, err := io.WriteString(w, fileMagic); err != nil {
		return err
	}
	f := frames{w, durable.Sum([]byte(fileMagic))}
	for _, p := range append(payloads, nil) {
		if err := f.write(p); err != nil {
			return err
		}
	}
	return nil
}
