package satstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// These constants are on disk. Do not change them; add a version.
const (
	logMagic    = "SATLOG1\n"
	logHeader   = 8 + 8 + checkSize // magic, number, checksum
	groupMagic  = 0x47544153        // "SATG", little endian
	groupHeader = 4 + 4 + 4 + 8 + 8 // magic, checksum, length, place, what was synced
)

func logName(number uint64) string { return fmt.Sprintf("log-%08d", number) }

// An updateLog is where changes go first, in groups. What is in a checkpoint needs no log, so each
// checkpoint begins a new one. The fields of the second part are guarded by Store.mu, the others by
// Store.commitMu.
type updateLog struct {
	file      vfs.File // nil if no log is kept
	number    uint64
	end       int64  // of what was written
	synced    int64  // what a Sync has returned for
	unwritten []byte // changes that could not be written and come before others
	group     []byte // for the next group

	pending []byte // changes that no group has yet
	spare   []byte // for the next pending
	coder   coder
}

// A coder shortens changes by what the last one was about. It begins anew with each log.
type coder struct {
	bucket uint64
	record uint64
}

// createLog makes an empty log.
func createLog(fs vfs.FS, number uint64, sync bool) (*updateLog, error) {
	l := &updateLog{number: number, end: logHeader, synced: logHeader}
	var err error
	if l.file, err = fs.Create(logName(number)); err != nil {
		return nil, fmt.Errorf("satstore: create log: %w", err)
	}
	_, err = l.file.WriteAt(logHead(number), 0)
	if err == nil && sync {
		err = l.file.Sync()
	}
	if err != nil {
		_ = l.file.Close() // the first error says more
		return nil, fmt.Errorf("satstore: write log: %w", err)
	}
	return l, nil
}

func logHead(number uint64) []byte {
	b := append(make([]byte, 0, logHeader), logMagic...)
	b = binary.LittleEndian.AppendUint64(b, number)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// frame makes a group of changes.
func (l *updateLog) frame(dst, changes []byte) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, groupMagic)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(changes)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(l.end))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(l.synced))
	dst = append(dst, changes...)
	binary.LittleEndian.PutUint32(dst[start+4:], groupSum(l.number, dst[start:]))
	return dst
}

// groupSum includes which log this is, so that no group of an older file is taken for its own.
func groupSum(number uint64, group []byte) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], number)
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, group[8:])
}

// write writes a group at the end. It does not matter what a failed attempt left there.
func (l *updateLog) write(group []byte) error {
	if _, err := l.file.WriteAt(group, l.end); err != nil {
		return fmt.Errorf("satstore: write log: %w", err)
	}
	l.end += int64(len(group))
	return nil
}

// A logReader gives the groups of a log that was left behind.
type logReader struct {
	name   string
	number uint64
	b      []byte
	at     int
}

func openLog(fs vfs.FS, number uint64) (*logReader, error) {
	r := &logReader{name: logName(number), number: number}
	f, err := fs.Open(r.name)
	if err != nil {
		return nil, fmt.Errorf("satstore: open log: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("satstore: read log: %w", err)
	}
	r.b = make([]byte, size)
	if err := readFull(f, r.name, r.b, 0); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(r.b, logHead(number)) {
		return nil, &CorruptError{r.name, 0, "no log, or of another version"}
	}
	r.at = logHeader
	return r, nil
}

// next returns the changes of the next group, or nil at the end. A group that is not whole is the
// end, as a crash leaves it, unless a later one says that it had been synced.
func (r *logReader) next() ([]byte, error) {
	changes, size := r.group(r.at)
	if size > 0 {
		r.at += size
		return changes, nil
	}
	for at := r.at; ; at++ {
		magic := binary.LittleEndian.AppendUint32(nil, groupMagic)
		n := bytes.Index(r.b[at:], magic)
		if n < 0 {
			return nil, nil
		}
		at += n
		if _, size := r.group(at); size > 0 {
			if synced := binary.LittleEndian.Uint64(r.b[at+20:]); synced > uint64(r.at) {
				return nil, &CorruptError{r.name, int64(r.at), "a group of changes is damaged"}
			}
		}
	}
}

// group returns the changes of the group that begins at an offset, and its size or 0.
func (r *logReader) group(at int) (changes []byte, size int) {
	b := r.b[at:]
	if len(b) < groupHeader || binary.LittleEndian.Uint32(b) != groupMagic {
		return nil, 0
	}
	n := int(binary.LittleEndian.Uint32(b[8:]))
	if n > len(b)-groupHeader {
		return nil, 0
	}
	b = b[:groupHeader+n]
	placed := binary.LittleEndian.Uint64(b[12:]) == uint64(at)
	if !placed || groupSum(r.number, b) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, 0
	}
	return b[groupHeader:], len(b)
}
