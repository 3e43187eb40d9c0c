package revisit

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// Errors that the decoding methods wrap. The encodings have neither versions nor checksums, which is
// the task of the files that have them: so only the length tells another version.
var (
	ErrCorrupt = durable.ErrCorrupt
	ErrVersion = durable.ErrVersion // a History of the version before
)

// text is the form in JSON and other text formats. The empty text is the zero value.
var text = base64.RawStdEncoding

// AppendBinary appends the 40 bytes of h to b. FORMAT.md says what they mean. The zero History is
// 40 zero bytes. The error is always nil.
func (h History) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(b, h.last)
	b = binary.LittleEndian.AppendUint32(b, h.total)
	b = binary.LittleEndian.AppendUint32(b, h.quiet)
	// The counts need 12 bits each.
	b = binary.LittleEndian.AppendUint16(b, h.visits|uint16(h.gaps&0xf)<<12)
	b = binary.LittleEndian.AppendUint16(b, h.changes|uint16(h.gaps>>4)<<12)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.shortest))
	b = binary.LittleEndian.AppendUint16(b, uint16(h.plan.from))
	b = binary.LittleEndian.AppendUint32(b, h.plan.outcomes)
	return append(b, h.belief[:]...), nil
}

// UnmarshalBinary sets h to what AppendBinary wrote. If b is not the encoding of a History, the
// error wraps [ErrCorrupt] or [ErrVersion], and h is unchanged.
func (h *History) UnmarshalBinary(b []byte) error {
	switch len(b) {
	case Size:
	case 32: // of the version before
		return fmt.Errorf("revisit: %w: a history of %d bytes, not %d", ErrVersion, len(b), Size)
	default:
		return fmt.Errorf("revisit: %w: %d bytes instead of %d", ErrCorrupt, len(b), Size)
	}
	read := History{
		last:     binary.LittleEndian.Uint32(b),
		total:    binary.LittleEndian.Uint32(b[4:]),
		quiet:    binary.LittleEndian.Uint32(b[8:]),
		visits:   binary.LittleEndian.Uint16(b[12:]) & maxVisits,
		changes:  binary.LittleEndian.Uint16(b[14:]) & maxVisits,
		gaps:     gaps(b[13]>>4 | b[15]&0xf0),
		shortest: short(binary.LittleEndian.Uint16(b[16:])),
		plan: plan{
			from:     short(binary.LittleEndian.Uint16(b[18:])),
			outcomes: binary.LittleEndian.Uint32(b[20:]),
		},
		belief: belief(b[24:]),
	}
	// A damaged history would not crash a policy, but it would mislead it for years.
	if fault := read.fault(); fault != "" {
		return fmt.Errorf("revisit: %w: %s", ErrCorrupt, fault)
	}
	*h = read
	return nil
}

// fault names the first violated invariant of Observe, or returns "".
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
	case h.visits > 0 && h.plan.outcomes < 2:
		return "visits without outcomes"
	case h.changes > 0 && h.shortest == 0:
		return "changes without an interval"
	case max(h.shortest, h.plan.from) > longestShort:
		return "an interval beyond all times"
	// Each interval takes a second at least, and halving leaves it so.
	case h.total < uint32(h.visits):
		return "more visits than seconds"
	case h.total-h.quiet < uint32(h.changes):
		return "more changes than seconds that are not quiet"
	case slices.Min(h.belief[:]) != 0:
		return "a belief without a best rate"
	}
	return ""
}

// MarshalText returns h in base64, or nothing if it is the zero History. The error is always nil.
func (h History) MarshalText() ([]byte, error) { return marshalText(h.AppendBinary(nil)) }

// UnmarshalText sets h to what MarshalText wrote, with the errors of UnmarshalBinary.
func (h *History) UnmarshalText(b []byte) error { return unmarshalText(h, b, Size) }

// priorSize is the length of an encoded Prior: a float32 for each rate.
const priorSize = 4 * cells

// AppendBinary appends the 64 bytes of p to b. The error is always nil.
func (p Prior) AppendBinary(b []byte) ([]byte, error) {
	return binary.Append(b, binary.LittleEndian, p.weight[:])
}

// UnmarshalBinary sets p to what AppendBinary wrote. If b is not the encoding of a Prior, the error
// wraps [ErrCorrupt] and p is unchanged.
func (p *Prior) UnmarshalBinary(b []byte) error {
	if len(b) != priorSize {
		return fmt.Errorf("revisit: %w: prior: %d bytes instead of %d", ErrCorrupt, len(b), priorSize)
	}
	var read Prior
	for k := range read.weight {
		w := math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))
		if !(w > 0 && w <= 1) && !isZero(b) {
			return fmt.Errorf("revisit: %w: prior: a weight of %v", ErrCorrupt, w)
		}
		read.weight[k] = w
	}
	*p = read
	return nil
}

// MarshalText returns p in base64, or nothing if it is the zero Prior. The error is always nil.
func (p Prior) MarshalText() ([]byte, error) { return marshalText(p.AppendBinary(nil)) }

// UnmarshalText sets p to what MarshalText wrote, with the errors of UnmarshalBinary.
func (p *Prior) UnmarshalText(b []byte) error { return unmarshalText(p, b, priorSize) }

// pulseSize is the length of an encoded Pulse.
const pulseSize = 8 + 4*spans

// AppendBinary appends the 64 bytes of p to b. The error is always nil.
func (p Pulse) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint16(b, p.newest)
	b = binary.LittleEndian.AppendUint16(b, uint16(p.pace))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.lead))
	for _, s := range p.activity {
		b = binary.LittleEndian.AppendUint16(b, uint16(s.changes))
		b = binary.LittleEndian.AppendUint16(b, uint16(s.visits))
	}
	return b, nil
}

// UnmarshalBinary sets p to what AppendBinary wrote. If b is not the encoding of a Pulse, the error
// wraps [ErrCorrupt] and p is unchanged.
func (p *Pulse) UnmarshalBinary(b []byte) error {
	if len(b) != pulseSize {
		return fmt.Errorf("revisit: %w: pulse: %d bytes instead of %d", ErrCorrupt, len(b), pulseSize)
	}
	read := Pulse{
		newest: binary.LittleEndian.Uint16(b),
		pace:   short(binary.LittleEndian.Uint16(b[2:])),
		lead:   math.Float32frombits(binary.LittleEndian.Uint32(b[4:])),
	}
	for i := range read.activity {
		at := b[8+4*i:]
		read.activity[i] = span{
			short(binary.LittleEndian.Uint16(at)), short(binary.LittleEndian.Uint16(at[2:])),
		}
	}
	if fault := read.fault(); fault != "" {
		return fmt.Errorf("revisit: %w: pulse: %s", ErrCorrupt, fault)
	}
	*p = read
	return nil
}

// MarshalText returns p in base64, or nothing if it is the zero Pulse. The error is always nil.
func (p Pulse) MarshalText() ([]byte, error) { return marshalText(p.AppendBinary(nil)) }

// UnmarshalText sets p to what MarshalText wrote, with the errors of UnmarshalBinary.
func (p *Pulse) UnmarshalText(b []byte) error { return unmarshalText(p, b, pulseSize) }

// fault names the first violated invariant of Observe, or returns "".
func (p Pulse) fault() string {
	switch {
	case p == Pulse{}:
		return ""
	case p.newest == 0:
		return "something seen without visits"
	case int(p.newest) > spanOf(math.MaxUint32):
		return "a visit after 2106"
	case p.pace.unpack() < leastPace/2 || p.pace > longestShort:
		return "a pace out of bounds"
	case !(math.Abs(float64(p.lead)) <= leadMost):
		return "a lead out of bounds"
	}
	for _, s := range p.activity {
		if min(s.changes.unpack(), s.visits.unpack()) < pulsePrior/2 || max(s.changes, s.visits) > longestShort {
			return "a span out of bounds"
		}
	}
	return ""
}

// hintsSize is the length of encoded Hints.
const hintsSize = 4 * 4

// AppendBinary appends the 16 bytes of k to b. The error is always nil.
func (k Hints) AppendBinary(b []byte) ([]byte, error) {
	return binary.Append(b, binary.LittleEndian, []float32{k.announced, k.silent, k.wrong, k.days})
}

// UnmarshalBinary sets k to what AppendBinary wrote. If b is not the encoding of Hints, the error
// wraps [ErrCorrupt] and k is unchanged.
func (k *Hints) UnmarshalBinary(b []byte) error {
	if len(b) != hintsSize {
		return fmt.Errorf("revisit: %w: hints: %d bytes instead of %d", ErrCorrupt, len(b), hintsSize)
	}
	var read [4]float32
	for i, most := range [4]float32{hintsChanges, hintsChanges, hintsMost, hintsMost} {
		bits := binary.LittleEndian.Uint32(b[4*i:])
		read[i] = math.Float32frombits(bits)
		if !(bits == 0 || read[i] > 0 && read[i] <= most) {
			return fmt.Errorf("revisit: %w: hints: a count of %v", ErrCorrupt, read[i])
		}
	}
	*k = Hints{read[0], read[1], read[2], read[3]}
	return nil
}

// MarshalText returns k in base64, or nothing if it is the zero Hints. The error is always nil.
func (k Hints) MarshalText() ([]byte, error) { return marshalText(k.AppendBinary(nil)) }

// UnmarshalText sets k to what MarshalText wrote, with the errors of UnmarshalBinary.
func (k *Hints) UnmarshalText(b []byte) error { return unmarshalText(k, b, hintsSize) }

// marshalText returns what AppendBinary returned in base64, or nothing if it is the encoding of the
// zero value, which is all zeros.
func marshalText(b []byte, err error) ([]byte, error) {
	if isZero(b) {
		return []byte{}, err
	}
	return text.AppendEncode(nil, b), err
}

func isZero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }

// unmarshalText is the inverse of marshalText for a value of this size.
func unmarshalText(v encoding.BinaryUnmarshaler, b []byte, size int) error {
	if len(b) == 0 {
		return v.UnmarshalBinary(make([]byte, size))
	}
	data, err := text.AppendDecode(nil, b)
	if err != nil {
		return fmt.Errorf("revisit: %w: %w", ErrCorrupt, err)
	}
	return v.UnmarshalBinary(data)
}
