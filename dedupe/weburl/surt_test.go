package weburl_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// surtDifferences are the intended differences between the keys of web archives and ours: they give
// one key to URLs that may be different pages, or an ugly key to rare hosts. Each step converts our
// key towards theirs; want is the number of URLs in testdata/surt.tsv that it changes.
var surtDifferences = []struct {
	name string
	step func(key string) string
	want int
}{
	{"all letters are lowercased", strings.ToLower, 57},
	{"www. and www2. are dropped", withoutWWW, 41},
	{"the query is sorted", withSortedQuery, 9},
	{"an empty query is dropped", func(key string) string { return strings.TrimSuffix(key, "?") }, 4},
	{"addresses are reversed like names", withReversedAddress, 7},
}

var (
	wwwLabel = regexp.MustCompile(`,www\d*(:\d+)?\)`)
	address  = regexp.MustCompile(`^(\d+)\.(\d+)\.(\d+)\.(\d+)`)
)

func withoutWWW(key string) string {
	host, rest, _ := strings.Cut(key, ")")
	return wwwLabel.ReplaceAllString(host+")", "$1)") + rest
}

func withSortedQuery(key string) string {
	path, query, found := strings.Cut(key, "?")
	if !found {
		return key
	}
	params := strings.Split(query, "&")
	slices.Sort(params)
	return path + "?" + strings.Join(params, "&")
}

func withReversedAddress(key string) string { return address.ReplaceAllString(key, "$4,$3,$2,$1") }

// TestSURTAgreesWithAnotherProgram compares keys with those of an independent implementation, apart
// from the differences above. URLs with a root dot or with some non-ASCII letters are skipped: it
// makes a label of the dot, and changes the case of the letters.
func TestSURTAgreesWithAnotherProgram(t *testing.T) {
	used := make([]int, len(surtDifferences))
	compared, left := 0, 0
	for _, pair := range surtPairs(t) {
		url, err := weburl.Canonical(pair.url)
		require.NoError(t, err, pair.url)
		if strings.HasSuffix(weburl.Host(url), ".") || strings.Contains(pair.url, "Ü?Ü") {
			left++
			continue
		}
		key := weburl.SURT(url)
		for i, difference := range surtDifferences {
			nearer := difference.step(key)
			if nearer != key {
				used[i]++
			}
			key = nearer
		}
		require.Equal(t, strings.ToLower(pair.key), key, pair.url)
		compared++
	}
	for i, difference := range surtDifferences {
		t.Logf("%3d keys: %s", used[i], difference.name)
		assert.Equal(t, difference.want, used[i], difference.name)
	}
	require.Equal(t, 390, compared)
	require.Equal(t, 3, left)
}

type surtPair struct{ url, key string }

func surtPairs(t *testing.T) (pairs []surtPair) {
	t.Helper()
	text, err := os.ReadFile("testdata/surt.tsv")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		url, key, _ := strings.Cut(line, "\t")
		var pair surtPair
		require.NoError(t, json.Unmarshal([]byte(url), &pair.url), line)
		require.NoError(t, json.Unmarshal([]byte(key), &pair.key), line)
		pairs = append(pairs, pair)
	}
	return pairs
}
