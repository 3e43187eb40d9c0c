package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// These constants are on disk. Do not change them; add a version.
const (
	logMagic    = "SATLOG2\n"
	logHeader   = 8 + 8 + 8 + durable.SumSize // magic, number, slot, checksum
	groupMagic  = 0x47544153                  // "SATG", little endian
	groupHeader = 4 + 4 + 4 + 8 + 8           // magic, checksum, length, offset, synced bytes
)

// FileName returns the name of the log with a number.
func FileName(number uint64) string { return fmt.Sprintf("log-%08d", number) }

// Header is the size of a log without a change.
const Header = logHeader

func logHead(number uint64, base int64) []byte {
	b := append(make([]byte, 0, logHeader), logMagic...)
	b = binary.LittleEndian.AppendUint64(b, number)
	b = binary.LittleEndian.AppendUint64(b, uint64(base))
	return binary.LittleEndian.AppendUint32(b, durable.Sum(b))
}

// A File is a log file that is being written. Log.io guards its fields.
type File struct {
	vfs.File
	number uint64
	base   int64 // slots are relative to it
	end    int64 // of what is written
	synced int64 // of what is synced
}

// Create creates an empty log and syncs it. Its name is durable once the directory is synced. Slots
// near base are encoded in the fewest bytes.
func Create(fs vfs.FS, number uint64, base int64) (*File, error) {
	file, err := fs.Create(FileName(number))
	if err != nil {
		return nil, fmt.Errorf("satstore: create log: %w", err)
	}
	_, err = file.WriteAt(logHead(number, base), 0)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		durable.Discard(fs, FileName(number), file)
		return nil, fmt.Errorf("satstore: write log: %w", err)
	}
	return &File{file, number, base, logHeader, logHeader}, nil
}

// appendGroup appends a group of changes.
func (f *File) appendGroup(dst, changes []byte, synced int64) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, groupMagic)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(changes)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(f.end))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(synced))
	dst = append(dst, changes...)
	binary.LittleEndian.PutUint32(dst[start+4:], groupSum(f.number, dst[start:]))
	return dst
}

// groupSum includes the number of the log, so that groups of older files are rejected.
func groupSum(number uint64, group []byte) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], number)
	return durable.SumOn(durable.Sum(b[:]), group[8:])
}

// A fileReader reads the groups of a log.
type fileReader struct {
	name   string
	number uint64
	base   int64 // slots are relative to it
	b      []byte
	at     int
}

func openFile(fs vfs.FS, number uint64) (*fileReader, error) {
	r := &fileReader{name: FileName(number), number: number}
	var err error
	if r.b, err = durable.ReadFile(fs, r.name); err != nil {
		return nil, durable.Required(r.name, err)
	}
	if len(r.b) >= logHeader {
		r.base = int64(binary.LittleEndian.Uint64(r.b[16:]))
	}
	if !bytes.HasPrefix(r.b, logHead(number, r.base)) {
		return nil, durable.Corrupt(r.name, 0, "not a log, or of another version")
	}
	r.at = logHeader
	return r, nil
}

// next returns the changes of the next group, or nil at the end. A crash leaves an incomplete group
// at the end. If a later group says that the group had been synced, it is damaged instead.
func (r *fileReader) next() ([]byte, error) {
	changes, size := r.group(r.at)
	if size > 0 {
		r.at += size
		return changes, nil
	}
	synced, err := r.syncedAfter(r.at)
	if err == nil && synced > uint64(r.at) {
		err = durable.Corrupt(r.name, int64(r.at), "a group of changes is damaged")
	}
	return nil, err
}

// syncedAfter returns how much of the file was synced, according to any group after an offset.
func (r *fileReader) syncedAfter(at int) (synced uint64, err error) {
	// The content of groups is untrusted and may contain headers of groups, each of which could
	// make us sum up the rest of the file. Real groups do not overlap, so together they are not
	// larger than the file. More than that is damage.
	budget := 2 * len(r.b)
	magic := binary.LittleEndian.AppendUint32(nil, groupMagic)
	for ; ; at++ {
		n := bytes.Index(r.b[at:], magic)
		if n < 0 {
			return synced, nil
		}
		at += n
		if budget -= r.claimed(at); budget < 0 {
			return synced, durable.Corrupt(r.name, int64(r.at), "many damaged groups")
		}
		if _, size := r.group(at); size > 0 {
			synced = max(synced, binary.LittleEndian.Uint64(r.b[at+20:]))
		}
	}
}

// group returns the changes of the group that begins at an offset, and its size or 0.
func (r *fileReader) group(at int) (changes []byte, size int) {
	size = r.claimed(at)
	if size == 0 {
		return nil, 0
	}
	b := r.b[at : at+size]
	if groupSum(r.number, b) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, 0
	}
	return b[groupHeader:], size
}

// claimed returns the size of a group according to its header, or 0 if there is none.
func (r *fileReader) claimed(at int) int {
	b := r.b[at:]
	if len(b) < groupHeader || binary.LittleEndian.Uint32(b) != groupMagic ||
		binary.LittleEndian.Uint64(b[12:]) != uint64(at) {
		return 0
	}
	// Before the conversion to int, which may have 32 bits.
	n := binary.LittleEndian.Uint32(b[8:])
	if uint64(n) > uint64(len(b)-groupHeader) {
		return 0
	}
	return groupHeader + int(n)
}
