package page_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/stretchr/testify/require"
)

// The html5lib tokenizer suite has the oddest markup available. Its tests do not list links, so
// this test checks the law of FuzzLinks. It puts each input between two links, which must be found
// unless the input swallows the second one.
func TestLinksOfHTML5LibInputs(t *testing.T) {
	data := cmp.Or(os.Getenv("SPINNERET_DATA"), filepath.Join("..", "shared", "data"))
	if !filepath.IsAbs(data) {
		data = filepath.Join("..", "..", data) // relative to the module's root
	}
	files, err := filepath.Glob(filepath.Join(data, "suites", "html5lib", "tokenizer", "*.test"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no html5lib suite: set SPINNERET_DATA to the data directory")
	}
	inputs, both := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var suite struct{ Tests []struct{ Input string } }
		require.NoError(t, json.Unmarshal(text, &suite), file)
		for _, test := range suite.Tests {
			inputs++
			first, last := 0, 0
			body := "<a href=first>" + test.Input + `<a href="/last">`
			same(t, []byte(body), pageURL, test.Input)
			for l, err := range page.Links([]byte(body), pageURL, inUTF8) {
				require.NoError(t, err, "%q", body)
				if l.Kind == page.Directive {
					continue
				}
				require.NoError(t, lawful(l.URL), "%q yields %q", body, l.URL)
				switch l.URL {
				case "http://a.test/dir/first":
					first++
				case "http://a.test/last":
					last++
				}
			}
			require.Equal(t, 1, first, "%q", body)
			both += min(last, 1)
		}
	}
	require.Greater(t, inputs, 1000)
	require.Greater(t, both, inputs/2, "most inputs must swallow nothing")
}
