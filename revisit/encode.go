package revisit

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Size is the length of an encoded [History] in bytes.
const Size = 32

// ErrCorrupt is wrapped by the errors of UnmarshalBinary.
var ErrCorrupt = errors.New("revisit: corrupt history")

// AppendBinary appends the 32 bytes of h to b. FORMAT.md says what they mean. The zero History is
// 32 zero bytes. The error is always nil.
func (h History) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(b, h.last)
	b = binary.LittleEndian.AppendUint32(b, h.total)
	b = binary.LittleEndian.AppendUint32(b, h.quiet)
	// Two counters of 12 bits and one of 8 make a word; of 16 bits each they would cost a cell.
	counts := uint32(h.visits) | uint32(h.changes)<<12 | uint32(h.streak)<<24
	b = binary.LittleEndian.AppendUint32(b, counts)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.shortest))
	b = binary.LittleEndian.AppendUint16(b, uint16(h.interval))
	return append(b, h.belief[:]...), nil
}

// MarshalBinary returns the 32 bytes of h. The error is always nil.
func (h History) MarshalBinary() ([]byte, error) { return h.AppendBinary(make([]byte, 0, Size)) }

// UnmarshalBinary sets h to what AppendBinary wrote. Bytes that no history has are an error that
// wraps [ErrCorrupt], and leave h as it was.
func (h *History) UnmarshalBinary(b []byte) error {
	if len(b) != Size {
		return fmt.Errorf("%w: %d bytes instead of %d", ErrCorrupt, len(b), Size)
	}
	counts := binary.LittleEndian.Uint32(b[12:])
	read := History{
		last:     binary.LittleEndian.Uint32(b),
		total:    binary.LittleEndian.Uint32(b[4:]),
		quiet:    binary.LittleEndian.Uint32(b[8:]),
		visits:   uint16(counts & maxVisits),
		changes:  uint16(counts >> 12 & maxVisits),
		streak:   uint8(counts >> 24),
		shortest: short(binary.LittleEndian.Uint16(b[16:])),
		interval: short(binary.LittleEndian.Uint16(b[18:])),
		belief:   belief(b[20:]),
	}
	// A history from a damaged file would not crash a policy, but mislead it for years.
	if fault := read.fault(); fault != "" {
		return fmt.Errorf("%w: %s", ErrCorrupt, fault)
	}
	*h = read
	return nil
}

// fault says which of the rules that Observe keeps is broken, or nothing.
func (h History) fault() string {
	switch {
	case h.last == 0 && h != History{}:
		return "visits without a time"
	case h.quiet > h.total:
		return "more quiet time than time"
	case h.changes > h.visits:
		return "more changes than visits"
	case h.visits == 0 && h != History{last: h.last}:
		return "something seen without visits"
	case h.visits > 0 && h.interval == 0:
		return "visits without an interval"
	case h.changes > 0 && h.shortest == 0:
		return "changes without an interval"
	// Each interval takes a second at least, and halving leaves it so.
	case h.total < uint32(h.visits):
		return "more visits than seconds"
	case h.total-h.quiet < uint32(h.changes):
		return "more changes than seconds that are not quiet"
	case h.belief[h.belief.best()] != 0:
		return "a belief without a best rate"
	}
	return ""
}
