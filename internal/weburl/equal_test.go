package weburl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// fragments are the tokens that matter to the grammar, so that random strings of them cover all of
// its corner cases.
var fragments = []string{
	"http:", "https:", "file:", "x:", "mailto:", "//", "//", "/", "/", "/", `\`, ".", "..", "%2e",
	"?", "#", "@", ":", ":", ":80", ":443", ":0", ":99999", "a", "b.test", "C|", "C:", "c", " ", "\t",
	"é", "[::1]", "[", "]", "1.2", "localhost", "%zz", "'", "^", "`", "{", "|", "\x00", "\x7f", "-+.",
}

func randomURL(random *rand.Rand) string {
	var url strings.Builder
	for range random.IntN(9) {
		url.WriteString(fragments[random.IntN(len(fragments))])
	}
	return url.String()
}

// TestParseMatchesTheStateMachine compares Parse with the standard's algorithm for random
// references and bases.
func TestParseMatchesTheStateMachine(t *testing.T) {
	bases := []string{
		"", "http://u:p@h.test:81/a/b?q#f", "file:///C:/a/b", "file://h/a?q", "x://h/a/b?q", "x:/a/b",
		"x:opaque?q", "x://h", "x:/.//a/b",
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			parsed := 0
			for range 15_000 {
				base := bases[random.IntN(len(bases))]
				if random.IntN(4) == 0 {
					base = randomURL(random)
				}
				if matchesStateMachine(t, randomURL(random), base) {
					parsed++
				}
			}
			if parsed < 4000 {
				t.Errorf("only %d of the random URLs are valid: too few for a meaningful test", parsed)
			}
		})
	}
}

// matchesStateMachine compares one URL, and reports whether it is valid.
func matchesStateMachine(t *testing.T, input, base string) bool {
	t.Helper()
	var fastBase *URL
	var slowBase *record
	if base != "" {
		u, err := Parse(base, nil)
		r, ok := parseByStateMachine(base, nil)
		if (err == nil) != ok {
			t.Fatalf("Parse(%q): error %v, state machine: valid %t", base, err, ok)
		}
		if !ok {
			return false
		}
		fastBase, slowBase = &u, &r
	}
	got, err := Parse(input, fastBase)
	want, ok := parseByStateMachine(input, slowBase)
	if (err == nil) != ok || ok && got != want.plain() {
		t.Fatalf("Parse(%q, %q)\n got %+v, %v\nwant %+v, %v",
			input, base, got, err, want.plain(), ok)
	}
	return ok
}

func FuzzParseMatchesTheStateMachine(f *testing.F) {
	f.Add("http:..\\x?#", "https://a.test/b/c")
	f.Add("file:c|/..", "file://h/D|/")
	f.Add("x:  ?", "")
	f.Fuzz(func(t *testing.T, input, base string) {
		if !utf8.ValidString(input) || !utf8.ValidString(base) {
			t.Skip() // the standard works on code points
		}
		if len(input) > 1000 || len(base) > 1000 {
			t.Skip() // the state machine takes quadratic time
		}
		matchesStateMachine(t, input, base)
	})
}
