package scheduler

import "strings"

const (
	textBits = 14
	textLen  = 1 << textBits        // bytes in a text, but for one that holds a single longer name
	maxTexts = 1 << (32 - textBits) // so that a number of 32 bits tells the text and the offset

	// spareTexts are kept for the names of one task, each of which may be too long to share a text,
	// and for what moves.
	spareTexts = 4
)

// names holds names in texts, one behind the other, each after its length. A text is written once
// and then never changed, so that parts of it can be given away as strings without a copy. What is
// forgotten leaves a hole; when most of a text is holes, what is left of it moves elsewhere, and
// the text goes when nobody has a string of it any longer.
type names struct {
	texts   []text
	free    []uint32         // numbers of texts that are gone
	current uint32           // number of the text that is written to
	builder *strings.Builder // of the current text; nil before the first name

	// moved is called with each name that is about to move, and its old place. It returns whom to
	// tell the new place, or nil if the name is no longer in use.
	moved func(name string, from uint32) (set func(to uint32))
}

type text struct {
	s     string
	holes int // bytes of forgotten names
}

// full tells whether the names of another task cannot be held: at 4 GiB of them.
func (n *names) full() bool { return len(n.texts)-len(n.free) > maxTexts-spareTexts }

// put keeps a copy of a name and returns where. It requires that the names are not full.
func (n *names) put(name string) uint32 {
	size := prefixed(name)
	if n.builder == nil || n.builder.Len()+size > textLen && n.builder.Len() > 0 {
		n.begin(max(textLen, size))
	}
	at := n.current<<textBits | uint32(n.builder.Len())
	rest := uint(len(name))
	for ; rest >= 0x80; rest >>= 7 {
		n.builder.WriteByte(byte(rest) | 0x80)
	}
	n.builder.WriteByte(byte(rest))
	n.builder.WriteString(name)
	n.texts[n.current].s = n.builder.String()
	return at
}

// begin makes an empty text the current one.
func (n *names) begin(size int) {
	old := n.current
	if last := len(n.free) - 1; last >= 0 {
		n.current, n.free = n.free[last], n.free[:last]
	} else {
		n.current = uint32(len(n.texts))
		n.texts = append(n.texts, text{})
	}
	n.builder = new(strings.Builder)
	n.builder.Grow(size)
	if t := n.texts[old]; old != n.current && 2*t.holes > len(t.s) {
		n.clear(old)
	}
}

// get returns the name at a place. It keeps the text alive, but nothing else.
func (n *names) get(at uint32) string {
	name, _ := cut(n.texts[at>>textBits].s[at%textLen:])
	return name
}

// cut returns the first name in s and what follows it.
func cut(s string) (name, rest string) {
	length, i := uint(0), 0
	for shift := 0; ; shift += 7 {
		c := s[i]
		i++
		length |= uint(c&0x7f) << shift
		if c < 0x80 {
			return s[i : i+int(length)], s[i+int(length):]
		}
	}
}

// prefixed returns the bytes that a name takes.
func prefixed(name string) int {
	size := 1 + len(name)
	for rest := len(name); rest >= 0x80; rest >>= 7 {
		size++
	}
	return size
}

// drop forgets the name at a place.
func (n *names) drop(at uint32) {
	i := at >> textBits
	t := &n.texts[i]
	t.holes += prefixed(n.get(at))
	if i != n.current && 2*t.holes > len(t.s) {
		n.clear(i)
	}
}

// clear moves what is left in a text elsewhere. Each byte that moves is paid for by a hole.
func (n *names) clear(i uint32) {
	s := n.texts[i].s
	for offset, rest := 0, s; rest != ""; offset = len(s) - len(rest) {
		var name string
		name, rest = cut(rest)
		if set := n.moved(name, i<<textBits|uint32(offset)); set != nil {
			set(n.put(name))
		}
	}
	n.texts[i] = text{}
	n.free = append(n.free, i)
}
