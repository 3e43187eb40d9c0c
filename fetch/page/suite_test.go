package page_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// netModule returns the directory of golang.org/x/net, which contains test suites.
func netModule(t *testing.T) string {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	if err != nil {
		t.Skipf("the go command cannot locate golang.org/x/net: %v", err)
	}
	return strings.TrimSpace(string(dir))
}

// suiteInputs returns the inputs of html5lib's tree-construction suite.
func suiteInputs(t *testing.T) (inputs []string) {
	root := filepath.Join(netModule(t), "html", "testdata")
	for _, pattern := range []string{"html5lib-tests/tree-construction/*.dat", "go/*.dat"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, test := range bytes.Split(text, []byte("#data\n"))[1:] {
				input, _, ok := bytes.Cut(test, []byte("\n#errors"))
				if !ok {
					input, _, ok = bytes.Cut(test, []byte("#errors"))
				}
				require.True(t, ok, file)
				inputs = append(inputs, string(input))
			}
		}
	}
	return inputs
}

// probes are inserted between the tags of a test's input, where they reveal the state of the
// parser.
var probes = []string{"<a href=P%d>", "<img src=P%d>", "<svg><a href=P%d /></svg>", "<title><a href=P%d></title>",
	"<script src=P%d></script>", "<frame src=P%d>", "<image src=P%d>", "<![CDATA[<a href=P%d>]]>",
	"<link rel=next href=P%d>", "<noframes><a href=P%d></noframes>"}

// TestLinksMatchTheTreeOnTheSuite inserts links anywhere in the inputs of the html5lib suite. A
// link must be found if and only if it is in the tree of package html.
func TestLinksMatchTheTreeOnTheSuite(t *testing.T) {
	inputs := suiteInputs(t)
	require.Greater(t, len(inputs), 1500)
	links := 0
	for n, input := range inputs {
		if tag := strings.Index(input, "<template"); tag >= 0 &&
			(strings.Contains(input, "<svg") || strings.Contains(input, "<math") ||
				strings.Contains(input[tag:], "<col>")) {
			// Package html does not support templates in foreign content. A template that starts
			// with a col cannot contain anything else, which is not worth supporting.
			continue
		}
		r := rand.New(rand.NewPCG(uint64(n), 5))
		links += same(t, []byte(input), pageURL, fmt.Sprintf("%q", input))
		for at := 0; at <= len(input); at++ {
			if at < len(input) && input[at] != '<' {
				continue
			}
			for range 3 {
				probe := fmt.Sprintf(probes[r.IntN(len(probes))], r.IntN(100))
				probed := input[:at] + probe + input[at:] + "<a href=end>"
				links += same(t, []byte(probed), pageURL, fmt.Sprintf("%q", probed))
			}
		}
	}
	t.Logf("%d inputs, %d links", len(inputs), links)
}

// nesting is correct and incorrect markup with special nesting rules.
var nesting = strings.Split("<svg>|</svg>|<math>|</math>|<g>|</g>|<path/>|<path d=x>|</path>|<title>|</title>|"+
	"<desc>|</desc>|<foreignObject>|</foreignobject>|<mi>|</mi>|<mtext>|</mtext>|<annotation-xml encoding=text/html>|"+
	"<annotation-xml>|</annotation-xml>|<mglyph>|<style>|</style>|<style/>|<script>|</script>|<script src=s />|"+
	"<div>|</div>|<p>|</p>|<b>|</b>|<span>|</span>|<br>|</br>|<ul>|<li>|</ul>|<table>|<tr>|<td>|</td>|"+
	"</tr>|</table>|<tbody>|<caption>|</caption>|<th>|<form action=f>|</form>|<select>|<option>|</select>|"+
	"<textarea>|</textarea>|<image xlink:href=i>|<use href=u />|<font>|<font color=x>|</font>|<h1>|</h1>|<h2>|"+
	"<button>|</button>|<dl>|<dt>|<dd>|</dl>|<hr>|<input>|<object>|</object>|<body>|</body>|</html>|"+
	"<![CDATA[|]]>|text|<custom>|</custom>|<i>|</i>|<nobr>|<ruby>|<rt>|<noframes>|</noframes>", "|")

// TestLinksMatchTheTreeWhateverIsNested checks the same for random markup.
func TestLinksMatchTheTreeWhateverIsNested(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	links := 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 6))
		var body strings.Builder
		for n := range 1 + r.IntN(12) {
			body.WriteString(nesting[r.IntN(len(nesting))])
			if r.IntN(2) == 0 {
				fmt.Fprintf(&body, "<a href=%d></a>", n)
			}
		}
		body.WriteString("<img src=last>")
		links += same(t, []byte(body.String()), pageURL, fmt.Sprintf("seed %d: %s", seed, body.String()))
	}
	require.Greater(t, links, rounds)
}
