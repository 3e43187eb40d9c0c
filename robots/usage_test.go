package robots

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wishes writes preferences in short: "a=y b=n".
func wishes(list []Preference) string {
	var words []string
	for _, p := range list {
		if p.Granted {
			words = append(words, p.Label+"=y")
		} else {
			words = append(words, p.Label+"=n")
		}
	}
	return strings.Join(words, " ")
}

func TestUsage(t *testing.T) {
	const file = "content-usage: early=n\nuser-agent: *\nallow: /\ndisallow: /never/\n" +
		"content-usage: train-ai=n\nContent-Usage: /ai-ok/ train-ai=y, search=y\n" +
		"content-usage: /ai-ok/*.pdf$ train-ai=n\ncontent-usage: /ai-ok/%7Ea train-ai=n;x=1\n" +
		"content-usage: /both ai-use=y,search=y\ncontent-usage: /both ai-use=n\n" +
		"content-usage: /bad train-ai=y,,\ncontent-usage: /words Train-AI=y\n" +
		"content-usage: /other train-ai=\"y\", a=?1, b, search=n\n"
	for url, want := range map[string]string{
		"https://h.test/":      "train-ai=n",
		"/ai-ok":               "train-ai=n",
		"/ai-ok/x":             "search=y train-ai=y",
		"/ai-ok/x.pdf":         "train-ai=n",
		"/ai-ok/x.pdf?y":       "search=y train-ai=y",
		"/ai-ok/~ab":           "train-ai=n",
		"/both":                "ai-use=n search=y",
		"/bad":                 "", // the longest path decides, even if it states nothing
		"/words":               "",
		"/other":               "search=n",
		"/never/":              "",
		"https://h.test/a#/ai": "train-ai=n",
	} {
		require.Equal(t, want, wishes(Parse([]byte(file)).Rules("foo").Usage(url)), url)
	}
	require.Empty(t, Rules{}.Usage("/"))
}

func TestSignals(t *testing.T) {
	const file = "user-agent: foo\ncontent-signal: search=yes, AI-Input = NO ,ai-train=no\n" +
		"content-signal: /open/ ai-train=yes\ndisallow: /private/\n" +
		"user-agent: bar\ncontent-signal: search=yes\ncontent-signal: search=no,,x,=yes,a=maybe,b=yes=no\n"
	for _, tt := range []struct{ agent, url, want string }{
		{"foo", "/", "ai-input=n ai-train=n search=y"},
		{"foo", "/open/a", "ai-train=y"},
		{"foo", "/private/", ""},
		{"bar", "/", "search=n"},
		{"other", "/", ""},
	} {
		rules := Parse([]byte(file)).Rules(tt.agent)
		require.Equal(t, tt.want, wishes(rules.Signals(tt.url)), "%+v", tt)
	}
}

func TestUsageFromHeader(t *testing.T) {
	h := http.Header{"Content-Usage": {"train-ai=n, search=y", "search=n;why=1"}}
	require.Equal(t, "search=n train-ai=n", wishes(UsageFromHeader(h)), "one dictionary, last wins")
	require.Empty(t, UsageFromHeader(http.Header{}))
}

func TestMergePreferences(t *testing.T) {
	a := []Preference{{"x", true}, {"y", true}, {"z", false}}
	b := []Preference{{"y", false}, {"z", true}, {"w", true}}
	require.Equal(t, "w=y x=y y=n z=n", wishes(MergePreferences(a, b)))
	require.Equal(t, "w=y x=y y=n z=n", wishes(MergePreferences(b, a)))
	require.Equal(t, []Preference{{"x", true}, {"y", true}, {"z", false}}, a, "left as it was")
	require.Empty(t, MergePreferences())
}

// RFC 9651, 4.2: a dictionary is read whole or not at all.
func TestDictionary(t *testing.T) {
	for value, want := range map[string]string{
		"":                                       "",
		"  ":                                     "",
		"a=y":                                    "a=y",
		" a=y ":                                  "a=y",
		"a=y,b=n":                                "a=y b=n",
		"a=y \t,\t b=n":                          "a=y b=n",
		"a=y;q=1.5;r,b=n":                        "a=y b=n",
		"*a.b-c_d=y":                             "*a.b-c_d=y",
		"a=n, a=y":                               "a=y",
		"a=n, a=1":                               "",
		"a=n, a":                                 "",
		"a, b=?0;c, d=n":                         "d=n",
		"a=-12, b=1.250, c=999999999999999, d=y": "d=y",
		"a=\"x, \\\"y\\\\\", d=y":                "d=y",
		"a=:aGk=:, d=y":                          "d=y",
		"a=@-1659578233, d=y":                    "d=y",
		"a=%\"f%c3%bc\", d=y":                    "d=y",
		"a=(), b=( 1  tok;x \"s\" );y=2, d=y":    "d=y",
		"a=tok/en:x, d=y":                        "d=y",
		// Faults anywhere spoil all of it.
		"a=y,":                    "",
		",a=y":                    "",
		"a=y b=n":                 "",
		"a=y, =?1":                "",
		"a=y;=?1":                 "",
		"A=y":                     "",
		"a=y, 1=n":                "",
		"a=":                      "",
		"a = y":                   "",
		"a=y, b=\"":               "",
		"a=y, b=\"\\x\"":          "",
		"a=y, b=\"\u00e9\"":       "",
		"a=y, b=(1":               "",
		"a=y, b=(1,2)":            "",
		"a=y, b=(1\"2\")":         "",
		"a=y, b=:x":               "",
		"a=y, b=?2":               "",
		"a=y, b=1.":               "",
		"a=y, b=1.2345":           "",
		"a=y, b=1234567890123.1":  "",
		"a=y, b=1234567890123456": "",
		"a=y, b=--1":              "",
		"a=y, b=@1.5":             "",
		"a=y, b=%\"%C3\"":         "",
		"a=y, b=%x":               "",
		"a=y;":                    "",
		"a=y;A=1":                 "",
		"\ta=y":                   "",
	} {
		require.Equal(t, want, wishes(parseUsage(value)), "%q", value)
	}
}
