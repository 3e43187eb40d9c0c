package robotstxt_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// This file is a slow second reading of RFC 9309. It is written to be obviously correct and shares
// nothing with the code except the extraction of an agent's own token.

var (
	refLineEnd  = regexp.MustCompile("\r\n|\r|\n")
	refColon    = regexp.MustCompile(`(?s)^([^:]*):(.*)$`)
	refTwoWords = regexp.MustCompile(`(?s)^([^ \t]+)[ \t]+([^ \t]+)$`)
	refAgentKey = regexp.MustCompile("^(?i:user-?agent|user agent)")
	refAllowKey = regexp.MustCompile("^(?i:allow)")
	refRuleKey  = regexp.MustCompile(
		"^(?i:allow|disallow|dissallow|dissalow|disalow|diasllow|disallaw)")
	refFileKey = regexp.MustCompile("^(?i:sitemap|site-map|host$|clean-param$|license$)")
	refGlobal  = regexp.MustCompile(`^\*([ \t\v\f]|$)`)
	refToken   = regexp.MustCompile(`^[A-Za-z_-]*`)
	refFull    = regexp.MustCompile(`^[A-Za-z0-9_.-]*`)
	refHalf    = regexp.MustCompile(`%[0-9A-Fa-f]{1,2}$`)
	refEscape  = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)
)

const (
	refBlank      = " \t\v\f"
	refUnreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	refReserved   = ":/?#[]@!&'()+,;=%"
)

// refVerdict reads the file from the start for one agent and one path, like Google's parser.
func refVerdict(body, agent, path string) robotstxt.Verdict {
	path = refCanonical(path, false)
	if path == "/robots.txt" {
		return robotstxt.Verdict{Allowed: true}
	}
	return refDecide(refRules(body, agent), path)
}

// refRules returns the rules that an agent obeys.
func refRules(body, agent string) []refRule {
	token := rep.OwnToken(agent)
	var own, global []refRule
	ownSeen, inOwn, inGlobal, inRules := false, false, false, false
	for n, line := range refLines(body) {
		key, value := refSplit(line)
		switch {
		case refAgentKey.MatchString(key):
			if inRules {
				inOwn, inGlobal, inRules = false, false, false
			}
			if refGlobal.MatchString(value) {
				inGlobal = true
			} else if refNames(value, token) {
				inOwn, ownSeen = true, true
			}
		case refRuleKey.MatchString(key):
			inRules = true
			r := refRule{refAllowKey.MatchString(key), value, n + 1}
			if inOwn {
				own = append(own, r)
			}
			if inGlobal {
				global = append(global, r)
			}
		}
	}
	if ownSeen {
		return own
	}
	return global
}

// refAgents returns what stands in the User-agent lines.
func refAgents(body string) (names []string) {
	for _, line := range refLines(body) {
		key, value := refSplit(line)
		if name := refFull.FindString(value); refAgentKey.MatchString(key) && name != "" {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

func refLines(body string) []string {
	for {
		before := body
		for _, mark := range []string{"\xEF\xBB\xBF", "\xEF\xBB", "\xEF"} {
			body = strings.TrimPrefix(body, mark)
		}
		if body == before {
			return refLineEnd.Split(body, -1)
		}
	}
}

// refRecords reads the records that are neither names nor rules, of an agent's groups, or of the groups
// for * if it has none.
func refRecords(body, agent string) []robotstxt.Record {
	type grouped struct {
		group int
		robotstxt.Record
	}
	var all []grouped
	names := make(map[int][]string)
	group, inRules := 0, true
	for n, line := range refLines(body) {
		key, value := refSplit(line)
		switch {
		case key == "":
		case refAgentKey.MatchString(key):
			if inRules {
				group++
			}
			inRules = false
			names[group] = append(names[group], value)
		case refRuleKey.MatchString(key):
			inRules = true
		default:
			all = append(all, grouped{group, robotstxt.Record{Line: n + 1, Key: key, Value: value}})
		}
	}
	in := func(of func(string) bool) (list []robotstxt.Record, found bool) {
		for _, values := range names {
			found = found || slices.ContainsFunc(values, of)
		}
		for _, r := range all {
			if slices.ContainsFunc(names[r.group], of) && !refFileKey.MatchString(r.Key) {
				list = append(list, r.Record)
			}
		}
		return list, found
	}
	token := rep.OwnToken(agent)
	own, found := in(func(value string) bool { return refNames(value, token) })
	if !found {
		own, _ = in(refGlobal.MatchString)
	}
	return own
}

type refRule struct {
	allow   bool
	pattern string
	line    int
}

func refSplit(line string) (key, value string) {
	line = line[:min(len(line), 16663)]
	line, _, _ = strings.Cut(line, "\x00")
	line, _, _ = strings.Cut(line, "#")
	line = strings.Trim(line, refBlank)
	m := refColon.FindStringSubmatch(line)
	if m == nil {
		m = refTwoWords.FindStringSubmatch(line)
	}
	if m == nil || strings.Trim(m[1], refBlank) == "" {
		return "", ""
	}
	return strings.Trim(m[1], refBlank), strings.Trim(m[2], refBlank)
}

func refNames(value, token string) bool {
	cut := refToken
	if cut.FindString(token) != token {
		cut = refFull
	}
	found := cut.FindString(value)
	return found != "" && strings.EqualFold(found, token)
}

func refDecide(rules []refRule, path string) robotstxt.Verdict {
	best, octets := robotstxt.Verdict{Allowed: true}, 0
	try := func(r refRule, pattern string) {
		n := len(pattern)
		better := n > octets || n == octets && r.allow && !best.Allowed
		if n > 0 && better && refMatches(pattern, path) {
			best, octets = robotstxt.Verdict{Allowed: r.allow, Pattern: r.pattern, Line: r.line}, n
		}
	}
	for _, r := range rules {
		pattern := refCanonical(r.pattern, true)
		try(r, pattern)
		if i := strings.LastIndex(pattern, "/index.htm"); r.allow && i >= 0 &&
			!strings.Contains(pattern[i+1:], "/") {
			try(r, pattern[:i+1]+"$")
		}
	}
	return best
}

// refMatches tracks the set of all positions in the path up to which the pattern can have matched.
func refMatches(pattern, path string) bool {
	at := make([]bool, len(path)+1)
	at[0] = true
	for i, c := range []byte(pattern) {
		if c == '$' && i == len(pattern)-1 {
			return at[len(path)]
		}
		next := make([]bool, len(path)+1)
		for j := range at {
			switch {
			case c == '*':
				next[j] = at[j] || j > 0 && next[j-1]
			case j > 0:
				next[j] = at[j-1] && path[j-1] == c
			}
		}
		at = next
	}
	for _, reached := range at {
		if reached {
			return true
		}
	}
	return false
}

// refLiteral stands for a star or a dollar sign that is meant literally, with as many octets as
// its escape.
var refLiteral = map[byte]string{'*': "\x1a\x1b\x1c", '$': "\x1d\x1e\x1f"}

// refCanonical rewrites unit by unit, where a unit is an escape or an octet.
func refCanonical(s string, isPattern bool) string {
	end := ""
	if isPattern && strings.HasSuffix(s, "$") {
		s, end = s[:len(s)-1], "$"
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && refEscape.MatchString(s[i:]):
			octet, _ := hex.DecodeString(s[i+1 : i+3])
			makesEscape := refHalf.MatchString(out.String() + string(rune(octet[0])))
			switch {
			case refLiteral[octet[0]] != "":
				out.WriteString(refLiteral[octet[0]])
			case strings.IndexByte(refUnreserved, octet[0]) >= 0 && !makesEscape:
				out.Write(octet)
			default:
				out.WriteString(strings.ToUpper(s[i : i+3]))
			}
			i += 2
		case strings.IndexByte(refUnreserved+refReserved, c) >= 0 || c == '*' && isPattern:
			out.WriteByte(c)
		case refLiteral[c] != "":
			out.WriteString(refLiteral[c])
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String() + end
}

// TestReferenceKnowsRight pins the reference to a few verdicts that are easy to verify by hand.
func TestReferenceKnowsRight(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"/a", "/ab", true},
		{"/a$", "/ab", false},
		{"/*b$", "/abab", true},
		{"/*ab*c", "/aabbcd", true},
		{"/*ab*c", "/acb", false},
		{"a", "/a", false},
	} {
		require.Equal(t, tt.want, refMatches(tt.pattern, tt.path), "%+v", tt)
	}
	require.Equal(t, "/a\x1d\x1e\x1fb/%E3%81%82~%2F*$", refCanonical("/%61$b/\u3042%7e%2f*$", true))
	require.Equal(t, "/\x1a\x1b\x1c\x1d\x1e\x1f", refCanonical("/*%24", false))
}

// TestModel compares the package with the reference on files from a small alphabet, where
// patterns meet, tie and repeat all the time.
func TestModel(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		body := randomFile(rnd)
		file := robotstxt.Parse([]byte(body))
		for range 25 {
			agent := pick(rnd, "foo", "bar", "foo7", "Mozilla/5.0 (compatible; bar/1)", "none", "foo x")
			path := "/" + randomText(rnd, 8, "a", "b", "/x", "%41", "%2f", "é", "?", "index.html", "$", "%24")
			want := refVerdict(body, agent, path)
			rules := file.Rules(agent)
			require.Equal(t, want, rules.Match("http://h.test"+path),
				"seed %d, Match(%q) for %q of:\n%s", seed, path, agent, body)
			require.Equal(t, refRecords(body, agent), slices.Collect(rules.Records()),
				"seed %d, records for %q of:\n%s", seed, agent, body)
			requireOracleAgrees(t, body, agent, path)
		}
	}
}

func randomFile(rnd *rand.Rand) string {
	wild := []string{"*", "$", "a", "b", "/", "%41", "%2F", "é", "index.htm", " ", "%", "24"}
	literal := []string{"a", "b", "/", "A", "%2F", "é", "$"}
	alphabet := literal
	if rnd.IntN(2) == 0 {
		alphabet = wild
	}
	var body strings.Builder
	for range 2 + rnd.IntN(12) {
		switch rnd.IntN(7) {
		case 0, 1:
			body.WriteString("User-agent: " + pick(rnd, "*", "foo", "foo7/2", "BAR x", "", "* y"))
		case 2:
			body.WriteString(pick(rnd, "Crawl-delay: 1", "Other: x", "#", "Sitemap: y", "nonsense",
				"Host : a", "two words"))
		case 3, 4:
			body.WriteString("Allow: " + pick(rnd, "/", "*", "") + randomText(rnd, 5, alphabet...))
		default:
			body.WriteString("Disallow: /" + randomText(rnd, 5, alphabet...))
		}
		body.WriteString(pick(rnd, "\n", "\n", "\r\n", "\r"))
	}
	return body.String()
}

func randomText(rnd *rand.Rand, most int, words ...string) string {
	var text strings.Builder
	for range rnd.IntN(most + 1) {
		text.WriteString(pick(rnd, words...))
	}
	return text.String()
}

func pick(rnd *rand.Rand, words ...string) string { return words[rnd.IntN(len(words))] }
