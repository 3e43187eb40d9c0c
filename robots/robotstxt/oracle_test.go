package robotstxt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/temoto/robotstxt"

	ours "github.com/spinneret-go/spinneret/robots/robotstxt"
)

// oracle asks temoto/robotstxt, an independent implementation, about some rules. It gets a
// canonical text instead of the file, because it rejects whole files for one bad line. It gets only
// plain prefixes, because it ranks wildcards by the length of a regular expression. It has no
// answer for other rules.
func oracle(rules []refRule, path string) (allowed, asked bool) {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b refRule) int { // of equal rules it takes the first
		switch {
		case a.allow == b.allow:
			return 0
		case a.allow:
			return -1
		}
		return 1
	})
	var text strings.Builder
	text.WriteString("User-agent: *\n")
	for _, r := range rules {
		pattern := refCanonical(r.pattern, true)
		if strings.ContainsAny(pattern, "*$") || r.allow && strings.Contains(pattern, "/index.htm") {
			return false, false
		}
		if !strings.HasPrefix(pattern, "/") {
			continue
		}
		if r.allow {
			text.WriteString("Allow: " + pattern + "\n")
		} else {
			text.WriteString("Disallow: " + pattern + "\n")
		}
	}
	data, err := robotstxt.FromString(text.String())
	if err != nil {
		return false, false
	}
	path, _, _ = strings.Cut(path, "#")
	path = refCanonical(path, false)
	return path == "/robots.txt" || data.FindGroup("*").Test(path), true
}

// requireOracleAgrees compares the package with the oracle, where that has an answer.
func requireOracleAgrees(t *testing.T, body, agent, path string) (asked bool) {
	t.Helper()
	return oracleAgrees(t, refRules(body, agent), ours.Parse([]byte(body)).Rules(agent), path)
}

func oracleAgrees(t *testing.T, rules []refRule, own ours.Rules, path string) (asked bool) {
	t.Helper()
	want, asked := oracle(rules, path)
	if asked {
		got := own.Match(path)
		require.Equal(t, want, got.Allowed, "%+v for %q in:\n%s", got, path, own.File())
	}
	return asked
}

func TestOracleIsAsked(t *testing.T) {
	for _, tt := range []struct {
		rules string
		want  bool
	}{
		{"disallow: /a\n", true},
		{"", true},
		{"disallow: /a\ndisallow: /b*c\n", false},
		{"disallow: /a$\n", false},
		{"allow: /index.html\n", false},
		{"disallow: /a$b\n", true},
		{"disallow: /a%2Ab\n", true},
		{"disallow: a\ndisallow: /b\n", true},
	} {
		_, asked := oracle(refRules("user-agent: *\n"+tt.rules, "foo"), "/")
		require.Equal(t, tt.want, asked, "%+v", tt)
	}
}

// FuzzOracle asserts that temoto and this package agree on any literal rules.
func FuzzOracle(f *testing.F) {
	f.Add("a\n/b\n//\n%41\nA:b\n\u00e9\n", "/a?b")
	f.Add("\na#b\n +c:$d\n%\n%2\n%2a", "/%2A")
	f.Fuzz(func(t *testing.T, lines, path string) {
		body := "user-agent: *\n"
		for line := range strings.Lines(lines) {
			line = strings.TrimRight(line, "\r\n*$")
			if len(line)%2 == 0 {
				body += "allow: /" + line + "\n"
			} else {
				body += "disallow: /" + line + "\n"
			}
		}
		requireOracleAgrees(t, body, "foo", "/x"+path)
		for line := range strings.Lines(lines) { // paths that match, too
			requireOracleAgrees(t, body, "foo", "/x/../"+line+path)
			if !strings.HasPrefix(line, "/") {
				requireOracleAgrees(t, body, "foo", "/"+line+path)
			}
		}
	})
}
