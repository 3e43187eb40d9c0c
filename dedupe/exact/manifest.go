package exact

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
)

// manifestName is the file that says which files count. A merge is done when it is replaced.
const (
	manifestName = "MANIFEST"
	manifestTemp = "MANIFEST.tmp"
	manifestHead = "spinneret exact set 1\n"
)

// A manifest is what the Set is, but for the contents of its files.
type manifest struct {
	key      siphash.Key
	width    int       // of a fingerprint, 8 or 16
	next     uint64    // number of the next new URL
	trimmed  uint64    // entries below it are gone
	runs     []runSize // the longest first
	segments []segment // the oldest first
}

// A runSize names a run, and says how many fingerprints must be in it: one that was cut off between
// two merges would else pass for whole.
type runSize struct {
	number uint64
	count  int64
}

// encode writes a manifest as lines of text, the last of which is a checksum of the others.
func (m *manifest) encode() []byte {
	var b bytes.Buffer
	b.WriteString(manifestHead)
	key := m.key.Bytes()
	fmt.Fprintf(&b, "key %x\nwidth %d\nnext %d\ntrimmed %d\n", key, m.width, m.next, m.trimmed)
	for _, r := range m.runs {
		fmt.Fprintf(&b, "run %d %d\n", r.number, r.count)
	}
	for _, s := range m.segments {
		fmt.Fprintf(&b, "new %d %d %d\n", s.number, s.first, s.size)
	}
	fmt.Fprintf(&b, "sum %08x\n", crc32.Checksum(b.Bytes(), castagnoli))
	return b.Bytes()
}

// decodeManifest undoes encode. What it would not have written, to the byte, is corrupt.
func decodeManifest(b []byte) (*manifest, error) {
	m := &manifest{}
	var at int64
	for line := range strings.Lines(string(b)) {
		if at > 0 {
			m.decodeLine(line)
		}
		at += int64(len(line))
	}
	if !bytes.Equal(m.encode(), b) {
		return nil, &CorruptError{manifestName, 0, "no manifest, a damaged one or one of another version"}
	}
	if m.width != 8 && m.width != 16 {
		return nil, &CorruptError{manifestName, 0, "impossible width"}
	}
	return m, nil
}

// decodeLine need not care for errors: the line would not be encoded as it stands.
func (m *manifest) decodeLine(line string) {
	var r runSize
	var s segment
	switch kind, rest, _ := strings.Cut(line, " "); kind {
	case "key":
		var key [siphash.KeySize]byte
		_, _ = hex.Decode(key[:], []byte(rest[:min(len(rest), 2*len(key))]))
		m.key = siphash.KeyOf(key)
	case "width":
		_, _ = fmt.Sscanf(line, "width %d\n", &m.width)
	case "next":
		_, _ = fmt.Sscanf(line, "next %d\n", &m.next)
	case "trimmed":
		_, _ = fmt.Sscanf(line, "trimmed %d\n", &m.trimmed)
	case "run":
		_, _ = fmt.Sscanf(line, "run %d %d\n", &r.number, &r.count)
		m.runs = append(m.runs, r)
	case "new":
		_, _ = fmt.Sscanf(line, "new %d %d %d\n", &s.number, &s.first, &s.size)
		m.segments = append(m.segments, s)
	}
}

// clone returns a copy that can be changed.
func (m *manifest) clone() *manifest {
	c := *m
	c.runs, c.segments = slices.Clone(m.runs), slices.Clone(m.segments)
	return &c
}

// end returns where entries that were written after m begin in the last segment of the next manifest.
func (m *manifest) end(next *manifest) mark {
	last := next.segments[len(next.segments)-1]
	if n := len(m.segments); n > 0 && m.segments[n-1].number == last.number {
		return mark{m.next, m.segments[n-1].size}
	}
	return mark{m.next, segmentHeader}
}

// names returns the files that count.
func (m *manifest) names() map[string]bool {
	names := map[string]bool{manifestName: true}
	for _, r := range m.runs {
		names[runName(r.number)] = true
	}
	for _, s := range m.segments {
		names[s.name()] = true
	}
	return names
}

// lockName is the file that keeps a second Set out.
const lockName = "lock"

// isOurs reports whether a Set may have written a file of this name, and so may remove it if the
// manifest does not name it. Only names that are formatted exactly as the Set does count: others in
// the directory are somebody else's.
func isOurs(name string) bool {
	if name == manifestTemp || name == pileName {
		return true
	}
	_, digits, _ := strings.Cut(name, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return err == nil && (name == runName(number) || name == segment{number: number}.name())
}

// readManifest returns nil if there is none.
func readManifest(d disk, names []string) (*manifest, error) {
	if !slices.Contains(names, manifestName) {
		return nil, nil
	}
	f, err := d.open(manifestName)
	if err != nil {
		return nil, fmt.Errorf("exact: open manifest: %w", err)
	}
	defer f.Close()
	size, err := f.size()
	if err != nil {
		return nil, fmt.Errorf("exact: read manifest: %w", err)
	}
	b := make([]byte, size)
	if err := readFull(f, manifestName, b, 0); err != nil {
		return nil, err
	}
	return decodeManifest(b)
}

// prepare writes the manifest beside the one on disk, and makes sure that it lasts together with the
// files that were written for it.
//
// All is written before anything is synced, which may be one step for the file system then: whatever
// is synced first takes the names and sizes of the others along.
func (m *manifest) prepare(d disk, sync bool, written ...file) error {
	f, err := d.create(manifestTemp)
	if err != nil {
		return fmt.Errorf("exact: create manifest: %w", err)
	}
	w := newWriter(f, 0)
	w.write(m.encode())
	err = w.finish()
	if err == nil && sync {
		err = syncAll(d, append(written, f))
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("exact: write manifest: %w", err)
	}
	return nil
}

// replaceManifest puts the prepared manifest in the place of the one on disk. After an error either
// may be there.
func replaceManifest(d disk, sync bool) error {
	err := d.rename(manifestTemp, manifestName)
	if err == nil && sync {
		err = d.sync()
	}
	if err != nil {
		return fmt.Errorf("exact: replace manifest: %w", err)
	}
	return nil
}

// syncAll makes files last, and their names.
func syncAll(d disk, files []file) error {
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return d.sync()
}
