package hostcache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

var (
	ErrCorrupt = durable.ErrCorrupt // wrapped by every [CorruptError]
	ErrVersion = durable.ErrVersion // sound, but written by another version of this package
)

// A CorruptError says where a file differs from what [Cache.Save] writes for this type of values.
type CorruptError struct {
	File   string
	Offset int64
	Reason string
}

// Error names the file, the offset and the reason, and says what to do.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("hostcache: %s: byte %d: %s; remove the file, or save over it",
		e.File, e.Offset, e.Reason)
}

// Unwrap returns [ErrCorrupt].
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// Open returns a Cache with the entries that [Cache.Save] wrote to a file, or an empty one if there
// is no such file. Entries that have expired, or do not fit into Options.MaxBytes, are left out.
//
// If the file is damaged, or has values of another type, the error is a [CorruptError]. The Cache
// is usable even then: it has the entries before the damage, and Save replaces the file. With any
// other error, such as [ErrVersion], the Cache is nil.
//
// The type V must have the methods AppendBinary or MarshalBinary, and UnmarshalBinary, or be a
// string or a slice of bytes, or have a fixed size as in encoding/binary.
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
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hostcache: open: %w", err)
	}
	defer f.Close()
	err = c.read(bufio.NewReaderSize(f, frameSize))
	if corrupt, ok := errors.AsType[*CorruptError](err); ok {
		corrupt.File = file
		return c, err
	}
	if err != nil {
		return nil, fmt.Errorf("hostcache: open %s: %w", file, err)
	}
	return c, nil
}

// Save writes all entries that have not expired to the file that was given to [Open]. The new file
// replaces the old one when it is complete and on disk, and keeps its mode. Entries that change
// during the call are saved in their old or in their new state.
func (c *Cache[V]) Save() (err error) {
	if c.file == "" {
		return errors.New("hostcache: save: the cache has no file: make it with Open, not with New")
	}
	c.saves.Lock()
	defer c.saves.Unlock()
	// A symbolic link stays; the file that it points to is replaced.
	path, err := filepath.EvalSymlinks(c.file)
	if err != nil {
		path = c.file
	}
	if err := c.replace(c.dir(filepath.Dir(path)), path); err != nil {
		return fmt.Errorf("hostcache: save: %w", err)
	}
	return nil
}

// replace writes the file under another name and renames it. The name differs from call to call, as
// several processes may save to one file.
func (c *Cache[V]) replace(dir vfs.FS, path string) (err error) {
	name := filepath.Base(path)
	temp := fmt.Sprintf("%s.%08x.new", name, rand.Uint32())
	removeStale(filepath.Dir(path), name)
	f, err := dir.Create(temp)
	if err != nil {
		return err
	}
	renamed := false
	defer func() {
		if !renamed { // also if a method of a value panics
			_ = f.Close()
			_ = dir.Remove(temp)
		}
	}()
	if old, statErr := os.Stat(path); statErr == nil {
		err = os.Chmod(filepath.Join(filepath.Dir(path), temp), old.Mode().Perm())
	}
	if err == nil {
		err = c.write(io.NewOffsetWriter(f, 0))
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		return err
	}
	renamed = true
	return dir.Sync()
}

// removeStale removes the temporary files of processes that were killed: those that nobody has
// written to for a while. Errors are ignored, as the next call tries again.
func removeStale(dir, name string) {
	left, _ := filepath.Glob(filepath.Join(dir, globbed(name)+".????????.new"))
	for _, temp := range left {
		if f, err := os.Stat(temp); err == nil && time.Since(f.ModTime()) > staleAfter {
			_ = os.Remove(temp)
		}
	}
}

// staleAfter is longer than a disk stalls.
const staleAfter = time.Minute

// globbed escapes what means something to filepath.Glob, so that a name matches only itself.
func globbed(name string) string {
	return strings.NewReplacer(`\`, `?`, `*`, `?`, `[`, `?`).Replace(name)
}

// The format is described in FORMAT.md. These constants are on disk: do not change them, but add a
// version.
const (
	fileMagic   = fileKind + "\x02\x00" // the version is in the last two bytes
	fileKind    = "SPHC"
	frameHeader = 8

	// maxFrame bounds the memory that reading takes. Frames have about frameSize bytes.
	maxFrame  = 64 << 20
	frameSize = 64 << 10
)

// A frames writes frames to a file. Each has a checksum of the file up to its end, so a lost,
// repeated or moved frame is detected like a modified one.
type frames struct {
	w   io.Writer
	sum uint32
}

func (f *frames) write(payload []byte) error {
	var h [frameHeader]byte
	binary.LittleEndian.PutUint32(h[:], uint32(len(payload)))
	f.sum = durable.SumOn(durable.SumOn(f.sum, h[:4]), payload)
	binary.LittleEndian.PutUint32(h[4:], f.sum)
	_, err1 := f.w.Write(h[:])
	_, err2 := f.w.Write(payload)
	return errors.Join(err1, err2)
}

// write writes the file.
func (c *Cache[V]) write(to io.Writer) error {
	w := bufio.NewWriterSize(to, frameSize)
	_, err := w.WriteString(fileMagic)
	if err != nil {
		return err
	}
	f := frames{w, durable.Sum([]byte(fileMagic))}
	begun := time.Now().UnixMilli()
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(begun)), c.codec.layout...)
	if err := f.write(b); err != nil {
		return err
	}
	var value []byte
	b = b[:0]
	for host, e := range c.under("") {
		value = value[:0]
		if !e.negative {
			if value, err = c.codec.append(value, e.value); err != nil {
				return fmt.Errorf("value of %s: %w", host, err)
			}
		}
		if len(value) > maxFrame/2 {
			return fmt.Errorf("value of %s: %d bytes are too many", host, len(value))
		}
		b = append(append(b, byte(len(host))), host...)
		b = binary.AppendUvarint(b, expiryOnDisk(e.expires, e.negative))
		if !e.negative {
			b = append(binary.AppendUvarint(b, uint64(len(value))), value...)
		}
		if len(b) >= frameSize {
			if err := f.write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	if len(b) > 0 {
		if err := f.write(b); err != nil {
			return err
		}
	}
	return errors.Join(f.write(nil), w.Flush()) // the empty frame marks the end
}

// expiryOnDisk returns the milliseconds of Unix time at which an entry expires, 0 if it never does,
// times two, plus one if it is negative.
func expiryOnDisk(t time.Time, negative bool) (n uint64) {
	if !t.IsZero() {
		n = uint64(t.UnixMilli()) << 1
	}
	if negative {
		n |= 1
	}
	return n
}

// A reader reads frames. Its errors have an offset, but no file yet.
type reader struct {
	r       io.Reader
	offset  int64 // of what is read next
	sum     uint32
	payload []byte
}

func corrupt(at int64, format string, args ...any) error {
	return &CorruptError{Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// fill reads all of b.
func (r *reader) fill(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return corrupt(r.offset+int64(n), "the file ends too early")
	}
	r.offset += int64(n)
	return err
}

// next reads a frame.
func (r *reader) next() error {
	begin := r.offset
	var h [frameHeader]byte
	if err := r.fill(h[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(h[:])
	if length > maxFrame {
		return corrupt(begin, "a frame of %d bytes", length)
	}
	if int(length) > cap(r.payload) {
		r.payload = make([]byte, length)
	}
	r.payload = r.payload[:length]
	if err := r.fill(r.payload); err != nil {
		return err
	}
	r.sum = durable.SumOn(durable.SumOn(r.sum, h[:4]), r.payload)
	if binary.LittleEndian.Uint32(h[4:]) != r.sum {
		return corrupt(begin, "wrong checksum of a frame")
	}
	return nil
}

// read reads the file.
func (c *Cache[V]) read(from io.Reader) error {
	r := reader{r: from}
	magic := make([]byte, len(fileMagic))
	if err := r.fill(magic); err != nil {
		return err
	}
	if string(magic[:len(fileKind)]) != fileKind {
		return corrupt(0, "not a cache")
	}
	r.sum = durable.Sum(magic)
	begin := r.offset
	if err := r.next(); err != nil {
		return err
	}
	if string(magic) != fileMagic { // the checksum was right, so it is sound
		return durable.Version(filepath.Base(c.file), fmt.Sprintf("version %d", binary.LittleEndian.Uint16(magic[len(fileKind):])))
	}
	if len(r.payload) < 8 {
		return corrupt(begin, "the first frame is too short")
	}
	saved := int64(binary.LittleEndian.Uint64(r.payload))
	if layout := string(r.payload[8:]); layout != c.codec.layout {
		return corrupt(begin, "it has values of type %s, not %s", layout, c.codec.layout)
	}
	// If the clock was ahead when the file was written, its times are shifted back.
	ahead := max(saved-time.Now().UnixMilli(), 0)
	for {
		begin = r.offset
		if err := r.next(); err != nil {
			return err
		}
		if len(r.payload) == 0 {
			break
		}
		if err := c.entries(begin+frameHeader, r.payload, ahead); err != nil {
			return err
		}
	}
	switch _, err := io.ReadFull(r.r, make([]byte, 1)); err {
	case io.EOF:
		return nil
	case nil:
		return corrupt(r.offset, "something follows the end")
	default:
		return err
	}
}

// entries restores the entries of a frame that begins at an offset.
func (c *Cache[V]) entries(at int64, payload []byte, ahead int64) error {
	for rest := payload; len(rest) > 0; {
		here := at + int64(len(payload)-len(rest))
		host, rest1, ok1 := cut(rest[1:], uint64(rest[0]))
		expiry, n := binary.Uvarint(rest1)
		if !ok1 || n <= 0 {
			return corrupt(here, "an entry makes no sense")
		}
		rest = rest1[n:]
		e := entry[V]{negative: expiry&1 != 0}
		if !e.negative {
			length, n := binary.Uvarint(rest)
			value, rest2, ok := cut(rest[max(n, 0):], length)
			if n <= 0 || !ok {
				return corrupt(here, "an entry makes no sense")
			}
			if err := c.codec.decode(value, &e.value); err != nil {
				return corrupt(here, "value of %s: %v", host, err)
			}
			rest = rest2
		}
		if expiry > 1 {
			e.expires = time.UnixMilli(int64(expiry>>1) - ahead)
		}
		if err := c.restore(string(host), e); err != nil {
			return corrupt(here, "%v", err)
		}
	}
	return nil
}

// cut removes n bytes from the front.
func cut(b []byte, n uint64) (front, rest []byte, ok bool) {
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}
