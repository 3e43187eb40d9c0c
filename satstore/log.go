package satstore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// These constants are on disk. Do not change them; add a version.
const (
	logMagic    = "SATLOG1\n"
	logHeader   = 8 + 8 + disk.SumSize // magic, number, checksum
	groupMagic  = 0x47544153           // "SATG", little endian
	groupHeader = 4 + 4 + 4 + 8 + 8    // magic, checksum, length, place, what was synced
)

func logName(number uint64) string { return fmt.Sprintf("log-%08d", number) }

// An updateLog is where changes go first, in groups. What is in a checkpoint needs no log, so each
// checkpoint begins a new one. The fields of the second part are guarded by Store.mu, the others by
// Store.commitMu.
type updateLog struct {
	file      vfs.File // nil if no log is kept
	number    uint64
	end       int64  // of what was written
	synced    int64  // what a Sync has returned for; each group says it, so that damage can be told
	unwritten []byte // changes of the other half that could not be written and come before others
	group     []byte // for the next group

	pending   []byte // changes that no group has yet; in a half unless they were too many for it
	kept      int    // bytes of them; the others may yet be undone
	halves    [2]half
	active    int // the half that takes changes
	coder     coder
	keptCoder coder
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
		_ = l.file.Close() // the first error says more than these
		_ = fs.Remove(logName(number))
		return nil, fmt.Errorf("satstore: write log: %w", err)
	}
	return l, nil
}

// attach lets changes go through a file that is mapped, or through memory if there is none.
func (l *updateLog) attach(m *vfs.Map) {
	l.halves = halves(m)
	l.pending = l.halves[0].begin(l.number, l.end)
	if m != nil {
		l.halves[1].begin(l.number, -1) // what is there is of another log
	}
}

// note appends a change, which counts once it is kept.
func (l *updateLog) note(h *change, now int64, old []byte) {
	l.pending = l.coder.append(l.pending, h, now, old)
}

// keep lets the changes that were noted outlive the process, all of them or none.
func (l *updateLog) keep() {
	l.kept, l.keptCoder = len(l.pending), l.coder
	if !l.spilled() {
		l.halves[l.active].publish(l.pending)
	}
}

// undo forgets the changes that were noted and not kept.
func (l *updateLog) undo() {
	h := &l.halves[l.active]
	if l.spilled() && l.kept == h.published {
		l.pending = h.memory
	}
	l.pending, l.coder = l.pending[:l.kept], l.keptCoder
}

// spilled reports whether there are changes that would not outlive the process before they are
// written, as they were too many. Then whoever made them has to write them.
func (l *updateLog) spilled() bool {
	h := &l.halves[l.active]
	return h.file != nil && cap(l.pending) > cap(h.memory)
}

// crowded reports whether what is pending should be written before there are so many bytes more.
func (l *updateLog) crowded(more int) bool {
	size := cap(l.halves[l.active].memory)
	return len(l.pending) > 0 && len(l.pending) > min(size*3/4, size-more)
}

// swap lets the other half take changes and returns those of this one, which have to be written
// next.
func (l *updateLog) swap() []byte {
	changes := l.pending
	l.active = 1 - l.active
	l.kept = 0
	l.pending = l.halves[l.active].begin(l.number, l.end+groupHeader+int64(len(changes)))
	return changes
}

func logHead(number uint64) []byte {
	b := append(make([]byte, 0, logHeader), logMagic...)
	b = binary.LittleEndian.AppendUint64(b, number)
	return binary.LittleEndian.AppendUint32(b, disk.Sum(b))
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
	return disk.SumOn(disk.Sum(b[:]), group[8:])
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
	if err := disk.ReadFull(f, r.name, r.b, 0); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(r.b, logHead(number)) {
		return nil, disk.Corrupt(r.name, 0, "no log, or of another version")
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
	// What a group may hold is foreign, beginnings of groups included, each of which could have a
	// checksum added up of all that follows. Whole groups do not overlap, so those cost no more than
	// the file; what costs more is damage.
	budget := 2 * len(r.b)
	magic := binary.LittleEndian.AppendUint32(nil, groupMagic)
	for at := r.at; ; at++ {
		n := bytes.Index(r.b[at:], magic)
		if n < 0 {
			return nil, nil
		}
		at += n
		if budget -= r.claimed(at); budget < 0 {
			return nil, disk.Corrupt(r.name, int64(r.at), "many groups seem to be damaged")
		}
		if _, size := r.group(at); size > 0 {
			if synced := binary.LittleEndian.Uint64(r.b[at+20:]); synced > uint64(r.at) {
				return nil, disk.Corrupt(r.name, int64(r.at), "a group of changes is damaged")
			}
		}
	}
}

// group returns the changes of the group that begins at an offset, and its size or 0.
func (r *logReader) group(at int) (changes []byte, size int) {
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

// claimed returns the size of what says that it is a group at this offset, or 0.
func (r *logReader) claimed(at int) int {
	b := r.b[at:]
	if len(b) < groupHeader || binary.LittleEndian.Uint32(b) != groupMagic ||
		binary.LittleEndian.Uint64(b[12:]) != uint64(at) {
		return 0
	}
	// Compared before it is an int, which may have 32 bits.
	n := binary.LittleEndian.Uint32(b[8:])
	if uint64(n) > uint64(len(b)-groupHeader) {
		return 0
	}
	return groupHeader + int(n)
}
