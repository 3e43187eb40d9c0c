package hostcache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

var (
	// ErrCorrupt is wrapped by every [CorruptError].
	ErrCorrupt = errors.New("hostcache: corrupt snapshot")

	// ErrCodec says that the values of a snapshot cannot be read, or those of a Cache not written,
	// with the Codec that was given.
	ErrCodec = errors.New("hostcache: codec does not fit the values")
)

// A CorruptError says where a file is not what [Cache.Save] wrote.
type CorruptError struct {
	File   string
	Offset int64
	Reason string
}

// Error tells all of it.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("hostcache: %s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns [ErrCorrupt].
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// A Codec turns values into bytes and back, for snapshots. It must take the zero V, too, which most
// negative entries have. The zero Codec is for values without pointers, and takes the bytes that
// they are in memory: such a file is for machines of the same byte order, and for the same type V,
// of which only the size is checked.
type Codec[V any] struct {
	Append func(to []byte, v V) []byte
	Decode func(b []byte) (V, error) // must not keep b
}

// header returns what says in a file how its values are written.
func (c Codec[V]) header() (h fileHeader, err error) {
	switch {
	case c.Append != nil && c.Decode != nil:
		h.kind = kindCodec
	case c.Append != nil || c.Decode != nil:
		return h, fmt.Errorf("%w: Append and Decode need each other", ErrCodec)
	case !isPlain[V]():
		return h, fmt.Errorf("%w: values with pointers need Append and Decode", ErrCodec)
	default:
		h = fileHeader{kind: kindRawLittle, width: uint32(sizeOf[V]())}
		if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
			h.kind = kindRawBig
		}
	}
	return h, nil
}

func (c Codec[V]) encode(to []byte, v V) []byte {
	if c.Append != nil {
		return c.Append(to, v)
	}
	return append(to, memory(&v)...)
}

func (c Codec[V]) decode(b []byte) (v V, err error) {
	if c.Decode != nil {
		return c.Decode(b)
	}
	copy(memory(&v), b)
	return v, nil
}

// Save writes all entries that have not expired to a file, which takes the place of one of that
// name when it is complete and on disk, not before. The Cache may be used meanwhile: what is
// changed then is in the file in its old or in its new state. A host and its value of more than
// 32 MiB together are an error.
func (c *Cache[V]) Save(file string, codec Codec[V]) (err error) {
	h, err := codec.header()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.tmp")
	if err != nil {
		return fmt.Errorf("hostcache: save: %w", err)
	}
	renamed := false
	defer func() {
		// A codec that panics comes here too, and leaves no more behind than one that fails.
		if !renamed {
			_ = f.Close()
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	w := bufio.NewWriterSize(f, blockSize)
	err = c.write(w, h, codec)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("hostcache: save: %w", err)
	}
	renamed = true
	syncFolder(filepath.Dir(file))
	return nil
}

// syncFolder makes a renaming outlive a power failure. Where folders cannot be synced, nothing else
// can be done for it, so it reports nothing.
func syncFolder(name string) {
	if d, err := os.Open(name); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

func (c *Cache[V]) write(w io.Writer, h fileHeader, codec Codec[V]) error {
	now := time.Now()
	h.saved = now.UnixMilli()
	e, err := newEncoder(w, h)
	if err != nil {
		return err
	}
	var value []byte
	for key, entry := range c.stored(nil) {
		value = codec.encode(value[:0], entry.Value)
		r := record{key: key, flags: entry.flags, value: value}
		if !entry.Expires.IsZero() {
			// By the clock that nobody sets, from now on by the wall clock of today.
			r.expires = ceilMilli(now.Add(entry.Expires.Sub(now)))
		}
		if err := e.add(r); err != nil {
			return err
		}
	}
	return e.close()
}

// ceilMilli rounds a time up to milliseconds, as the times when entries expire are.
func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// Open returns a Cache with the entries of a file that [Cache.Save] wrote, as far as they have not
// expired and fit into Options.MaxBytes. It reads the file once, from begin to end, and refuses one
// that is torn or altered with a [CorruptError]. That there is no such file is an error, too.
func Open[V any](file string, codec Codec[V], o Options) (*Cache[V], error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("hostcache: open: %w", err)
	}
	defer f.Close()
	return open(f, file, codec, o)
}

// open is Open for what is in a file of that name.
func open[V any](r io.Reader, file string, codec Codec[V], o Options) (*Cache[V], error) {
	c := New[V](o)
	if err := c.read(bufio.NewReaderSize(r, blockSize), codec); err != nil {
		if corrupt, ok := errors.AsType[*CorruptError](err); ok {
			corrupt.File = file
			return nil, err
		}
		return nil, fmt.Errorf("hostcache: open %s: %w", file, err)
	}
	return c, nil
}

func (c *Cache[V]) read(r io.Reader, codec Codec[V]) error {
	want, err := codec.header()
	if err != nil {
		return err
	}
	d, err := newDecoder(r)
	if err != nil {
		return err
	}
	if d.header.kind != want.kind || d.header.width != want.width {
		return fmt.Errorf("%w: values of %d bytes of kind %d, want %d bytes of kind %d", ErrCodec,
			d.header.width, d.header.kind, want.width, want.kind)
	}
	wall := time.Now()
	return d.all(func(r record) error {
		v, err := codec.decode(r.value)
		if err != nil {
			return fmt.Errorf("hostcache: decode value: %w", err)
		}
		c.restore(r, v, wall)
		return nil
	})
}

// restore puts an entry of a file into the cache.
func (c *Cache[V]) restore(r record, v V, wall time.Time) {
	expires := uint64(never)
	if r.expires != 0 {
		left := time.UnixMilli(r.expires).Sub(wall)
		if left <= 0 {
			return
		}
		expires = c.deadline(left)
	}
	s := c.shard(reversedHost(r.key))
	s.mu.Lock()
	defer s.mu.Unlock()
	m := metaOf(s.put(r.key, v))
	m.set(expires, 0, false)
	m[metaSize-1] = r.flags
	m.use()
	s.sweep(c.now())
}
