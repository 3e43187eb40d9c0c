package exact

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

const (
	lockName = "lock" // excludes a second Set

	// The manifest lists the files in use. It is replaced as a whole.
	manifestName = "MANIFEST"
	manifestTemp = manifestName + durable.NewName
	manifestIs   = "spinneret exact set "
	manifestHead = manifestIs + "2\n"
)

// A manifest is the state of a Set, except for the contents of its files and the end of its log.
type manifest struct {
	key      siphash.Key
	trimmed  uint64    // entries below it are gone
	indexed  uint64    // entries below it are in the index
	index    uint64    // number of the index, 0 if there is none
	count    int64     // fingerprints in it
	segments []segment // of the log, the oldest first
}

// encode writes a manifest as lines of text, the last of which is a checksum of the others.
func (m *manifest) encode() []byte {
	var b bytes.Buffer
	b.WriteString(manifestHead)
	key := m.key.Bytes()
	fmt.Fprintf(&b, "key %x\nwidth %d\ntrimmed %d\nindexed %d\nindex %d %d\n",
		key, printSize, m.trimmed, m.indexed, m.index, m.count)
	for _, s := range m.segments {
		fmt.Fprintf(&b, "log %d %d %d\n", s.number, s.first, s.size)
	}
	fmt.Fprintf(&b, "sum %08x\n", durable.Sum(b.Bytes()))
	return b.Bytes()
}

// decodeManifest undoes encode. Anything that encode would not write, to the byte, is corrupt.
func decodeManifest(b []byte) (*manifest, error) {
	m := &manifest{}
	for line := range strings.Lines(string(b)) {
		m.decodeLine(line)
	}
	if !bytes.Equal(m.encode(), b) {
		if head, _, _ := bytes.Cut(b, []byte{'\n'}); isManifest(b) && string(head)+"\n" != manifestHead {
			return nil, durable.Version(manifestName, string(head))
		}
		if isManifest(b) && bytes.Contains(b, []byte("\nwidth 16\n")) {
			return nil, durable.Version(manifestName, "fingerprints of 128 bits")
		}
		return nil, durable.Corrupt(manifestName, 0, "damaged")
	}
	if m.index == 0 && (m.count != 0 || m.indexed > 0) {
		return nil, durable.Corrupt(manifestName, 0, "has indexed entries and no index")
	}
	return m, nil
}

// isManifest reports whether b is a manifest of any version: they differ in what is between the name
// and the checksum.
func isManifest(b []byte) bool {
	end := bytes.LastIndex(b, []byte("sum "))
	return end >= 0 && bytes.HasPrefix(b, []byte(manifestIs)) &&
		string(b[end:]) == fmt.Sprintf("sum %08x\n", durable.Sum(b[:end]))
}

// decodeLine ignores errors: decodeManifest detects them, since it encodes the result again and
// compares.
func (m *manifest) decodeLine(line string) {
	switch kind, rest, _ := strings.Cut(line, " "); kind {
	case "key":
		var key [siphash.KeySize]byte
		_, _ = hex.Decode(key[:], []byte(rest[:min(len(rest), 2*len(key))]))
		m.key = siphash.KeyOf(key)
	case "trimmed":
		_, _ = fmt.Sscan(rest, &m.trimmed)
	case "indexed":
		_, _ = fmt.Sscan(rest, &m.indexed)
	case "index":
		_, _ = fmt.Sscan(rest, &m.index, &m.count)
	case "log":
		var s segment
		_, _ = fmt.Sscan(rest, &s.number, &s.first, &s.size)
		m.segments = append(m.segments, s)
	}
}

// names returns the files in use.
func (m *manifest) names() map[string]bool {
	names := map[string]bool{manifestName: true}
	if m.index > 0 {
		names[indexName(m.index)] = true
	}
	for _, s := range m.segments {
		names[s.name()] = true
	}
	return names
}

// last returns the greatest number of a file in use.
func (m *manifest) last() uint64 {
	last := m.index
	for _, s := range m.segments {
		last = max(last, s.number)
	}
	return last
}

// maxLeft is how far the numbers of files that a crash has left behind are beyond those of the manifest, at
// most. A log with a greater one is the caller's, named after the date.
const maxLeft = 1 << 20

// fileNumber returns the number in the name of an index or a segment, and 0 for other names. Only
// names in exactly the format of a Set are recognized: other files are not ours.
func fileNumber(name string) uint64 {
	_, digits, _ := strings.Cut(name, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || name != indexName(number) && name != segmentName(number) {
		return 0
	}
	return number
}

// isOurs reports whether a Set wrote the file of this name, and may remove it if it is not in use.
func isOurs(name string) bool {
	return name == manifestTemp || slices.Contains(pileNames[:], name) || fileNumber(name) > 0
}

// readManifest returns nil if there is none.
func readManifest(fs vfs.FS, names []string) (*manifest, error) {
	if !slices.Contains(names, manifestName) {
		return nil, nil
	}
	b, err := durable.ReadFile(fs, manifestName)
	if err != nil {
		return nil, err
	}
	return decodeManifest(b)
}
