package weburl_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	whatwg "github.com/spinneret-go/spinneret/internal/weburl"
)

// wptClasses divide the cases of the URL Standard's test suite by how much of each applies to
// Canonical, with the reasons. Each case is in exactly one class; want is the number of cases.
var wptClasses = []struct {
	reason string
	in     func(wptCase) bool
	check  func(*testing.T, wptCase)
	want   int
}{
	{
		"all of it: absolute, http or https",
		func(c wptCase) bool { return !c.Failure && c.isWeb() && c.Base == "" },
		func(t *testing.T, c wptCase) { c.requireCanonical(t, c.Input, c.Href) }, 133,
	},
	{
		"all of it: absolute and not a URL",
		func(c wptCase) bool { return c.Failure && c.Base == "" && c.RelativeTo == "" },
		func(t *testing.T, c wptCase) { c.requireInvalid(t) }, 188,
	},
	{
		"only the rejection: no crawler fetches the scheme",
		func(c wptCase) bool { return !c.Failure && !c.isWeb() },
		func(t *testing.T, c wptCase) {
			_, err := weburl.Canonical(c.Href)
			require.ErrorIs(t, err, weburl.ErrScheme, "%q", c.Href)
			if c.Base != "" {
				_, err = weburl.Resolve(c.Base, c.Input)
				require.ErrorIs(t, err, weburl.ErrScheme, "%q on %q", c.Input, c.Base)
			}
		}, 377,
	},
	{
		"all of it: relative to a base, and http or https",
		func(c wptCase) bool { return !c.Failure && c.isWeb() && c.Base != "" },
		func(t *testing.T, c wptCase) { c.requireResolved(t) }, 114,
	},
	{
		"all of it: not a URL, with its base or without any",
		func(c wptCase) bool { return c.Failure && (c.Base != "" || c.RelativeTo != "") },
		func(t *testing.T, c wptCase) {
			_, err := weburl.Resolve(c.Base, c.Input)
			require.ErrorIs(t, err, weburl.ErrInvalid, "%q on %q", c.Input, c.Base)
			if _, err := whatwg.Parse(c.Base, nil); c.Base == "" || err == nil {
				_, err := weburl.Canonical(c.Input)
				require.Error(t, err, "%q", c.Input)
			}
		}, 79,
	},
}

// wptFilesLeftOut are the suite's files that are not run here, with the reasons.
var wptFilesLeftOut = []struct{ reason, names string }{
	{
		"package weburl has no setters",
		"setters_tests.json ada_extra_setters_tests.json",
	},
	{
		"run by the tests of internal/weburl, as they are about host names and other encodings",
		"toascii.json IdnaTestV2.json IdnaTestV2-removed.json percent-encoding.json",
	},
	{"a check that the URL Standard does not require", "verifydnslength_tests.json"},
	{
		"another standard, URL Pattern",
		"urlpatterntestdata.json urlpattern-compare-test-data.json urlpattern-generate-test-data.json",
	},
}

// TestWebPlatformTests runs each case as far as it applies.
func TestWebPlatformTests(t *testing.T) {
	counts := make([]int, len(wptClasses))
	for _, c := range readWPT(t, "urltestdata.json") {
		classes := 0
		for i, class := range wptClasses {
			if class.in(c) {
				classes++
				counts[i]++
				class.check(t, c)
			}
		}
		require.Equal(t, 1, classes, "%+v", c)
	}
	for i, class := range wptClasses {
		t.Logf("%3d cases: %s", counts[i], class.reason)
		assert.Equal(t, class.want, counts[i], class.reason)
	}
	for _, left := range wptFilesLeftOut {
		t.Logf("left out: %s: %s", left.reason, left.names)
		for name := range strings.FieldsSeq(left.names) {
			readData(t, "suites/wpt-url/"+name) // fails if the list is out of date
		}
	}
}

// TestMoreURLTests runs the other files of the same format.
func TestMoreURLTests(t *testing.T) {
	for name, want := range map[string]int{
		"ada_extra_urltestdata.json":       28,
		"ada_long_urltestdata.json":        1,
		"urltestdata-javascript-only.json": 1,
	} {
		checked := 0
		for _, c := range readWPT(t, name) {
			for _, class := range wptClasses {
				if class.in(c) {
					class.check(t, c)
					checked++
				}
			}
		}
		assert.Equal(t, want, checked, name)
	}
}

// wptCase is one entry of web-platform-tests' urltestdata.json.
type wptCase struct {
	Input, Base, RelativeTo                          string
	Href, Protocol, Host, Hostname, Pathname, Search string
	Failure                                          bool
}

func (c wptCase) isWeb() bool { return c.Protocol == "http:" || c.Protocol == "https:" }

// canonical returns the expected form, built from the parts in the suite.
func (c wptCase) canonical() string {
	search := c.Search
	if beforeFragment, _, _ := strings.Cut(c.Href, "#"); strings.HasSuffix(beforeFragment, "?") {
		search = "?" // an empty query, which the suite shows in href only
	}
	return c.Protocol + "//" + c.Host + c.Pathname + search
}

func (c wptCase) requireCanonical(t *testing.T, inputs ...string) {
	t.Helper()
	for _, input := range inputs {
		got, err := weburl.Canonical(input)
		require.NoError(t, err, "%q", input)
		require.Equal(t, c.canonical(), got, "%q", input)
		require.Equal(t, strings.Trim(c.Hostname, "[]"), weburl.Host(got))
	}
}

func (c wptCase) requireInvalid(t *testing.T) {
	t.Helper()
	_, err := weburl.Canonical(c.Input)
	require.ErrorIs(t, err, weburl.ErrInvalid, "%q", c.Input)
}

func (c wptCase) requireResolved(t *testing.T) {
	t.Helper()
	got, err := weburl.Resolve(c.Base, c.Input)
	require.NoError(t, err, "%q on %q", c.Input, c.Base)
	require.Equal(t, c.canonical(), got, "%q on %q", c.Input, c.Base)
	c.requireCanonical(t, c.Href)
}

func readWPT(t *testing.T, name string) []wptCase {
	t.Helper()
	var entries []json.RawMessage
	require.NoError(t, json.Unmarshal(readData(t, "suites/wpt-url/"+name), &entries))
	var cases []wptCase
	for _, entry := range entries {
		if entry[0] == '"' {
			continue // a comment
		}
		var c wptCase
		require.NoError(t, json.Unmarshal(entry, &c))
		cases = append(cases, c)
	}
	return cases
}
