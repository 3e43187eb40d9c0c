package scheduler

import (
	"encoding/binary"
	"strings"
)

const (
	textBits = 14
	textLen  = 1 << textBits        // bytes in a text; a single longer name gets a text of its own
	maxTexts = 1 << (32 - textBits) // so that 32 bits suffice for the text and the offset

	// spareTexts are reserved for the names of one task, each of which may be too long to share a
	// text, and for names that are moved.
	spareTexts = 4
)

// names stores names in texts, one after another, each preceded by its length. A text is
// append-only, so that its substrings can be returned without a copy. A forgotten name leaves a
// hole. When holes make up most of a text, the remaining names move elsewhere, and the text is
// freed once no caller has a substring of it.
type names struct {
	texts   []text
	free    []uint32         // numbers of free texts
	current uint32           // number of the text that is written to
	builder *strings.Builder // of the current text; nil before the first name

	// moved is called with each name that is about to move, and its old position. It returns a
	// function to call with the new one, or nil if the name is no longer in use.
	moved func(name string, from uint32) (set func(to uint32))
}

type text struct {
	s     string
	holes int // bytes of forgotten names
}

// full reports whether there is no room for the names of another task, which takes 4 GiB of names.
func (n *names) full() bool { return len(n.texts)-len(n.free) > maxTexts-spareTexts }

// put stores a copy of a name and returns its position. It requires that the names are not full.
func (n *names) put(name string) uint32 {
	size := prefixed(name)
	if n.builder == nil || n.builder.Len()+size > textLen && n.builder.Len() > 0 {
		n.begin(max(textLen, size))
	}
	at := n.current<<textBits | uint32(n.builder.Len())
	var length [binary.MaxVarintLen64]byte
	n.builder.Write(binary.AppendUvarint(length[:0], uint64(len(name))))
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

// get returns the name at a position. The result keeps its text alive, but nothing else.
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

// prefixed returns the size of a name with its length.
func prefixed(name string) int {
	var length [binary.MaxVarintLen64]byte
	return len(binary.AppendUvarint(length[:0], uint64(len(name)))) + len(name)
}

// drop forgets the name at a position.
func (n *names) drop(at uint32) {
	i := at >> textBits
	t := &n.texts[i]
	t.holes += prefixed(n.get(at))
	if i != n.current && 2*t.holes > len(t.s) {
		n.clear(i)
	}
}

// clear moves the remaining names of a text elsewhere. For each byte that moves, one is freed.
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
