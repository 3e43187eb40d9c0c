package robots

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"time"
)

// ErrCorrupt is wrapped by the errors of [Entry.UnmarshalBinary].
var ErrCorrupt = errors.New("robots: corrupt entry")

// These constants are on disk. Do not change them; add a version. FORMAT.md explains them.
const (
	entryMagic   = "RBTE"
	entryVersion = 1

	noFile     = 0
	someFile   = 1
	deniesFile = 2

	maxEntry = 8 << 20 // several times what any body can make of an entry
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBinary appends the binary form of the entry, which is about as long as the records of its
// file. Times are kept in seconds. The error is always nil.
func (e *Entry) AppendBinary(b []byte) ([]byte, error) {
	from := len(b)
	b = append(b, entryMagic...)
	b = append(b, entryVersion)
	b = appendString(b, e.URL)
	b = binary.AppendUvarint(b, uint64(max(0, e.Status)))
	for _, t := range []time.Time{e.Fetched, e.Expires, e.FailedSince} {
		b = binary.AppendVarint(b, t.Unix())
	}
	b = binary.AppendUvarint(b, uint64(max(0, e.Failures)))
	for _, s := range []string{e.Source, e.ETag, e.LastModified} {
		b = appendString(b, s)
	}
	switch {
	case e.File == nil:
		b = append(b, noFile)
	case e.File.denyAll:
		b = append(b, deniesFile)
	default:
		b = e.File.appendBinary(append(b, someFile))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli)), nil
}

// MarshalBinary returns the binary form of the entry. The error is always nil.
func (e *Entry) MarshalBinary() ([]byte, error) { return e.AppendBinary(nil) }

// UnmarshalBinary reads what AppendBinary wrote: one entry and nothing behind it. If it fails, the
// error wraps [ErrCorrupt], and the entry is as it was.
func (e *Entry) UnmarshalBinary(data []byte) error {
	const least = len(entryMagic) + 1 + crc32.Size
	switch {
	case len(data) < least || string(data[:len(entryMagic)]) != entryMagic:
		return fmt.Errorf("%w: no entry", ErrCorrupt)
	case len(data) > maxEntry:
		return fmt.Errorf("%w: %d bytes", ErrCorrupt, len(data))
	case data[len(entryMagic)] != entryVersion:
		return fmt.Errorf("%w: version %d", ErrCorrupt, data[len(entryMagic)])
	}
	body, sum := data[:len(data)-crc32.Size], data[len(data)-crc32.Size:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return fmt.Errorf("%w: checksum", ErrCorrupt)
	}
	d := decoder{rest: body[len(entryMagic)+1:]}
	read := d.entry()
	if d.failed || len(d.rest) > 0 {
		return fmt.Errorf("%w: content, %d bytes before its end", ErrCorrupt, len(d.rest))
	}
	*e = read
	return nil
}

// appendBinary writes the records that a parser would have to meet to make this file. The places in
// text are left out: they are made anew, so that no reader has to trust them.
func (f *File) appendBinary(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(f.skipped))
	b = binary.AppendUvarint(b, uint64(len(f.groups)))
	first := group{notes: uint32(len(f.notes))}
	if len(f.groups) > 0 {
		first = f.groups[0]
	}
	b = f.appendRecords(b, group{}, first)

	tokens := make([][]string, len(f.groups))
	for _, a := range f.agents {
		tokens[a.group] = append(tokens[a.group], a.token.of(f.text))
	}
	for i := range f.groups {
		b = binary.AppendUvarint(b, uint64(len(tokens[i])))
		for _, token := range tokens[i] {
			b = appendString(b, token)
		}
		begin, end := f.bounds(uint32(i))
		b = f.appendRecords(b, begin, end)
	}
	return b
}

// appendRecords writes the rules and notes between two places. How they are mixed matters to
// nobody: each has its line.
func (f *File) appendRecords(b []byte, begin, end group) []byte {
	rules := f.rules[begin.rules:end.rules]
	b = binary.AppendUvarint(b, uint64(len(rules)))
	for i := range rules {
		b = binary.AppendUvarint(b, uint64(rules[i].line())<<1|uint64(rules[i].bits&allowBit))
		b = appendString(b, rules[i].written(f.text))
	}
	notes := f.notes[begin.notes:end.notes]
	b = binary.AppendUvarint(b, uint64(len(notes)))
	for _, n := range notes {
		record := n.record(f.text)
		b = binary.AppendUvarint(b, uint64(record.Line))
		b = appendString(appendString(b, record.Key), record.Value)
	}
	return b
}

// appendString puts the length in front, so that any octets can follow.
func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads from the front of what is left. After a fault nothing is left, and all that it
// reads is zero, so that its users may look at failed once, at their end, and no loop runs away.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) fail() { d.rest, d.failed = nil, true }

// uint takes the most that makes sense, because a number that is read may be one that is trusted.
func (d *decoder) uint(most uint64) uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > most {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// count reads how many things follow. Each takes at least one byte, so a number that was made up
// costs no more work or memory than the data that it came with.
func (d *decoder) count() int { return int(d.uint(uint64(len(d.rest)))) }

func (d *decoder) string() string {
	n := d.count()
	if n > len(d.rest) { // the number itself took a byte
		d.fail()
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// time returns UTC, where AppendBinary has left the zone out.
func (d *decoder) time() time.Time {
	seconds, size := binary.Varint(d.rest)
	if size <= 0 {
		d.fail()
		return time.Time{}
	}
	d.rest = d.rest[size:]
	return time.Unix(seconds, 0).UTC()
}

// entry reads the content in the order of FORMAT.md.
func (d *decoder) entry() Entry {
	const most = 1 << 31
	e := Entry{URL: d.string(), Status: int(d.uint(most - 1))}
	e.Fetched, e.Expires, e.FailedSince = d.time(), d.time(), d.time()
	e.Failures = int(d.uint(most - 1))
	e.Source, e.ETag, e.LastModified = d.string(), d.string(), d.string()
	switch d.uint(deniesFile) {
	case someFile:
		e.File = d.file()
	case deniesFile:
		e.File = deniedFile
	}
	return e
}

// file feeds the records to the parser that once made them.
func (d *decoder) file() *File {
	var p parser
	skipped := int(min(d.uint(1<<62), math.MaxInt)) // which has 32 bits on some machines
	groups := d.count()
	d.records(&p)
	for range groups {
		if d.failed {
			break
		}
		p.open = false
		p.addAgent("") // begins a group, even if no name is left of those that it had
		for range d.count() {
			name := d.string()
			if len(name) > maxLine {
				d.fail()
				break
			}
			p.addAgent(name)
		}
		d.records(&p)
	}
	f := p.file()
	f.skipped = skipped
	return f
}

// records reads a list of rules and one of others, in which no rule may hide: a parser would take
// it for one, and the next writer would put it into the first list.
func (d *decoder) records(p *parser) {
	for range d.count() {
		bits := d.uint(maxEntry << 1)
		kind := disallowKind
		if bits&1 != 0 {
			kind = allowKind
		}
		d.record(p, record{kind, "allow", d.string(), int32(bits >> 1)})
	}
	for range d.count() {
		line := int32(d.uint(maxEntry))
		key := d.string()
		d.record(p, record{kindOf(key), key, d.string(), line})
		switch kindOf(key) {
		case agentKind, allowKind, disallowKind:
			d.fail()
		}
	}
}

// record adds one that could come from a line of a file. Others would spoil the form in which the
// parser keeps them: a line end in a value would make two of it.
func (d *decoder) record(p *parser, rec record) {
	key, value, ok := splitLine(rec.key + ":" + rec.value)
	if !ok || key != rec.key || value != rec.value || hasLineEnd(key) || hasLineEnd(value) {
		d.fail()
		return
	}
	p.add(rec)
}

func hasLineEnd(s string) bool { return strings.ContainsAny(s, lineEnds) }
