package robotstxt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// FuzzMatch asserts that any body parses, and that verdicts, with pattern and line, and records
// equal those of the slow reference, for the agent and for all agents that the body names. The
// result of String parses to the same File.
func FuzzMatch(f *testing.F) {
	for _, v := range allVectors(f) {
		if len(v.body) < 1<<12 {
			f.Add(v.body, v.steps[0].agent, v.steps[0].arg)
		}
	}
	f.Add([]byte("user-agent: *\ndisallow: /*?session=\nallow: /shop/"), "examplebot", "/shop/cart?session=1")
	f.Add([]byte("\xEF\xBBuser-agent *\r\rallow:/*/index.htm\ndisallow:/*$\n"), "foo9", "/%2a//")
	f.Add([]byte("user-agent: *\ndisallow: /*24\ndisallow: /b%\nallow: /*4$"), "foo", "/a$b*%24%")
	f.Fuzz(func(t *testing.T, body []byte, agent, url string) {
		file := robotstxt.Parse(body)
		text := file.String()
		if again := robotstxt.Parse([]byte(text)).String(); again != text {
			t.Errorf("%q is read as %q, and then as %q", body, text, again)
		}
		checkBounds(t, file, agent)
		if len(body) > 1<<12 || len(url) > 1<<8 || !readableByReference(body) {
			t.Skip("the reference is slow, and reads no UTF-16")
		}
		path, _, _ := strings.Cut("/x/../"+url, "#")
		for i, agent := range append([]string{agent}, refAgents(text)...) {
			if i > 8 {
				break
			}
			rules := file.Rules(agent)
			got, want := rules.Match(path), refVerdict(text, agent, path)
			if got != want {
				t.Errorf("Match(%q) for %q = %+v, want %+v in\n%q", path, agent, got, want, body)
			}
			requireOracleAgrees(t, text, agent, path)
			if agent == "" {
				continue // for which the reference returns all records
			}
			own, wantOwn := slices.Collect(rules.Records()), refRecords(text, agent)
			if !slices.Equal(own, wantOwn) {
				t.Errorf("Records for %q of %q = %+v, want %+v", agent, body, own, wantOwn)
			}
		}
	})
}

// checkBounds asserts that the properties of a file are within the documented bounds.
func checkBounds(t *testing.T, file *robotstxt.File, agent string) {
	t.Helper()
	if delay, _ := file.Rules(agent).Delay(); delay < 0 || delay > robotstxt.MaxDelay {
		t.Errorf("Delay() = %v", delay)
	}
	for url := range file.SitemapURLs("https://h.test/robots.txt") {
		if _, err := robotstxt.Locate(url); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}
