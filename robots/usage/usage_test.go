package usage

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// words writes preferences in short, with the lines that decide: "a=y:3 b=n:4".
func words(list []Preference) string {
	var words []string
	for _, p := range list {
		wish := "n"
		if p.Allowed {
			wish = "y"
		}
		words = append(words, fmt.Sprintf("%s=%s:%d", p.Label, wish, p.Line))
	}
	return strings.Join(words, " ")
}

func rulesOf(text, agent string) robotstxt.Rules { return robotstxt.Parse([]byte(text)).Rules(agent) }

func TestContentUsage(t *testing.T) {
	const file = "content-usage: early=n\nuser-agent: *\nallow: /\ndisallow: /never/\n" +
		"content-usage: train-ai=n\nContent-Usage: /ai-ok/ train-ai=y, search=y\n" +
		"content-usage: /ai-ok/*.pdf$ train-ai=n\ncontent-usage: /ai-ok/%7Ea train-ai=n;x=1\n" +
		"content-usage: /both ai-use=y,search=y\ncontent-usage: /both \tai-use=n\n" +
		"content-usage: /bad train-ai=y,,\ncontent-usage: /words Train-AI=y\n" +
		"content-usage: /other train-ai=\"y\", a=?1, b, search=n\ncontent-usage: /empty\n"
	for url, want := range map[string]string{
		"https://h.test/":      "train-ai=n:5",
		"/ai-ok":               "train-ai=n:5",
		"/ai-ok/x":             "search=y:6 train-ai=y:6",
		"/ai-ok/x.pdf":         "train-ai=n:7",
		"/ai-ok/x.pdf?y":       "search=y:6 train-ai=y:6",
		"/ai-ok/~ab":           "train-ai=n:8",
		"/both":                "ai-use=n:10 search=y:9",
		"/bad":                 "", // the longest path decides, even if it states nothing
		"/words":               "",
		"/other":               "search=n:13",
		"/empty":               "",
		"/never/":              "",
		"https://h.test/a#/ai": "train-ai=n:5",
	} {
		require.Equal(t, want, words(ContentUsage(rulesOf(file, "foo"), url)), url)
	}
	require.Empty(t, ContentUsage(robotstxt.Rules{}, "/"))
}

// The example of draft-ietf-aipref-attach-05, section 3.4.
func TestContentUsageOfTheDraft(t *testing.T) {
	const file = "User-Agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: train-ai=n\n" +
		"Content-Usage: /ai-ok/ train-ai=y\n\nUser-Agent: ExampleBot\nAllow: /\n" +
		"Content-Usage: train-ai=y\n"
	rules := rulesOf(file, "other")
	require.Equal(t, "train-ai=n:4", words(ContentUsage(rules, "/test")))
	require.Empty(t, ContentUsage(rules, "/never/test"))
	require.Equal(t, "train-ai=y:5", words(ContentUsage(rules, "/ai-ok/test")))
	require.Equal(t, "train-ai=y:9", words(ContentUsage(rulesOf(file, "ExampleBot"), "/never/test")))
}

func TestContentSignal(t *testing.T) {
	const file = "user-agent: foo\ncontent-signal: search=yes, AI-Input = NO ,ai-train=no\n" +
		"content-signal: /open/ ai-train=yes\ndisallow: /private/\n" +
		"user-agent: bar\ncontent-signal: search=yes\ncontent-signal: search=no,,x,=yes,a=maybe,b=yes=no\n" +
		"allow: /\nuser-agent: plural\nContent-Signals: ai-train=no\nallow: /\n"
	for _, tt := range []struct{ agent, url, want string }{
		{"foo", "/", "ai-input=n:2 ai-train=n:2 search=y:2"},
		{"foo", "/open/a", "ai-train=y:3"},
		{"foo", "/private/", ""},
		{"bar", "/", "search=n:7"},
		{"plural", "/", "ai-train=n:10"},
		{"other", "/", ""},
	} {
		require.Equal(t, tt.want, words(ContentSignal(rulesOf(file, tt.agent), tt.url)), "%+v", tt)
	}
}

func TestFromHeader(t *testing.T) {
	h := http.Header{"Content-Usage": {"train-ai=n, search=y", "search=n;why=1"}}
	require.Equal(t, "search=n:0 train-ai=n:0", words(FromHeader(h)), "one dictionary, last wins")
	h = http.Header{"Content-Usage": {"search=y"}, "Content-Signal": {"ai-train=no", "search=no"},
		"Content-Signals": {"ai-input=yes"}}
	require.Equal(t, "ai-input=y:0 ai-train=n:0 search=n:0", words(FromHeader(h)))
	require.Empty(t, FromHeader(http.Header{}))
}

// The examples of draft-ietf-aipref-vocab, Multiple Preferences and Preference Parameters.
func TestDictionariesOfTheDraft(t *testing.T) {
	for field, want := range map[string]string{
		"train-ai=y, search=n":                       "search=n:0 train-ai=y:0",
		`train-ai=y, train-ai, search=n, search="n"`: "",
		"train-ai;allow=n, train-ai=y":               "train-ai=y:0",
		`train-ai;has;parameters="?";`:               "",
		"Train-AI=y":                                 "",
	} {
		require.Equal(t, want, words(FromHeader(http.Header{"Content-Usage": {field}})), field)
	}
}

func TestCombine(t *testing.T) {
	a := []Preference{{"x", true, 1}, {"y", true, 2}, {"z", false, 3}, {"x", true, 9}}
	b := []Preference{{"y", false, 4}, {"z", true, 5}, {"w", true, 6}}
	require.Equal(t, "w=y:6 x=y:1 y=n:4 z=n:3", words(Combine(a, b)))
	require.Equal(t, "w=y:6 x=y:1 y=n:4 z=n:3", words(Combine(b, a)))
	require.Equal(t, Preference{"x", true, 1}, a[0], "left as it was")
	require.Empty(t, Combine())
}

func TestForSale(t *testing.T) {
	license := http.Header{"Www-Authenticate": {"Basic realm=x", "  license"}}
	for status, want := range map[int]bool{
		200: false, 401: true, 402: true, 403: true, 503: false,
	} {
		require.Equal(t, want, ForSale(status, license), status)
	}
	require.True(t, ForSale(402, nil))
	for challenge, want := range map[string]bool{
		`License error="x"`: true, `Bearer, License error="x"`: true,
		`Basic realm="a\", b", License`: true, `Basic realm="a, License b"`: false,
		`Bearer license=x, license = y`: false,
	} {
		require.Equal(t, want, ForSale(401, http.Header{"Www-Authenticate": {challenge}}), challenge)
	}
	require.False(t, ForSale(401, http.Header{"Www-Authenticate": {"Licensed x"}}))
}

// FuzzPreferences asserts that preferences come sorted, each once, with a line that exists, and only
// for URLs that may be fetched.
func FuzzPreferences(f *testing.F) {
	f.Add("content-usage: /a train-ai=n;b=(1 2), c=\"x\"\ncontent-signal: /* search=yes", "/a")
	f.Add("content-signals: search=no\nlicense: //h\ndisallow: /b", "/b")
	f.Fuzz(func(t *testing.T, records, url string) {
		text := "user-agent: *\n" + records
		rules := rulesOf(text, "foo")
		lines := 2 + strings.Count(records, "\n") + strings.Count(records, "\r")
		for _, list := range [][]Preference{ContentUsage(rules, url), ContentSignal(rules, url)} {
			if !slices.Equal(Combine(list), list) || len(list) > 0 && !rules.Allowed(url) {
				t.Errorf("%+v of %q for %q", list, records, url)
			}
			for _, p := range list {
				if p.Line < 2 || p.Line > lines {
					t.Errorf("%+v of %q for %q", p, records, url)
				}
			}
		}
	})
}
