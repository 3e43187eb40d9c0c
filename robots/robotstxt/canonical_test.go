package robotstxt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// With percent signs, the markers of the canonical form are what a browser would request.
var unmarked = strings.NewReplacer(literalDollar, "%24", literalStar, "%2A")

// FuzzCanonical asserts that the canonical form is idempotent, pure ASCII, and has only characters
// that a URI may contain.
func FuzzCanonical(f *testing.F) {
	f.Add("/a%zz%2f%7E %41*$\xff\x01\x02\x03")
	f.Fuzz(func(t *testing.T, in string) {
		for _, isPattern := range []bool{false, true} {
			once := canonical(in, isPattern)
			if twice := canonical(unmarked.Replace(once), isPattern); twice != once {
				t.Errorf("canonical(%q) = %q, then %q", in, once, twice)
			}
			clean := unmarked.Replace(once)
			if strings.ContainsFunc(clean, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("canonical(%q) = %q", in, once)
			}
		}
	})
}

// TestEscapesAreMatchedWhole: a pattern that ends or begins within the escape of a literal star or
// dollar sign must not match it, whatever that escape is inside.
func TestEscapesAreMatchedWhole(t *testing.T) {
	for _, tt := range []struct {
		pattern, url string
		want         bool
	}{
		{"/a%", "/a$", false},
		{"/a%2", "/a*", false},
		{"/*24", "/a$", false},
		{"/*4$", "/a$", false},
		{"/*A/b", "/*/b", false},
		{"/*\x01", "/a$", false},
		{"/a%24", "/a$", true},
		{"/a%24", "/a%24", true},
		{"/a$b", "/a%24b", true},
		{"/*%2A", "/a*", true},
		{"/*%24$", "/$$", true},
		{"/a%", "/a%", true},
		{"/a%", "/a%2F", true},
		{"/*%", "/a%2F", true},
		{"/*%2", "/a%2F", true},
	} {
		rules := Parse([]byte("user-agent: *\ndisallow: " + tt.pattern)).Rules("foo")
		require.Equal(t, !tt.want, rules.Allowed(tt.url), "%+v", tt)
		_, got := Matcher(tt.url)(tt.pattern)
		require.Equal(t, tt.want, got, "%+v", tt)
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, url string
		octets       int
		ok           bool
	}{
		{"/a", "https://h.test/ab", 2, true},
		{"/a$", "/a", 3, true},
		{"/*b$", "/ab?", 4, false},
		{"/\u00e9", "/%C3%A9x", 7, true},
		{"/a%24", "/a$", 5, true},
		{"", "/", 0, false},
		{"$", "/", 0, false},
		{"a", "/a", 0, false},
		{"*", "/a", 1, true},
		{"/" + strings.Repeat("\xff", 1<<16), "/", 1 + 3*(maxLine-1), false},
	} {
		octets, ok := Matcher(tt.url)(tt.pattern)
		require.Equal(t, tt.octets, octets, "%.20q", tt.pattern)
		require.Equal(t, tt.ok, ok, "%.20q", tt.pattern)
	}
}

// TestNothingHidesThePath: neither a user nor escapes that the client has yet to write.
func TestNothingHidesThePath(t *testing.T) {
	rules := Parse([]byte("user-agent: *\ndisallow: /private\ndisallow: /*secret\ndisallow: /*.cgi$\n")).Rules("foo")
	for _, user := range []string{"u:p@", "a;b@", "a:b;c@", "a@;b@"} {
		for _, start := range []string{"http://", "//"} {
			require.False(t, rules.Allowed(start+user+"h.test/private/x"), user)
			require.True(t, rules.Allowed(start+user+"h.test/"), user)
		}
	}
	require.False(t, rules.Allowed("//h.test;private@x/private"))
	for _, pad := range []string{"a", "|", "{", "$", "\u00fc", "%7b"} {
		padding := "http://h.test/" + strings.Repeat(pad, 8000/len(pad))
		require.False(t, rules.Allowed(padding+"?secret"), pad)
		require.False(t, rules.Allowed(padding+".cgi"), pad)
	}
}
