package weburl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// wptCase is one entry of web-platform-tests' urltestdata.json.
type wptCase struct {
	Input, Base, Href, Protocol, Username, Password string
	Host, Hostname, Port, Pathname, Search, Hash    string
	RelativeTo                                      string
	Failure                                         bool
}

// readWPT reads a file of the test suite. The comments between the cases are strings.
func readWPT[T any](t *testing.T, name string) []T {
	t.Helper()
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	data, err := os.ReadFile(filepath.Join(dir, "suites", "wpt-url", name))
	if os.IsNotExist(err) {
		t.Skipf("no %s: set SPINNERET_DATA to the directory with the test data", name)
	}
	require.NoError(t, err)
	var entries []json.RawMessage
	require.NoError(t, json.Unmarshal(data, &entries))
	var cases []T
	for _, entry := range entries {
		if entry[0] == '"' {
			continue
		}
		var c T
		require.NoError(t, json.Unmarshal(entry, &c))
		cases = append(cases, c)
	}
	require.NotEmpty(t, cases)
	return cases
}

func TestWebPlatformTests(t *testing.T) {
	for _, name := range []string{
		"urltestdata.json", "urltestdata-javascript-only.json",
		"ada_extra_urltestdata.json", "ada_long_urltestdata.json",
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range readWPT[wptCase](t, name) {
				checkWPT(t, c)
			}
		})
	}
}

func checkWPT(t *testing.T, c wptCase) {
	t.Helper()
	u, err := parseWith(c.Input, c.Base)
	if (err != nil) != c.Failure {
		t.Errorf("Parse(%q, %q): error %v, want failure %v", c.Input, c.Base, err, c.Failure)
	}
	if c.RelativeTo != "" {
		checkRelativeTo(t, c)
	}
	if err != nil || c.Failure {
		return
	}
	host := u.Host
	if u.Port != "" {
		host += ":" + u.Port
	}
	got := wptCase{
		Input: c.Input, Base: c.Base, Href: u.String(), Protocol: u.Scheme + ":",
		Username: u.Username, Password: u.Password, Host: host, Hostname: u.Host, Port: u.Port,
		Pathname: u.Path, Search: prefixed("?", u.Query), Hash: prefixed("#", u.Fragment),
	}
	if got != c {
		t.Errorf("\n got %+v\nwant %+v", got, c)
	}
}

// checkRelativeTo checks inputs that only fail without a base: they are relative to any base, or to
// any with a path. The scheme of the base matters for old forms such as "http:a".
func checkRelativeTo(t *testing.T, c wptCase) {
	t.Helper()
	scheme, _, found := strings.Cut(c.Input, ":")
	if !found || !strings.HasPrefix(scheme, "http") {
		scheme = "http"
	}
	_, err := parseWith(c.Input, scheme+"://a.test/b")
	require.NoError(t, err, "%q", c.Input)
	_, err = parseWith(c.Input, "mailto:a@b.test")
	require.Equal(t, c.RelativeTo == "any-base", err == nil, "%q", c.Input)
}

// prefixed returns a query or a fragment in the form of the standard's API.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func parseWith(input, base string) (weburl.URL, error) {
	if base == "" {
		return weburl.Parse(input, nil)
	}
	b, err := weburl.Parse(base, nil)
	if err != nil {
		return weburl.URL{}, err
	}
	return weburl.Parse(input, &b)
}

func TestInternationalNames(t *testing.T) {
	type nameCase struct {
		Input  string
		Output *string
	}
	for _, name := range []string{"toascii.json", "IdnaTestV2.json", "IdnaTestV2-removed.json"} {
		t.Run(name, func(t *testing.T) {
			newer := 0
			for _, c := range readWPT[nameCase](t, name) {
				if c.Input == "" {
					continue // cannot be written as the host of a URL
				}
				u, err := weburl.Parse("https://"+c.Input+"/x", nil)
				if c.Output == nil {
					require.ErrorIs(t, err, weburl.ErrHost, "%+q gave %q", c.Input, u.Host)
				} else if remapped.MatchString(c.Input) {
					continue
				} else if strings.ContainsFunc(c.Input, isNewer) {
					newer++
				} else if err != nil || u.Host != *c.Output {
					t.Errorf("Parse(%+q) = %q, %v, want %q", c.Input, u.Host, err, *c.Output)
				}
			}
			require.LessOrEqual(t, newer, 3)
		})
	}
}

// remapped are the characters whose mapping has changed since Unicode 15, which a Go release may have.
var remapped = regexp.MustCompile(`[\x{4C0}\x{10A0}-\x{10C5}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180E}` +
	`\x{2061}-\x{2063}\x{206A}-\x{206F}\x{2132}\x{2183}\x{3164}\x{FFA0}\x{1D173}-\x{1D17A}` +
	`\x{2F868}\x{2F874}\x{2F91F}\x{2F95F}\x{2F9BF}]`)

// isNewer reports whether a character is too new for the Unicode version of the Go release, which
// then rejects names with it.
func isNewer(r rune) bool {
	return !unicode.IsGraphic(r) && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

func TestPercentEncodingOfQueries(t *testing.T) {
	type encodingCase struct {
		Input  string
		Output map[string]string
	}
	for _, c := range readWPT[encodingCase](t, "percent-encoding.json") {
		u, err := weburl.Parse("https://a.test/?"+c.Input+"#"+c.Input, nil)
		require.NoError(t, err)
		require.Equal(t, c.Output["utf-8"], u.Query, "%+q", c.Input)
		require.Equal(t, c.Output["utf-8"], u.Fragment, "%+q", c.Input)
	}
}
