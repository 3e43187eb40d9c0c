package robots

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A span of a File's text is where a string lies in it. 16 bits of length are enough: no line
// counts for more than maxLine bytes, and escaping makes three of one at most.
type span struct {
	at   uint32
	size uint16
}

var _ = [math.MaxUint16 - 3*maxLine]struct{}{} // does not compile if they are not

func (s span) of(text string) string { return text[s.at : s.at+uint32(s.size)] }

// group is what follows one run of User-agent lines: from its places in text, rules and notes to
// those of the next group.
type group struct {
	text, rules, notes uint32
}

// naming is a product token, in lower case, and a group that names it.
type naming struct {
	token span
	group uint32
}

// parser turns records into groups. Everything that it keeps of the body goes into one text.
type parser struct {
	text   []byte
	rules  []rule
	notes  []note
	groups []group
	agents []naming
	open   bool // further User-agent lines join the last group
}

// newParser expects lines as long as those of most files, to spare the growth of what is kept only
// until its size is known.
func newParser(size int) *parser {
	return &parser{
		text:  make([]byte, 0, size*3/4),
		rules: make([]rule, 0, size/24),
	}
}

// add sorts a record to where its kind belongs.
func (p *parser) add(rec record) {
	switch rec.kind {
	case agentKind:
		p.addAgent(rec.value)
	case allowKind, disallowKind:
		p.addRule(rec)
	default:
		p.addNote(rec)
	}
}

// addAgent starts a group or joins the last one. A name without a token starts one, too, or the
// rules below it would fall to those above.
func (p *parser) addAgent(name string) {
	if !p.open {
		p.groups = append(p.groups, p.end())
		p.open = true
	}
	token, full := fileTokens(name)
	if full == "" {
		return
	}
	last := uint32(len(p.groups) - 1)
	at := uint32(len(p.text))
	p.text = append(p.text, full...)
	p.agents = append(p.agents, naming{span{at, uint16(len(full))}, last})
	if token != "" && token != full { // of which it is the beginning
		p.agents = append(p.agents, naming{span{at, uint16(len(token))}, last})
	}
}

// end is where the next group would begin.
func (p *parser) end() group {
	return group{uint32(len(p.text)), uint32(len(p.rules)), uint32(len(p.notes))}
}

// addRule closes the group for further agents. Nothing else does: files put Crawl-delay and
// unknown lines between User-agent lines that are meant to stand together.
func (p *parser) addRule(rec record) {
	if len(p.groups) == 0 {
		return // RFC 9309, 2.2.1: rules outside of groups are ignored
	}
	p.open = false
	pattern, bits := settledPattern(rec.value)
	if pattern == "" || pattern[0] != '/' && pattern[0] != '*' {
		return // paths start with a slash, so no path could match
	}
	bits |= uint32(rec.line) << lineShift
	if rec.kind == allowKind {
		bits |= allowBit
	}
	at := uint32(len(p.text))
	if bits&rewrittenBit != 0 {
		p.text = append(append(p.text, pattern...), '\n')
	}
	p.text = append(append(p.text, rec.value...), '\n')
	p.rules = append(p.rules, newRule(pattern, at, bits))
}

// addNote keeps a record as it is written. Its key ends at the first colon, which no key holds,
// and its value at the end of the line, which no value holds.
func (p *parser) addNote(rec record) {
	p.notes = append(p.notes, note{
		at:    uint32(len(p.text)),
		group: uint32(len(p.groups)),
		bits:  uint32(rec.line)<<kindBits | uint32(rec.kind),
	})
	p.text = append(append(p.text, rec.key...), ':')
	p.text = append(append(p.text, rec.value...), '\n')
}

// file copies what was found into slices of just the right size, because files are kept for long.
func (p *parser) file() *File {
	text := string(p.text)
	return &File{
		text:   text,
		rules:  exact(p.rules),
		notes:  exact(p.notes),
		groups: exact(p.groups),
		agents: exact(sortAgents(p.agents, text)),
	}
}

// sortAgents makes each token point to each group once, however often it is named: merging a
// group thousands of times is what a hostile file would like.
func sortAgents(agents []naming, text string) []naming {
	order := func(a, b naming) int {
		if c := strings.Compare(a.token.of(text), b.token.of(text)); c != 0 {
			return c
		}
		return cmp.Compare(a.group, b.group)
	}
	slices.SortFunc(agents, order)
	return slices.CompactFunc(agents, func(a, b naming) bool { return order(a, b) == 0 })
}

// exact returns a copy without spare capacity, and nil for nothing.
func exact[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return append(make([]T, 0, len(list)), list...)
}

// find returns the first place in agents where a token is.
func (f *File) find(token string) (first int, found bool) {
	return slices.BinarySearchFunc(f.agents, token, func(a naming, token string) int {
		return strings.Compare(a.token.of(f.text), token)
	})
}

// naming returns the agents from the first on that have the same token.
func (f *File) naming(first int) []naming {
	token := f.agents[first].token.of(f.text)
	end := first + 1
	for end < len(f.agents) && f.agents[end].token.of(f.text) == token {
		end++
	}
	return f.agents[first:end]
}

// bounds returns where a group begins and ends.
func (f *File) bounds(n uint32) (begin, end group) {
	if int(n)+1 < len(f.groups) {
		return f.groups[n], f.groups[n+1]
	}
	return f.groups[n], group{uint32(len(f.text)), uint32(len(f.rules)), uint32(len(f.notes))}
}
