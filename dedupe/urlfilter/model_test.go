package urlfilter_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// specificity returns how specific an entry is for a URL, from 0 if it does not match to 5 for the
// URL itself. It follows the doc comment of Reload line by line, without tables. Entries must be in
// canonical form.
func specificity(entry, url string) int {
	host := strings.TrimSuffix(weburl.Host(url), ".")
	switch {
	case entry == "*":
		return 1
	case strings.HasPrefix(entry, "="):
		if url == entry[1:] {
			return 5
		}
	case strings.HasPrefix(entry, "/"):
		if regexp.MustCompile(strings.Trim(entry, "/")).MatchString(url) {
			return 2
		}
	case strings.Contains(entry, "://"):
		if strings.HasPrefix(url, entry) {
			return 4
		}
	case host == entry || strings.HasSuffix(host, "."+entry):
		return 3
	}
	return 0
}

// modelMatch checks all lines. Among the matching ones, the most specific kind decides. If several
// of that kind match, any may be named.
func modelMatch(lines []string, url string) (allowed bool, kind int) {
	denied, spared := 0, 0
	for _, line := range lines {
		if entry, plus := strings.CutPrefix(line, "+"); plus {
			spared = max(spared, specificity(entry, url))
		} else {
			denied = max(denied, specificity(entry, url))
		}
	}
	switch {
	case denied == 0:
		return true, 0
	case spared > 0:
		return true, spared
	}
	return false, denied
}

// TestListAgreesWithItsDoc compares random lists of all kinds of entries with the model. Names are
// few and short, so that entries often match.
func TestListAgreesWithItsDoc(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	kinds := map[int]int{}
	for range 400 {
		lines := make([]string, random.IntN(10))
		for i := range lines {
			lines[i] = randomEntry(random)
		}
		list := parse(t, strings.Join(lines, "\n"))
		for range 60 {
			url := randomURL(random)
			allowed, kind := modelMatch(lines, url)
			got := list.Match(url)
			require.Equal(t, allowed, got.Allowed, "%s in %q", url, lines)
			kinds[kind]++
			if kind == 0 {
				require.Equal(t, urlfilter.Verdict{Allowed: true}, got)
				continue
			}
			require.Equal(t, lines[got.Line-1], got.Entry)
			require.Equal(t, allowed, strings.HasPrefix(got.Entry, "+"))
			entry := strings.TrimPrefix(got.Entry, "+")
			require.Equal(t, kind, specificity(entry, url), "%s in %q: %+v", url, lines, got)
		}
	}
	for kind := range 6 {
		require.Greater(t, kinds[kind], 100, "kind %d was rarely tested", kind)
	}
}

func randomHost(random *rand.Rand) string {
	labels := []string{"a", "b", "aa"}
	host := labels[random.IntN(3)] + ".example"
	for random.IntN(2) == 0 {
		host = labels[random.IntN(3)] + "." + host
	}
	return host
}

func randomURL(random *rand.Rand) string {
	url := "https://" + randomHost(random) + "/"
	for range random.IntN(3) {
		url += []string{"a", "b", "/", "?a"}[random.IntN(4)]
	}
	return url
}

func randomEntry(random *rand.Rand) (entry string) {
	switch random.IntN(9) {
	case 0:
		entry = "*"
	case 1, 2:
		entry = "=" + randomURL(random)
	case 3, 4:
		entry = []string{"/a/", "/b[/?]/", "/a$/", "/^https:..b/"}[random.IntN(4)]
	case 5, 6:
		entry = randomURL(random)
	default:
		entry = randomHost(random)
	}
	if random.IntN(3) == 0 {
		entry = "+" + entry
	}
	return entry
}
