package robots

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzMatch asserts that any body parses and that the verdict, with its pattern and line, and the
// records equal those of the slow reference, for the agent and for all that the body names.
func FuzzMatch(f *testing.F) {
	for _, v := range allVectors(f) {
		if len(v.body) < 1<<12 {
			f.Add(v.body, v.steps[0].agent, v.steps[0].arg)
		}
	}
	f.Add([]byte(typicalFile), "examplebot", "/shop/cart?session=1")
	f.Add([]byte("\xEF\xBBuser-agent *\r\rallow:/*/index.htm\ndisallow:/*$\n"), "foo9", "/%2a//")
	f.Fuzz(func(t *testing.T, body []byte, agent, url string) {
		file := Parse(body)
		if len(body) > 1<<12 || len(url) > 1<<8 || !readableByReference(body) {
			t.Skip("the reference is slow, and reads no UTF-16")
		}
		all, wantAll := slices.Collect(file.Records()), refRecords(string(body), "")
		if !slices.Equal(all, wantAll) {
			t.Errorf("Records of %q = %+v, want %+v", body, all, wantAll)
		}
		path, _, _ := strings.Cut("/"+url, "#")
		for i, agent := range append([]string{agent}, tokens(file)...) {
			if i > 8 {
				break
			}
			rules := file.Rules(agent)
			got, want := rules.Match("/"+url), refVerdict(string(body), agent, path)
			if got != want || rules.Allowed("/"+url) != want.Allowed {
				t.Errorf("Match(%q) for %q = %+v, want %+v in\n%q", "/"+url, agent, got, want, body)
			}
			requireEnginesAgree(t, rules, url)
			if agent == "" {
				continue // which asks the reference for all records
			}
			own, wantOwn := slices.Collect(rules.Records()), refRecords(string(body), agent)
			if !slices.Equal(own, wantOwn) {
				t.Errorf("Records for %q of %q = %+v, want %+v", agent, body, own, wantOwn)
			}
		}
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

// FuzzLocate asserts that a robots.txt is under its own rules: its place is its own. The short cut
// of the cache must lead there, too.
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
		if origin, err := originOf(in); err != nil || origin+ownPath != once {
			t.Errorf("Locate(%q) = %q, but the cache takes %q, %v", in, once, origin, err)
		}
	})
}

// FuzzRecords asserts that the values of records are within the bounds that they are promised to
// have, whatever stands in the file, and that preferences come sorted, each once.
func FuzzRecords(f *testing.F) {
	f.Add("request-rate: 1/5s 0000-2400\nvisit-time: 2300-0100\nclean-param: a&b /c", "/c")
	f.Add("content-usage: /a train-ai=n;b=(1 2), c=\"x\"\ncontent-signal: /* search=yes", "/a")
	f.Add("crawl-delay: .5\nsitemap: /s\nlicense: //h\nhost: x", "")
	f.Fuzz(func(t *testing.T, records, url string) {
		file := Parse([]byte("user-agent: *\n" + records))
		rules := file.Rules("foo")
		if delay, _ := rules.Delay(); delay < 0 || delay > MaxDelay {
			t.Errorf("Delay() = %v of %q", delay, records)
		}
		for _, rate := range rules.Rates() {
			if rate.Requests < 1 || rate.Per <= 0 || rate.Delay() < 0 || rate.Delay() > MaxDelay {
				t.Errorf("Rates() has %+v of %q", rate, records)
			}
			checkWindow(t, rate.Window)
		}
		for _, window := range rules.VisitTimes() {
			checkWindow(t, window)
		}
		for _, list := range [][]Preference{rules.Usage(url), rules.Signals(url)} {
			if merged := MergePreferences(list); !slices.Equal(merged, list) {
				t.Errorf("%+v of %q for %q", list, records, url)
			}
		}
		for _, url := range slices.Concat(file.SitemapURLs("https://h.test/robots.txt"),
			file.Licenses("https://h.test/robots.txt")) {
			if _, err := Locate(url); err != nil && !strings.Contains(err.Error(), "host") &&
				!strings.Contains(err.Error(), "port") {
				t.Errorf("%q: %v", url, err)
			}
		}
		for _, clean := range file.CleanParams() {
			if len(clean.Names) == 0 || slices.Contains(clean.Names, "") {
				t.Errorf("CleanParams() has %+v of %q", clean, records)
			}
		}
	})
}

func checkWindow(t *testing.T, w Window) {
	t.Helper()
	if min(w.From, w.To) < 0 || max(w.From, w.To) > allDay.To {
		t.Errorf("window %+v", w)
	}
}

// FuzzStore asserts that no answer leads the cache out of its states: the rules are there, and
// expire within the bounds, or a request leads on, at most five times.
func FuzzStore(f *testing.F) {
	f.Add(301, "Location", "//other.test/%zz", "Retry-After", "1")
	f.Add(200, "Cache-Control", "max-age=1e9", "Expires", "0")
	f.Add(429, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", "Age", "-1")
	f.Fuzz(func(t *testing.T, status int, name1, value1, name2, value2 string) {
		c := NewCache(Options{})
		req := ask(t, c, page, noon)
		header := fields(name1, value1, name2, value2)
		for hop := 0; ; hop++ {
			answer, err := c.Store(req, Response{status, header, []byte(noAs)}, noon)
			if err != nil || hop > maxHops {
				t.Fatal(hop, err)
			}
			if answer.State == Fresh {
				if age := answer.Until.Sub(noon); age < 5*time.Minute || age > 24*time.Hour {
					t.Errorf("expires after %v", age)
				}
				return
			}
			req = answer.Request
		}
	})
}
