package rep

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOwnToken(t *testing.T) {
	for agent, want := range map[string]string{
		"ExampleBot":                           "examplebot",
		" ExampleBot/2.1 (+https://e.test/) x": "examplebot",
		"MJ12bot/v1.4.8":                       "mj12bot",
		"Mail.RU_Bot":                          "mail.ru_bot",
		"Mozilla/5.0 (compatible; Foo/1)":      "foo",
		"Mozilla/5.0 (Windows NT 10.0)":        "mozilla",
		"Foo Bar":                              "",
		"foo; bar":                             "",
		"(foo)":                                "",
		"*":                                    "",
		"":                                     "",
	} {
		require.Equal(t, want, OwnToken(agent), agent)
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		text, own string
		want      bool
	}{
		{"foo", "foo", true},
		{"FOO/1.0", "foo", true},
		{"foo2", "foo", true},
		{"foo", "foo2", false},
		{"MJ12bot", "mj12bot", true},
		{"MJ12bot", "mj", true},
		{"foobar", "foo", false},
		{"* others", "foo", false},
		{"", "foo", false},
	} {
		require.Equal(t, tt.want, Names(NameOf(tt.text), tt.own), "%+v", tt)
	}
	require.Equal(t, AnyAgent, NameOf("*"))
	require.Equal(t, AnyAgent, NameOf("* (all others)"))
	require.Empty(t, NameOf("*foo"))
}

// FuzzOrigin asserts that the fast path for plain URLs agrees with the parser, and that an origin
// is its own origin.
func FuzzOrigin(f *testing.F) {
	f.Add("HTTPS://u:p@Example.com:443/a?b#c")
	f.Add("http://[2001:DB8::1]:8080")
	f.Add("https://example.com?x")
	for _, port := range []string{
		"", "1", "80", "443", "080", "8080", "65535", "65536", "123456", "8o",
	} {
		f.Add("http://example.com:" + port)
		f.Add("https://127.0.0.1:" + port + "/a")
	}
	f.Add("http://example.com:80:80")
	f.Add("http://:8080/")
	f.Add("http://[fe80::1%25eth0]/")
	f.Add("http://[fe80::1%25%5B]/")
	f.Add("http://[fe80::1%25ä]/")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := Origin(in)
		if err != nil {
			require.ErrorIs(t, err, ErrLocate)
			require.Empty(t, got)
			return
		}
		parsed, err := parseOrigin(in)
		require.NoError(t, err, in)
		require.Equal(t, parsed, got, in)
		again, err := Origin(got + Path)
		require.NoError(t, err, in)
		require.Equal(t, got, again, in)
		require.Equal(t, strings.ToLower(got[:4]), got[:4], in)
	})
}

// TestOtherScriptsAreNotLowered: the robots.txt must come from the host that is requested.
func TestOtherScriptsAreNotLowered(t *testing.T) {
	for url, want := range map[string]string{
		"http://\u212Aatze.test/": "http://%E2%84%AAatze.test",
		"http://\u0130.TEST/":     "http://%C4%B0.test",
		"http://B\u00FCcher.test": "http://b%C3%BCcher.test",
	} {
		got, err := Origin(url)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestOriginOfAPlainURLNeedsNoAllocation(t *testing.T) {
	for _, url := range []string{
		"https://example.com/a?b", "http://127.0.0.1:8080/a", "http://a.test:65535",
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = Origin(url) }), url)
	}
}
