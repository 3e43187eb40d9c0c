package robots

import (
	"strings"
	"testing"
)

// FuzzMatch asserts that any body parses and that verdict, pattern and line equal those of the
// slow reference.
func FuzzMatch(f *testing.F) {
	for _, c := range causes[:len(causes)-1] {
		f.Add([]byte(c.file), c.agent, c.url)
	}
	f.Add([]byte(typicalFile), "examplebot", "/shop/cart?session=1")
	f.Add([]byte("\xEF\xBBuser-agent *\r\rallow:/*/index.htm\ndisallow:/*$\n"), "foo9", "/%2a//")
	f.Fuzz(func(t *testing.T, body []byte, agent, url string) {
		if len(body) > 1<<12 || len(url) > 1<<8 {
			t.Skip("the reference is slow")
		}
		file := Parse(body)
		rules := file.Rules(agent)
		rules.Delay()
		file.Sitemaps()
		if mark := string(body[:min(2, len(body))]); mark == "\xFF\xFE" || mark == "\xFE\xFF" {
			return // the reference reads no UTF-16
		}
		path, _, _ := strings.Cut("/"+url, "#")
		got, want := rules.Match("/"+url), refVerdict(string(body), agent, path)
		if got != want || rules.Allowed("/"+url) != want.Allowed {
			t.Errorf("Match(%q) for %q = %+v, want %+v in\n%q", "/"+url, agent, got, want, body)
		}
		requireEnginesAgree(t, rules, url)
	})
}

// FuzzEngines asserts that temoto and our engine agree on whatever literal group the lines make.
func FuzzEngines(f *testing.F) {
	f.Add("a\n/b\n//\n%41\nA:b\n\u00e9\n", "h.test/a?b")
	f.Add("\na#b\n +c:$d\n%\n%2\n%2a", "/%2A")
	f.Fuzz(func(t *testing.T, lines, url string) {
		body := "user-agent: *\n"
		for line := range strings.Lines(lines) {
			line = strings.TrimRight(line, "\r\n*$")
			if len(line)%2 == 0 {
				body += "allow: /" + line + "\n"
			} else {
				body += "disallow: /" + line + "\n"
			}
		}
		rules := Parse([]byte(body)).Rules("foo")
		requireEnginesAgree(t, rules, url)
		for line := range strings.Lines(lines) { // paths that match, too
			requireEnginesAgree(t, rules, "/"+line+url)
		}
	})
}

// FuzzCanonical asserts that the canonical form is a form: it is its own, pure ASCII, and holds
// nothing that a URI may not.
func FuzzCanonical(f *testing.F) {
	f.Add("/a%zz%2f%7E %41*$\xff")
	f.Fuzz(func(t *testing.T, in string) {
		for _, isPattern := range []bool{false, true} {
			once := canonical(in, isPattern)
			if twice := canonical(once, isPattern); twice != once {
				t.Errorf("canonical(%q) = %q, then %q", in, once, twice)
			}
			if strings.ContainsFunc(once, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("canonical(%q) = %q", in, once)
			}
		}
	})
}

// FuzzLocate asserts that a robots.txt is under its own rules: its place is its own.
func FuzzLocate(f *testing.F) {
	for _, tt := range places {
		f.Add(tt.url)
	}
	f.Fuzz(func(t *testing.T, in string) {
		once, err := Locate(in)
		if err != nil {
			t.Skip()
		}
		if twice, err := Locate(once); err != nil || twice != once {
			t.Errorf("Locate(%q) = %q, then %q, %v", in, once, twice, err)
		}
	})
}
