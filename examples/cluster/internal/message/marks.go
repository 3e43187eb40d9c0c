package message

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Marks has the position of a partition in the messages of each source. Messages may arrive in any
// order, repeatedly, and from replaced owners; Marks accepts each message once and in order:
//
//   - Within one epoch, numbers are accepted without a gap. A message that comes too early is ignored,
//     since its source sends it again after the missing ones. A duplicate is ignored, too.
//   - A higher epoch starts at 1. From then on lower epochs are ignored.
//   - Base distinguishes a gap that will be filled from one that will not: messages below Base were
//     acknowledged, so if one has not arrived by now, the broker has lost it. Then the partition
//     continues after the gap and counts the missing messages.
//
// The zero Marks is empty and ready to use, by one goroutine at a time.
type Marks struct {
	last map[Source]mark
	lost uint64
}

type mark struct{ epoch, number uint64 }

// Take reports whether the message is the next one of its source, and if so advances the mark.
// Messages without a number are never accepted.
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
		// Of the messages from next on, those below Base are lost. Those from Base on are being
		// sent again, unless this is the first of them.
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

// Reached reports whether the messages of a source were accepted up to a number of an epoch.
func (m *Marks) Reached(from Source, epoch, number uint64) bool {
	last := m.last[from]
	return number == 0 || last.epoch > epoch || last.epoch == epoch && last.number >= number
}

// Lost returns how many messages the broker acknowledged and never delivered.
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
		dst = binary.AppendUvarint(dst, m.last[s].epoch)
		dst = binary.AppendUvarint(dst, m.last[s].number)
	}
	return dst
}

// DecodeMarks decodes the output of Append.
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
