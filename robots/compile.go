package robots

import (
	"slices"
	"time"

	"github.com/temoto/robotstxt"
)

// ruleset is the compiled form of Rules. It does not change once a caller can see it.
type ruleset struct {
	denyAll  bool
	delayed  bool
	delay    time.Duration
	text     string           // what the rules and notes below point into
	prefixes prefixes         // rules without wildcards
	wild     []rule           // the others, in the order of before
	needs    []uint64         // which octets a path must have for each of these, as octetsIn
	notes    []note           // the groups' records, in the order of the file
	second   *robotstxt.Group // decides instead of us where not nil
}

// nothing is the ruleset of a file that could not be had.
var nothing = &ruleset{denyAll: true}

// compile merges the groups that these namings lead to. It is done on demand, because a file may
// hold thousands of groups and a crawler asks for one.
//
// The result shares the text of the file if it needs half of it, and has a copy of its part
// otherwise: so Rules that outlive their File keep at most twice what they need.
func (f *File) compile(named []naming) *ruleset {
	set := &ruleset{text: f.text}
	need, rules := 0, 0
	for _, n := range named {
		begin, end := f.bounds(n.group)
		need += int(end.text - begin.text)
		rules += int(end.rules - begin.rules)
	}
	var own []byte
	if 2*need < len(f.text) {
		own = make([]byte, 0, need)
	}
	list := make([]rule, 0, rules)
	for _, n := range named {
		begin, end := f.bounds(n.group)
		var shift uint32 // wraps around where the part moves to the front
		if own != nil {
			shift = uint32(len(own)) - begin.text
			own = append(own, f.text[begin.text:end.text]...)
		}
		list = f.appendRules(list, begin, end, shift)
		set.notes = f.appendNotes(set.notes, begin, end, shift)
	}
	if own != nil {
		set.text = string(own)
	}
	set.notes = exact(set.notes)
	set.setRules(list)
	set.setDelay()
	return set
}

// appendRules adds the rules of a group whose text is moved. Only here a rule for an index page
// becomes two: a File would have to keep the second for every agent.
func (f *File) appendRules(list []rule, begin, end group, shift uint32) []rule {
	for _, r := range f.rules[begin.rules:end.rules] {
		dir, ok := r.directory(f.text)
		r.at += shift
		list = append(list, r)
		if ok {
			dir.at += shift
			list = append(list, dir)
		}
	}
	return list
}

// appendNotes adds the records of a group, without those that hold for the file wherever they
// stand.
func (f *File) appendNotes(list []note, begin, end group, shift uint32) []note {
	for _, n := range f.notes[begin.notes:end.notes] {
		if !n.kind().ofFile() {
			n.at += shift
			list = append(list, n)
		}
	}
	return list
}

// setRules takes the rules in the order of the file.
func (s *ruleset) setRules(list []rule) {
	var wild []uint64
	for i := range list {
		if !list[i].literal() {
			wild = append(wild, list[i].sortKey(i))
		}
	}
	// Numbers sort several times as fast as what they stand for.
	slices.Sort(wild)
	if len(wild) > 0 {
		s.wild = make([]rule, len(wild))
		s.needs = make([]uint64, len(wild))
	}
	for i, key := range wild {
		s.wild[i] = list[uint32(key)]
		s.needs[i] = octetsIn(s.wild[i].pattern(s.text)) &^ octetsIn("*")
	}
	literal := slices.DeleteFunc(list, func(r rule) bool { return !r.literal() })
	s.prefixes = newPrefixes(literal, s.text)
	if len(wild) == 0 && len(s.prefixes.sorted) <= maxSecond {
		s.second = secondEngine(s.prefixes.sorted, s.text)
	}
}

// setDelay finds the longest delay, which is the one that breaks none of the requests.
func (s *ruleset) setDelay() {
	for _, n := range s.notes {
		if n.kind() != delayKind {
			continue
		}
		if delay, ok := parseDelay(n.value(s.text)); ok {
			s.delay, s.delayed = max(s.delay, delay), true
		}
	}
}
