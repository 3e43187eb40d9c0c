package robotstxt_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// vector is one case of a file in testdata/vectors, in the form that README.md there describes.
type vector struct {
	body  []byte
	steps []step
}

type step struct {
	at        string // file and line
	agent     string
	status    int
	verb, arg string
	by        int // the line that decides; 0 if the vector does not say
}

func TestRFC9309(t *testing.T) { runVectors(t, "rfc9309") }

func TestChoices(t *testing.T) { runVectors(t, "choices") }

// TestCauses has each case in which temoto/robotstxt, given the file itself, is wrong.
func TestCauses(t *testing.T) { runVectors(t, "causes") }

func runVectors(t *testing.T, folder string) {
	names, err := filepath.Glob(filepath.Join("testdata", "vectors", folder, "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			cases := readVectors(t, name)
			require.NotEmpty(t, cases)
			for _, v := range cases {
				require.NotEmpty(t, v.steps, "a case that asks nothing")
				v.run(t)
			}
		})
	}
}

// allVectors returns the cases of all folders.
func allVectors(t testing.TB) (all []vector) {
	names, err := filepath.Glob(filepath.Join("testdata", "vectors", "*", "*.txt"))
	require.NoError(t, err)
	for _, name := range names {
		all = append(all, readVectors(t, name)...)
	}
	require.NotEmpty(t, all)
	return all
}

func readVectors(t testing.TB, name string) (cases []vector) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "# "), "%s has no head", name)
	var v vector
	now := step{agent: "somebot"}
	end := func() {
		if v.body != nil || v.steps != nil {
			cases = append(cases, v)
		}
		v, now = vector{}, step{agent: "somebot"}
	}
	for i, line := range strings.Split(string(text), "\n") {
		now.at = name + ":" + strconv.Itoa(i+1)
		switch {
		case line == "":
			end()
		case line[0] == '#':
		case strings.ContainsRune(`|"*`, rune(line[0])):
			require.Empty(t, v.steps, "%s: the file goes on after what must hold", now.at)
			v.body = append(v.body, bodyLine(t, now.at, line)...)
		default:
			now = now.next(t, line)
			if now.verb != "" {
				v.steps = append(v.steps, now)
			}
		}
	}
	end()
	return cases
}

// bodyLine returns the contribution of a vector's line to the robots.txt.
func bodyLine(t testing.TB, at, line string) string {
	if line[0] == '|' {
		return strings.TrimPrefix(line[1:], " ") + "\n"
	}
	n := 1
	if line[0] == '*' {
		number, rest, _ := strings.Cut(line[len("* "):], " ")
		var err error
		n, err = strconv.Atoi(number)
		require.NoError(t, err, at)
		line = rest
	}
	text, err := strconv.Unquote(line)
	require.NoError(t, err, at)
	return strings.Repeat(text, n)
}

// next reads a line with an expectation or a condition.
func (s step) next(t testing.TB, line string) step {
	verb, arg, _ := strings.Cut(line, " ")
	var err error
	s.verb, s.arg, s.by = "", "", 0
	switch verb {
	case "agent":
		s.agent = arg
	case "status":
		s.status, err = strconv.Atoi(arg)
		if s.status == 0 {
			s.status = noAnswer
		}
	case "allow", "deny", "delay", "sitemap", "place":
		s.verb = verb
		if head, tail, ok := strings.Cut(arg, " by "); ok {
			arg = head
			s.by, err = strconv.Atoi(tail)
		}
		s.arg = arg
		if strings.HasPrefix(arg, `"`) {
			s.arg, err = strconv.Unquote(arg)
		}
	default:
		require.Fail(t, "unknown word", "%s: %s", s.at, line)
	}
	require.NoError(t, err, s.at)
	return s
}

// noAnswer distinguishes a status of 0 from an absent one.
const noAnswer = -1

func (v vector) run(t *testing.T) {
	var sitemaps []string
	for _, s := range v.steps {
		file := robotstxt.Parse(v.body)
		if s.status != 0 {
			file = robots.Response{Status: max(s.status, 0), Body: v.body, Whole: true}.File()
		}
		rules := file.Rules(s.agent)
		switch s.verb {
		case "allow", "deny":
			s.judge(t, v, rules)
		case "delay":
			delay, ok := rules.Delay()
			require.Equal(t, s.arg != "none", ok, s.at)
			if ok {
				want, err := time.ParseDuration(s.arg)
				require.NoError(t, err)
				require.Equal(t, want, delay, s.at)
			}
		case "sitemap":
			sitemaps = append(sitemaps, s.arg)
			require.Equal(t, sitemaps, file.Sitemaps()[:len(sitemaps)], s.at)
		case "place":
			url, want, _ := strings.Cut(s.arg, " ")
			got, err := robotstxt.Locate(url)
			require.NoError(t, err, s.at)
			require.Equal(t, want, got, s.at)
		}
	}
}

// judge asks the package, and where they can answer also the reference and the oracle.
func (s step) judge(t *testing.T, v vector, rules robotstxt.Rules) {
	t.Helper()
	got := rules.Match(s.arg)
	require.Equal(t, s.verb == "allow", got.Allowed, "%s: %+v", s.at, got)
	require.Equal(t, got.Allowed, rules.Allowed(s.arg), s.at)
	if s.by != 0 {
		require.Equal(t, s.by, got.Line, "%s: %+v", s.at, got)
	}
	isPath := strings.HasPrefix(s.arg, "/") && !strings.HasPrefix(s.arg, "//")
	if s.status == 0 && isPath && readableByReference(v.body) {
		requireOracleAgrees(t, string(v.body), s.agent, s.arg)
		path, _, _ := strings.Cut(s.arg, "#")
		require.Equal(t, refVerdict(string(v.body), s.agent, path), got, s.at)
	}
}

// readableByReference excludes what the reference leaves out: UTF-16 and the limit.
func readableByReference(body []byte) bool {
	mark := string(body[:min(2, len(body))])
	return len(body) <= robotstxt.MaxSize && mark != "\xFF\xFE" && mark != "\xFE\xFF"
}
