package hostcache

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
)

var (
	ErrCorrupt = durable.ErrCorrupt // wrapped by every [CorruptError]
	ErrVersion = durable.ErrVersion // sound, but written by another version of this package
)

// A CorruptError says where a file differs from what [Cache.Save] writes for this type of values.
// Remove the file, or save over it. It unwraps to [ErrCorrupt].
type CorruptError struct {
	File   string
	Offset int64 // of the damaged piece, in bytes
	Reason string
}

// Error returns all fields.
func (e *CorruptError) Error() string { return (*durable.CorruptError)(e).Error() }

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// Open returns a Cache with the entries that [Cache.Save] wrote to a file, or an empty one if there
// is no such file. Entries that have expired, or do not fit into Options.MaxBytes, are left out.
//
// If the file is damaged, or has values of another type, the error is a [CorruptError]. The Cache
// is usable even then: it has the entries before the damage, and Save replaces the file. If the type
// cannot decode a value, only that entry is missing. With any other error, such as [ErrVersion], the
// Cache is nil. Another type is one of another name, without the path of its package, or of other
// fields if its size is fixed.
//
// The type V must have the methods AppendBinary or MarshalBinary, and UnmarshalBinary, or be a
// string, or have a fixed size as in encoding/binary. A struct has the methods of a type that it embeds, which
// know nothing of its other fields: give such a field a name, or the struct methods of its own.
func Open[V any](file string, o Options) (*Cache[V], error) {
	c := New[V](o)
	var err error
	if c.codec, err = newCodec[V](); err != nil {
		return nil, err
	}
	if file == "" {
		return nil, errors.New("hostcache: open: no file name given")
	}
	if c.file, err = filepath.Abs(file); err != nil {
		return nil, fmt.Errorf("hostcache: open: %w", err)
	}
	durable.RemoveStale(c.file)
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hostcache: open: %w", err)
	}
	defer f.Close()
	if err = c.read(f); err == nil {
		return c, nil
	}
	err = fmt.Errorf("hostcache: open: %w", err)
	if errors.Is(err, ErrCorrupt) {
		return c, err
	}
	return nil, err
}

// Save writes all entries that have not expired to the file that was given to [Open]. The new file
// replaces the old one when it is complete and on disk, and keeps its mode. A symbolic link to a file
// stays, and several processes may save to one file. Entries that change during the call are saved in their old
// or in their new state.
//
// A value that cannot be encoded, or has more than 32 MiB, is left out. The other entries are saved, and
// the error names the host.
func (c *Cache[V]) Save() error {
	if c.file == "" {
		return errors.New("hostcache: save: the cache has no file: make it with Open, not with New")
	}
	c.saves.Lock()
	defer c.saves.Unlock()
	var omitted error // the first value that was
	count := 0
	omit := func(host string, err error) {
		if count++; count == 1 {
			omitted = fmt.Errorf("value of %s: %w", host, err)
		}
	}
	err := durable.WriteFileIn(c.dir, c.file, func(to io.Writer) error { return c.write(to, omit) })
	if count > 1 {
		omitted = fmt.Errorf("all but %d entries: %w", count, omitted)
	}
	if err = cmp.Or(err, omitted); err != nil {
		return fmt.Errorf("hostcache: save: %w", err)
	}
	return nil
}

// The format is described in FORMAT.md. These constants are on disk: do not change them, but add a
// version.
const (
	fileMagic = "SPNHOST3"
	oldMagic  = "SPHC\x02\x00" // of version 2

	// These bound the memory that reading takes.
	maxValue  = 32 << 20
	maxLayout = 1 << 10

	// lastTime is beyond the time of all entries, in milliseconds. Sums of such times do not overflow.
	lastTime = 1 << 50
)

// write writes the file.
func (c *Cache[V]) write(to io.Writer, omit func(host string, err error)) error {
	w := durable.NewStreamWriter(to, fileMagic)
	w.Words(uint64(time.Now().UnixMilli()))
	w.Uvarint(uint64(len(c.codec.layout)))
	w.Buf = append(w.Buf, c.codec.layout...)
	var value []byte
	zero := c.zero()
	for host, e := range c.under("") {
		if !e.negative() {
			var err error
			if value, err = c.codec.append(value[:0], e.value); err == nil && len(value) > maxValue {
				err = fmt.Errorf("%d bytes are too many", len(value))
			}
			if err != nil {
				omit(host, err)
				continue
			}
		}
		w.Buf = append(append(w.Buf, byte(len(host))), host...)
		w.Uvarint(e.onDisk(zero))
		if !e.negative() {
			w.Uvarint(uint64(len(value)))
			if _, err := w.Write(value); err != nil {
				return err
			}
		}
	}
	_, err := w.Close()
	return err
}

// onDisk returns the milliseconds of Unix time at which an entry expires, 0 if it never does, times two,
// plus one if it is negative. The epoch is at zero.
func (e *slot[V]) onDisk(zero int64) (n uint64) {
	if at := e.expires(); at != never {
		n = uint64(zero+int64(at)) << 1
	}
	if e.negative() {
		n |= 1
	}
	return n
}

// read reads the file.
func (c *Cache[V]) read(from io.Reader) error {
	r := durable.NewStreamReader(from, fileMagic, oldMagic)
	saved := r.Word()
	if saved > lastTime {
		r.Fail("it was saved at %d", saved)
	}
	layout := make([]byte, r.Uvarint(maxLayout, "bytes of a type's name"))
	r.Fill(layout)
	if string(layout) != c.codec.layout {
		r.Fail("it has values of type %s, not %s", layout, c.codec.layout)
	}
	// If the clock was ahead when the file was written, its times are shifted back.
	zero := c.zero() + max(int64(saved)-time.Now().UnixMilli(), 0)
	var space []byte
	var undecoded error // of the first value
	for r.More() {
		var err error
		if space, err = c.readEntry(r, zero, space[:0]); undecoded == nil {
			undecoded = err
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if n, err := from.Read(make([]byte, 1)); n > 0 {
		r.Fail("something follows the end")
	} else if err != io.EOF {
		return err
	}
	return cmp.Or(r.Err, undecoded)
}

// readEntry reads and restores an entry, where zero is the epoch by the clock of the file. The value's
// bytes are appended to space, which is returned for the next one. The error is that of a value which its
// type cannot decode: it has a length, so the entries after it can be read.
func (c *Cache[V]) readEntry(r *durable.StreamReader, zero int64, space []byte) ([]byte, error) {
	begin := r.Offset()
	var buf [math.MaxUint8]byte
	name := buf[:r.Byte()]
	r.Fill(name)
	host := string(name)
	expiry := r.Uvarint(lastTime<<1|1, "a time")
	expires := uint64(never)
	if expiry > 1 {
		expires = uint64(max(int64(expiry>>1)-zero, 0))
	}
	var value V
	var err error
	negative := expiry&1 != 0
	if !negative {
		space = r.Append(space, int(r.Uvarint(maxValue, "bytes of a value")))
		if r.Err == nil {
			err = c.codec.decode(space, &value)
		}
	}
	switch {
	case r.Err != nil:
	case len(host) > MaxHost:
		r.Fail("host of %d bytes, more than %d", len(host), MaxHost)
	case expiry > 1 && expires > never/2:
		r.Fail("%s expires in more than a thousand years", host)
	case err != nil:
		return space, durable.Corrupt(c.file, begin, fmt.Sprintf("value of %s: %v", host, err))
	default:
		c.restore(host, newSlot(value, expires, negative))
	}
	return space, nil
}
