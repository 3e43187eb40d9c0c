package robotstxt

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
)

// Rules is what a file asks of one crawler. It is a small immutable value, safe for concurrent use,
// and keeps its File in memory. The zero Rules stands for an unknown file and forbids everything.
type Rules struct {
	set *ruleset
}

// Verdict is the answer to whether a URL may be fetched, and the reason.
type Verdict struct {
	Allowed bool   // whether the URL may be fetched
	Pattern string // of the rule that decided, as written; empty if none matched
	Line    int    // of that rule in the file, from 1; 0 if none matched
}

// Allowed reports whether a URL may be fetched. It is Match(url).Allowed.
func (r Rules) Allowed(url string) bool { return r.Match(url).Allowed }

// Match reports whether a URL may be fetched, and names the deciding rule: the first in the file if
// several are equal. A verdict that forbids without a rule means that the file is unknown.
//
// The url is absolute, or the path and query of one. A fragment is ignored. If it starts with two
// slashes, or with neither a slash nor a scheme, the host comes first and then the path. Dot
// segments are not resolved: pass the URL that will be requested. The cost of a check is proportional to
// the length of the URL and to the number of rules with wildcards. With more than 32,768 of these, only
// the first 8 KiB of path and query count, which is as much as most servers accept; with fewer, more
// counts in proportion.
func (r Rules) Match(url string) Verdict {
	most := maxPath
	if r.set != nil {
		most = max(most, maxSteps/max(len(r.set.wild), 1))
	}
	path := target(url, most)
	if path == rep.Path { // always allowed (RFC 9309, 2.2.2)
		return Verdict{Allowed: true}
	}
	if r.set == nil {
		return Verdict{}
	}
	rule := r.set.decider(path)
	if rule == nil {
		return Verdict{Allowed: true}
	}
	return Verdict{Allowed: rule.allow(), Pattern: r.set.written(rule), Line: int(rule.line())}
}

// Delay returns the Crawl-delay that the file asks for, and whether it asks for one. It may be
// fractional, and is at most [MaxDelay]. Anything but a plain decimal number is ignored; of several
// the longest counts. A crawler with a group of its own does not inherit the delay of the group for
// *.
func (r Rules) Delay() (delay time.Duration, ok bool) {
	if r.set == nil {
		return 0, false
	}
	return r.set.delay, r.set.delayed
}

// File returns the file that the rules come from, or nil if it is unknown.
func (r Rules) File() *File {
	if r.set == nil {
		return nil
	}
	return r.set.file
}

// Named reports whether the file has a group for the crawler itself. Otherwise its rules are those
// for *, or there are none.
func (r Rules) Named() bool { return r.set != nil && r.set.named }

// A Rule is one Allow or Disallow line.
type Rule struct {
	Allow   bool   // whether it allows what it matches, or disallows it
	Pattern string // as written; an empty one matches nothing
	Line    int    // in the file, from 1
}

// Patterns yields the Allow and Disallow lines of the crawler's groups, in the order of the file.
// It rereads the text each time.
func (r Rules) Patterns() iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for l := range r.lines() {
			switch l.kind {
			case allowKind, disallowKind:
				if !yield(Rule{l.kind == allowKind, l.value, int(l.number)}) {
					return
				}
			}
		}
	}
}

// lines yields the lines of the crawler's groups.
func (r Rules) lines() iter.Seq[line] {
	return func(yield func(line) bool) {
		if r.set == nil {
			return
		}
		for _, group := range r.set.groups {
			for l := range r.set.file.linesOf(group) {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// Records yields the records of the crawler's groups, in the order of the file. It omits records
// that belong to no group by definition: Sitemap, Host, Clean-param, License.
func (r Rules) Records() iter.Seq[Record] {
	return records(func(yield func(line) bool) {
		for l := range r.lines() {
			if l.kind != sitemapKind && l.kind != fileKind && !yield(l) {
				return
			}
		}
	})
}

// A ruleset is the compiled form of Rules. It does not change once a caller can see it.
type ruleset struct {
	file     *File
	groups   []uint32
	text     string // of the file; canonical patterns are taken from it
	extra    string // the other patterns, see rule
	named    bool   // the groups are for the crawler itself
	delayed  bool
	delay    time.Duration
	prefixes prefixes // rules without wildcards
	wild     []rule   // the others, ordered by before
	needs    []uint64 // for each of these, the bytes that a path must have, see bytesIn
}

// size returns the approximate memory of a ruleset in bytes, without its file.
func (s *ruleset) size() int {
	return 320 + 4*len(s.groups) + len(s.extra) + len(s.extra)/8 +
		18*len(s.prefixes.sorted) + 23*len(s.wild)
}

// compile merges groups. It runs on demand, because a file may have thousands of groups and a
// crawler needs one.
func (f *File) compile(groups []uint32, named bool) *ruleset {
	s := &ruleset{file: f, groups: groups, named: named, text: f.text}
	var list []rule
	var extra []byte
	for _, group := range groups {
		for l := range f.linesOf(group) {
			switch l.kind {
			case allowKind, disallowKind:
				list, extra = appendRules(list, extra, l)
			case delayKind:
				if delay, ok := parseDelay(l.value); ok {
					s.delay, s.delayed = max(s.delay, delay), true
				}
			}
		}
	}
	s.extra = string(extra)
	s.setRules(list)
	return s
}

// appendRules adds the rule of a line. Like Google, it reads an Allow of index.htm or index.html as
// one of the directory, too. Patterns that are not in the text go to extra.
func appendRules(list []rule, extra []byte, l line) ([]rule, []byte) {
	body, anchored := strings.CutSuffix(l.value, "$")
	pattern := canonical(body, true)
	if pattern == "" || pattern[0] != '/' && pattern[0] != '*' {
		return list, extra // paths start with a slash, so no path could match
	}
	bits := l.number << lineShift
	if l.kind == allowKind {
		bits |= allowBit
	}
	add := func(pattern string, bits uint32) {
		start := l.valueStart
		if bits&rewrittenBit != 0 {
			start = uint32(len(extra))
			extra = append(append(extra, pattern...), '\n')
			extra = append(append(extra, l.value...), '\n')
		}
		list = append(list, newRule(pattern, start, bits))
	}
	own := bits
	if anchored {
		own |= anchorBit
	}
	if pattern != body {
		own |= rewrittenBit
	}
	add(pattern, own)
	slash := strings.LastIndexByte(pattern, '/')
	if l.kind == allowKind && slash >= 0 && strings.HasPrefix(pattern[slash:], "/index.htm") {
		add(pattern[:slash+1], bits|anchorBit|rewrittenBit)
	}
	return list, extra
}

// setRules takes the rules in the order of the file.
func (s *ruleset) setRules(list []rule) {
	var wild []uint64
	for i := range list {
		if !list[i].literal() {
			wild = append(wild, list[i].sortKey(i))
		}
	}
	slices.Sort(wild) // sorting numbers is several times as fast as sorting rules
	if len(wild) > 0 {
		s.wild = make([]rule, len(wild))
		s.needs = make([]uint64, len(wild))
	}
	for i, key := range wild {
		s.wild[i] = list[uint32(key)]
		s.needs[i] = bytesIn(s.pattern(&s.wild[i])) &^ bytesIn("*")
	}
	s.setPrefixes(slices.DeleteFunc(list, func(r rule) bool { return !r.literal() }))
}

// decider returns the first matching rule in the order of before, or nil.
func (s *ruleset) decider(path string) *rule {
	best := s.longestPrefix(path)
	if len(s.wild) == 0 {
		return best
	}
	has := bytesIn(path)
	for i, needs := range s.needs {
		if needs&^has != 0 {
			continue // the cheapest comparison, which most rules fail
		}
		w := &s.wild[i]
		if best != nil && !w.before(best) {
			break // the remaining rules are no better
		}
		if w.matches(s.pattern(w), path) {
			return w
		}
	}
	return best
}

// parseDelay accepts seconds as digits with at most one point. What ParseFloat accepts beyond that
// (signs, exponents, hexadecimal, Inf) is more likely a mistake than intended.
func parseDelay(value string) (delay time.Duration, ok bool) {
	if strings.Trim(value, "0123456789.") != "" {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(value, 64)
	// Too many digits yield infinity and an error, but they mean a very long delay.
	if err != nil && !math.IsInf(seconds, 1) {
		return 0, false
	}
	if seconds >= MaxDelay.Seconds() {
		return MaxDelay, true
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), true
}
