package house

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allowed lists the permitted imports of each package beyond the standard library and internal/,
// with the reason for each. A sub-package may also import what its parent may. Everything else is
// forbidden.
var allowed = map[string]map[string]string{
	"dedupe": {
		"github.com/bits-and-blooms/bloom/v3":          "the Bloom filter",
		"github.com/hashicorp/golang-lru/v2/simplelru": "the LRU in front of it, under our own locks",
	},
	"dedupe/weburl": {
		"golang.org/x/net/publicsuffix": "registrable domains",
	},
	"dedupe/urlfilter": {
		"golang.org/x/net/publicsuffix": "finds hosts without a known public suffix",
	},
	"hostcache/resolve": {
		"golang.org/x/net/dns/dnsmessage": "packs and parses DNS messages: package net hides the ttl",
	},
	"fetch": {
		"golang.org/x/net/proxy": "SOCKS5",
	},
	"fetch/cookies": {
		"golang.org/x/net/publicsuffix": "who may set a cookie for which domain",
	},
	"fetch/page": {
		"golang.org/x/net/html": "entities, and the parser to compare with",
	},
	"fetch/sitemap": {
		"golang.org/x/net/html": "the tokenizer, which makes something of everything",
	},
	"archive": {
		"github.com/klauspost/compress/gzip": "twice the speed of the standard one",
		"github.com/klauspost/compress/zstd": "the other compression of WARC files",
	},
	"archive/export": {
		"golang.org/x/net/html":         "the titles of pages",
		"golang.org/x/net/html/charset": "likewise, in the encodings that browsers know",
	},
	"archive/replay": {
		"golang.org/x/net/html": "the tokenizer, which recognizes tags as browsers do",
	},
}

// allowedInternal is the same for the packages under internal/. The packages use them, so their
// imports end up in an embedder's build, too.
var allowedInternal = map[string]map[string]string{
	"internal/charset": {
		"golang.org/x/text/encoding":           "the tables that x/net/html/charset uses, without its sniffing",
		"golang.org/x/text/encoding/htmlindex": "the labels of the Encoding Standard",
		"golang.org/x/text/transform":          "converts a stream, and the errors of converters",
	},
	"internal/content": {
		"github.com/klauspost/compress/flate": "the content coding deflate, resettable",
		"github.com/klauspost/compress/gzip":  "twice the speed of the standard one, and resettable",
		"github.com/klauspost/compress/zlib":  "the content coding deflate, as the RFC has it",
		"github.com/klauspost/compress/zstd":  "a content coding that the standard library lacks",
	},
	"internal/content/br": {
		"github.com/andybalholm/brotli": "another one, apart because it is large",
	},
	"internal/weburl": {
		"golang.org/x/net/idna": "international host names",
	},
}

// testOnly may be imported by tests of any package.
var testOnly = []string{
	"github.com/stretchr/testify/assert",
	"github.com/stretchr/testify/require",
	"github.com/klauspost/compress/flate", // encoders
	"github.com/klauspost/compress/gzip",
	"github.com/klauspost/compress/zlib",
	"github.com/klauspost/compress/zstd",
	"github.com/andybalholm/brotli",
	"github.com/temoto/robotstxt",          // an oracle
	"golang.org/x/text/encoding/htmlindex", // another one
}

// importFindings returns the forbidden imports.
func importFindings(s source) (found []string) {
	for _, d := range s {
		for _, f := range d.files {
			for _, spec := range f.ast.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil || mayImport(d.path, path, f.isTest()) {
					continue
				}
				found = append(found, fmt.Sprintf("%s: %s may not import %s", f.at(spec.Pos()), d.path, path))
			}
		}
	}
	return found
}

func mayImport(dir, path string, test bool) bool {
	own, inModule := strings.CutPrefix(path, module+"/")
	pkg := packageOf(dir)
	switch {
	case strings.HasPrefix(dir, "examples/"), dir == "." && test: // the README's examples
		return true
	case inModule && (own == "fetch/webtest" || own == "internal/memnet"):
		return test || strings.HasPrefix(dir, "fetch/webtest/")
	case inModule && packageOf(own) != "":
		return pkg == packageOf(own) // a sub-package of the same package
	case inModule && strings.HasPrefix(own, "examples/"):
		return false
	case inModule:
		return strings.HasPrefix(own, "internal/")
	case !strings.Contains(strings.Split(path, "/")[0], "."):
		return test || !forTests(path)
	case test && slices.Contains(testOnly, path):
		return true
	case pkg != "":
		return allowed[pkg][path] != "" || allowed[dir][path] != ""
	default:
		return allowedInternal[dir][path] != ""
	}
}

// forTests reports whether a package of the standard library is only for tests.
func forTests(path string) bool { return path == "testing" || strings.HasPrefix(path, "testing/") }

func TestPackagesAreIndependent(t *testing.T) {
	report(t, importFindings(load(t)))

	for name, text := range map[string]string{
		"another package":          `package robots; import _ "` + module + `/fetch"`,
		"an example":               `package robots; import _ "` + module + `/examples/internal/stage"`,
		"an unlisted module":       `package robots; import _ "github.com/gocolly/colly"`,
		"another package's module": `package robots; import _ "golang.org/x/net/html"`,
		"a test helper":            `package robots; import _ "` + module + `/fetch/webtest"`,
		"testing":                  `package robots; import _ "testing"`,
		"a part of testing":        `package robots; import _ "testing/iotest"`,
	} {
		require.Len(t, importFindings(planted(t, "robots/robots.go", text)), 1, name)
	}
	const own = `package content; import _ "github.com/andybalholm/brotli"`
	require.Len(t, importFindings(planted(t, "internal/content/content.go", own)), 1, "a module of a sub-package")
	require.Empty(t, importFindings(planted(t, "internal/content/br/br.go", own)))
}

// linked lists the modules that a program links if it imports a package. A package that is not
// listed has no dependencies, as the README says.
var linked = map[string][]string{
	"archive":             {"github.com/andybalholm/brotli", "github.com/klauspost/compress"},
	"archive/archivehttp": {"github.com/andybalholm/brotli", "github.com/klauspost/compress"},
	"archive/export": {
		"github.com/andybalholm/brotli", "github.com/klauspost/compress", "golang.org/x/net", "golang.org/x/text",
	},
	"archive/replay": {
		"github.com/andybalholm/brotli", "github.com/klauspost/compress", "golang.org/x/net", "golang.org/x/text",
	},
	"archive/warc": {"github.com/andybalholm/brotli", "github.com/klauspost/compress"},
	"dedupe": {
		"github.com/bits-and-blooms/bitset", "github.com/bits-and-blooms/bloom/v3",
		"github.com/hashicorp/golang-lru/v2",
	},
	"dedupe/urlfilter":        {"golang.org/x/net", "golang.org/x/text"},
	"dedupe/urlfilter/trap":   {"golang.org/x/net", "golang.org/x/text"},
	"dedupe/weburl":           {"golang.org/x/net", "golang.org/x/text"},
	"fetch":                   {"github.com/klauspost/compress", "golang.org/x/net", "golang.org/x/text"},
	"fetch/botauth":           {"golang.org/x/net", "golang.org/x/text"},
	"fetch/brotli":            {"github.com/andybalholm/brotli"},
	"fetch/cookies":           {"golang.org/x/net", "golang.org/x/text"},
	"fetch/page":              {"golang.org/x/net", "golang.org/x/text"},
	"fetch/sitemap":           {"github.com/klauspost/compress", "golang.org/x/net", "golang.org/x/text"},
	"hostcache/resolve":       {"golang.org/x/net"},
	"scheduler/schedulerhttp": {"golang.org/x/net", "golang.org/x/text"},
}

// TestBuildsStaySmall checks what a program that imports a single package links. Only this test
// finds a module that slips in through internal/ or through a dependency.
func TestBuildsStaySmall(t *testing.T) {
	const modules = "{{if not .Standard}}{{.Module.Path}}{{end}}"
	for _, d := range load(t).public() {
		if code := d.code(); len(code) == 0 || code[0].ast.Name.Name == "main" || strings.Contains(d.path, "/internal/") {
			continue // not for embedding
		}
		deps := goList(t, "-deps", "-f", "{{.ImportPath}} "+modules, module+"/"+d.path)
		found := []string{}
		for _, dep := range deps {
			path, from, _ := strings.Cut(dep, " ")
			if forTests(path) {
				t.Errorf("a program that imports %s links %s", d.path, path)
			}
			if from != "" && from != module {
				found = append(found, from)
			}
			pkg := packageOf(strings.TrimPrefix(path, module+"/"))
			if from == module && pkg != "" && pkg != packageOf(d.path) {
				t.Errorf("a program that imports %s links %s, of another package", d.path, path)
			}
		}
		slices.Sort(found)
		require.ElementsMatch(t, linked[d.path], slices.Compact(found), "modules that %s links", d.path)
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err, "go list %v", args)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// misnamedTests returns the files that import testing although their names do not end in _test.go:
// every program would then link the testing package.
func misnamedTests(s source) (found []string) {
	for _, f := range s.code() {
		for _, spec := range f.ast.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil && forTests(path) {
				found = append(found, f.name+" imports testing but is not a test file")
			}
		}
	}
	return found
}

func TestTestFilesAreNamedAsSuch(t *testing.T) {
	report(t, misnamedTests(load(t)))
	require.Len(t, misnamedTests(planted(t, "p/x_test_1.go", `package p; import _ "testing"`)), 1)
}
