package message

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Marks has the position of a partition in the items of each source. Parcels may arrive in any
// order, repeatedly, and cut differently each time; Marks accepts each item once and in order:
//
//   - Items are accepted without a gap. A parcel that comes too early is ignored, since its source
//     sends it again after the missing ones. Items that were accepted before are skipped.
//   - Head distinguishes a gap that will be filled from one that will not: what precedes the head was
//     acknowledged, so if it has not arrived by now, the broker has lost it. Then the partition
//     continues after the gap and counts the missing items.
//
// The zero Marks is empty and ready to use, by one goroutine at a time.
type Marks struct {
	last map[Source]uint64
	lost uint64
}

// Take returns how many of the n items of a parcel to skip, and accepts the others.
func (m *Marks) Take(p Parcel, n int) (skip int) {
	next := m.last[p.From] + 1
	switch end := p.First + uint64(n); {
	case p.First == 0 && p.From.Module == Seeder:
		return 0
	case p.First == 0, end <= next, p.First > next && !p.Head:
		return n
	case p.First > next:
		m.lost += p.First - next
		next = p.First
	}
	if m.last == nil {
		m.last = map[Source]uint64{}
	}
	m.last[p.From] = p.First + uint64(n) - 1
	return int(next - p.First)
}

// Gap reports whether accepting a parcel means that items before it are lost.
func (m *Marks) Gap(p Parcel) bool { return p.Head && p.First > m.last[p.From]+1 }

// Last returns the number of the last accepted item of a source.
func (m *Marks) Last(from Source) uint64 { return m.last[from] }

// Lost returns how many items the broker acknowledged and never delivered.
func (m *Marks) Lost() uint64 { return m.lost }

// Clone returns a copy.
func (m *Marks) Clone() Marks { return Marks{last: maps.Clone(m.last), lost: m.lost} }

// Append appends the encoded marks to dst and returns the longer slice.
func (m *Marks) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, m.lost)
	dst = binary.AppendUvarint(dst, uint64(len(m.last)))
	sources := make([]Source, 0, len(m.last))
	for s := range m.last {
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b Source) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Part, b.Part))
	})
	for _, s := range sources {
		dst = append(dst, byte(s.Module))
		dst = binary.AppendUvarint(dst, uint64(s.Part))
		dst = binary.AppendUvarint(dst, m.last[s])
	}
	return dst
}

// DecodeMarks decodes the output of Append.
func DecodeMarks(data string) (Marks, error) {
	d := decoder{rest: data}
	m := Marks{lost: d.uint(math.MaxUint64), last: map[Source]uint64{}}
	for range d.uint(math.MaxUint32) {
		if d.failed {
			break
		}
		s := Source{Module(d.byte()), uint32(d.uint(math.MaxUint32))}
		m.last[s] = d.uint(math.MaxUint64)
	}
	if d.failed || d.rest != "" {
		return Marks{}, fmt.Errorf("%w: marks", ErrCorrupt)
	}
	return m, nil
}
