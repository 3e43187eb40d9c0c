package page_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	"<script src=P%d></script>", "<image src=P%d>", "<![CDATA[<a href=P%d>]]>",
	"<link rel=next href=P%d>", "<noframes><a href=P%d></noframes>"}

// TestLinksMatchTheTreeOnTheSuite inserts links anywhere in the inputs of the html5lib suite, which
// are as broken as pages can be. A link must be found if and only if it is in the tree of package
// html. In misnested SVG, one of a hundred may be missed or found in excess, and in MathML and
// framesets any.
func TestLinksMatchTheTreeOnTheSuite(t *testing.T) {
	inputs := suiteInputs(t)
	require.Greater(t, len(inputs), 1500)
	links, other, withSVG := 0, 0, 0
	try := func(body string) {
		want, got := linkSets(t, []byte(body), pageURL)
		links += len(got)
		if strings.Contains(body, "<svg") {
			withSVG++
		}
		if slices.Equal(want, got) {
			return
		}
		if other++; !strings.Contains(body, "<svg") {
			t.Errorf("%q:\nwant %v\n got %v", body, want, got)
		}
	}
	for n, input := range inputs {
		if strings.Contains(input, "<math") || strings.Contains(input, "<frame") {
			continue
		}
		if tag := strings.Index(input, "<template"); tag >= 0 && strings.Contains(input[tag:], "<col>") {
			continue // a template that starts with a col cannot contain anything else: not worth a rule
		}
		if _, inside, _ := strings.Cut(input, "<noframes>"); strings.Contains(inside, "<script>") {
			continue // the content is markup here, and a script in it is not closed
		}
		r := rand.New(rand.NewPCG(uint64(n), 5))
		try(input)
		for at := 0; at <= len(input); at++ {
			if at < len(input) && input[at] != '<' {
				continue
			}
			for range 3 {
				probe := fmt.Sprintf(probes[r.IntN(len(probes))], r.IntN(100))
				try(input[:at] + probe + input[at:] + "<a href=end>")
			}
		}
	}
	t.Logf("%d inputs, %d links; %d of %d pages with SVG differ", len(inputs), links, other, withSVG)
	require.Less(t, other, withSVG/50)
}

// nested is random markup in which SVG and HTML are within each other, and all of it is closed.
type nested struct {
	*rand.Rand
	strings.Builder
	links int
}

// html writes elements at most so deep.
func (n *nested) html(depth int) {
	for range n.IntN(4) {
		switch kind := n.IntN(8); {
		case kind < 2:
			n.link("<a href=%d>text</a>")
		case kind < 4:
			n.link("<title><a href=%d></title>")
		case depth == 0:
			n.link("<script src=%d></script>")
		case kind < 6:
			n.within("<svg>", "</svg>", n.svg, depth)
		default:
			tag := [...]string{"div", "b", "ul", "section", "custom"}[n.IntN(5)]
			n.within("<"+tag+">", "</"+tag+">", n.html, depth)
		}
	}
}

func (n *nested) svg(depth int) {
	for range n.IntN(5) {
		switch kind := n.IntN(9); {
		case kind == 0:
			n.link("<a xlink:href=%d><path d=x /></a>")
		case kind == 1:
			n.link("<image xlink:href=%d /><title/><style/>")
		case kind == 2:
			n.link("<use href=%d></use><style>a{}<a href=style></a></style>")
		case kind == 3:
			n.link("<![CDATA[><a href=%d></a>]]><desc><![CDATA[><a href=no></a>]]></desc>")
		case depth == 0:
			n.link("<script href=%d />")
		case kind == 4:
			n.within("<g>", "</g>", n.svg, depth)
		case kind == 5:
			n.within("<svg>", "</svg>", n.svg, depth)
		default:
			tag := [...]string{"foreignObject", "desc", "title"}[n.IntN(3)]
			n.within("<"+tag+">", "</"+tag+">", n.html, depth)
		}
	}
}

func (n *nested) link(format string) {
	n.links++
	fmt.Fprintf(n, format, n.links)
}

func (n *nested) within(begin, end string, content func(depth int), depth int) {
	n.WriteString(begin)
	content(depth - 1)
	n.WriteString(end)
}

// TestLinksMatchTheTreeInSVG checks that the links are those of the tree if SVG is closed.
func TestLinksMatchTheTreeInSVG(t *testing.T) {
	links := 0
	for seed := range uint64(5_000) {
		n := nested{Rand: rand.New(rand.NewPCG(seed, 6))}
		for n.links < 5 {
			n.html(7)
		}
		links += same(t, []byte(n.String()), pageURL, fmt.Sprintf("seed %d: %s", seed, n.String()))
	}
	require.Greater(t, links, 20_000)
}
