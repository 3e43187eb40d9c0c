package message

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Marks says how far a partition has come with each source. It turns delivery in any order, with
// repeats and with messages of owners that were replaced, into each message once and in order:
//
//   - Under one epoch, numbers are taken without a gap. What comes too early is left out, as its
//     source sends it again behind what is missing; what was taken before is left out too.
//   - A higher epoch begins at 1, and from then on lower ones are left out.
//   - Base tells a gap that will be filled from one that will not: what lies below Base was
//     acknowledged, so if it has not come by now, the broker has lost it. Then the partition goes
//     on behind the gap and counts what is missing.
//
// The zero Marks is empty and ready to use, by one goroutine at a time.
type Marks struct {
	last map[Source]mark
	lost uint64
}

type mark struct{ epoch, number uint64 }

// Take reports whether the message is the next one of its source, and if so notes that it was
// taken. Messages without a number never are.
func (m *Marks) Take(msg *Message) bool {
	last := m.last[msg.From]
	if msg.Number == 0 || msg.Epoch < last.epoch {
		return false
	}
	if msg.Epoch > last.epoch {
		last = mark{epoch: msg.Epoch}
	}
	next := last.number + 1
	if msg.Number < next || msg.Number > next && msg.Base <= next {
		return false
	}
	if msg.Number > next {
		// Of the messages from next on, those below Base are gone. Those from Base on are on their
		// way again, unless this is the first of them.
		if msg.Number != msg.Base {
			return false
		}
		m.lost += msg.Number - next
	}
	if m.last == nil {
		m.last = map[Source]mark{}
	}
	m.last[msg.From] = mark{msg.Epoch, msg.Number}
	return true
}

// Reached reports whether the messages of a source were taken up to one of an epoch.
func (m *Marks) Reached(from Source, epoch, number uint64) bool {
	last := m.last[from]
	return number == 0 || last.epoch > epoch || last.epoch == epoch && last.number >= number
}

// Lost returns how many messages were acknowledged by the broker and never came.
func (m *Marks) Lost() uint64 { return m.lost }

// Clone returns marks that have come as far.
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
		dst = binary.AppendUvarint(dst, m.last[s].epoch)
		dst = binary.AppendUvarint(dst, m.last[s].number)
	}
	return dst
}

// DecodeMarks reads what Append wrote.
func DecodeMarks(data string) (Marks, error) {
	d := decoder{rest: data}
	m := Marks{lost: d.uint(math.MaxUint64), last: map[Source]mark{}}
	for range d.uint(math.MaxUint32) {
		if d.failed {
			break
		}
		s := Source{Module(d.byte()), uint32(d.uint(math.MaxUint32))}
		m.last[s] = mark{d.uint(math.MaxUint64), d.uint(math.MaxUint64)}
	}
	if d.failed || d.rest != "" {
		return Marks{}, fmt.Errorf("%w: marks", ErrCorrupt)
	}
	return m, nil
}
