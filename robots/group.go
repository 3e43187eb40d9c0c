package robots

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// anyAgent is the key of the groups for crawlers that no group names. No token equals it.
const anyAgent = "*"

// noDelay is the delay of a group that asks for none; asking for zero is something else.
const noDelay = time.Duration(-1)

// rule is one Allow or Disallow line that has a value.
type rule struct {
	written string
	line    int32
	allow   bool
}

// group is the rules that follow one run of User-agent lines.
type group struct {
	first int32 // the index of its first rule in the file
	delay time.Duration
}

// parser turns records into groups.
type parser struct {
	file *File
	open bool            // further User-agent lines join the last group
	seen map[string]bool // sitemaps
}

func (p *parser) add(rec record) {
	switch rec.kind {
	case agentKind:
		p.addAgent(rec.value)
	case allowKind, disallowKind:
		p.addRule(rec)
	case delayKind:
		p.addDelay(rec.value)
	case sitemapKind:
		p.addSitemap(rec.value)
	}
}

// addAgent starts a group or joins the last one. Each token points to each group once, however
// often it is named: merging a group thousands of times is what a hostile file would like.
func (p *parser) addAgent(name string) {
	f := p.file
	if !p.open {
		f.groups = append(f.groups, group{first: int32(len(f.rules)), delay: noDelay})
		p.open = true
	}
	last := int32(len(f.groups) - 1)
	for _, token := range fileTokens(name) {
		of := f.agents[token]
		if token != "" && (len(of) == 0 || of[len(of)-1] != last) {
			f.agents[token] = append(of, last)
		}
	}
}

// addRule closes the group for further agents. Nothing else does: files put Crawl-delay and
// unknown lines between User-agent lines that are meant to stand together.
func (p *parser) addRule(rec record) {
	f := p.file
	if len(f.groups) == 0 {
		return // RFC 9309, 2.2.1: rules outside of groups are ignored
	}
	p.open = false
	if rec.value != "" {
		f.rules = append(f.rules, rule{rec.value, rec.line, rec.kind == allowKind})
	}
}

// addDelay belongs to the whole group wherever it stands in it. As with rules, it means nothing
// outside of groups.
func (p *parser) addDelay(value string) {
	groups := p.file.groups
	if delay, ok := parseDelay(value); ok && len(groups) > 0 {
		last := &groups[len(groups)-1]
		last.delay = max(last.delay, delay)
	}
}

// addSitemap takes the value as it is. Whether it is a URL, and relative to what, is for those
// to decide who know where the file came from.
func (p *parser) addSitemap(value string) {
	f := p.file
	if value == "" || p.seen[value] {
		return
	}
	if p.seen == nil {
		p.seen = make(map[string]bool)
	}
	p.seen[value] = true
	f.sitemaps = append(f.sitemaps, value)
}

// parseDelay accepts digits with at most one point, in seconds. What ParseFloat knows beyond
// that (signs, exponents, hexadecimal, Inf) is more likely an accident than a wish.
func parseDelay(value string) (delay time.Duration, ok bool) {
	if strings.Trim(value, "0123456789.") != "" {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(value, 64)
	// Too many digits make infinity and an error, but they are a number: a very long delay.
	if err != nil && !math.IsInf(seconds, 1) {
		return 0, false
	}
	if seconds >= MaxDelay.Seconds() {
		return MaxDelay, true
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), true
}

// fileTokens returns the tokens under which a User-agent value is found, in lower case: what
// the RFC takes for its token, and the token as agents with digits or points write it. The
// first has none of these and the second, where it differs, has some, so they never meet.
func fileTokens(name string) [2]string {
	words, ok := strings.CutPrefix(name, anyAgent)
	if ok && (words == "" || strings.ContainsAny(words[:1], asciiTrim)) {
		return [2]string{anyAgent} // "* (all others)" is meant as *
	}
	full := strings.ToLower(leading(name, isTokenByte))
	token := leading(full, isRFCTokenByte)
	if token == full {
		return [2]string{token}
	}
	return [2]string{token, full}
}

// productToken returns the token of a crawler's own name, in lower case.
func productToken(agent string) string {
	token := leading(strings.TrimSpace(agent), isTokenByte)
	if strings.EqualFold(token, "mozilla") {
		// Crawlers that pose as browsers say who they are after this word.
		_, after, _ := strings.Cut(agent, "compatible;")
		if own := leading(strings.TrimSpace(after), isTokenByte); own != "" {
			token = own
		}
	}
	return strings.ToLower(token)
}

// leading returns the longest prefix of s whose bytes are all in the set.
func leading(s string, in func(byte) bool) string {
	for i := range len(s) {
		if !in(s[i]) {
			return s[:i]
		}
	}
	return s
}

// isRFCTokenByte is the product-token of RFC 9309, 2.2.1.
func isRFCTokenByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '-'
}

// isTokenByte adds what the tokens of real crawlers hold, such as MJ12bot and Mail.RU_Bot.
func isTokenByte(c byte) bool {
	return isRFCTokenByte(c) || '0' <= c && c <= '9' || c == '.'
}
