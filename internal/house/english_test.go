package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// calques are phrases that a native engineer would not write, with replacements.
var calques = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\brooms\b|\b(each|one|of a) room\b`), "package"},
	{regexp.MustCompile(`\b(for|to|from|by|of|with) who [a-z]+`), "for anyone who, by whoever"},
	{regexp.MustCompile(`\bWho (has|waits|wants|asks|takes|gives|needs|reads) [a-z]+`), "a caller that"},
	{regexp.MustCompile(`\b(its|their) likes\b`), "and similar"},
	{regexp.MustCompile(`\b(brings?|comes?|came) along\b|\bbrings? nothing\b`), "dependencies"},
	{regexp.MustCompile(`\bkeeps? book\b`), "tracks"},
	{regexp.MustCompile(`\bin hand\b`), "in flight"},
	{regexp.MustCompile(`(?i)\bheed(s|ed|ing)?\b`), "obeys, considers, follows"},
	{regexp.MustCompile(`(?i)\bmanners?\b`), "politeness"},
	{regexp.MustCompile(`\bfor at once\b`), "now"},
	{regexp.MustCompile(`\band so (does|is|are) less\b`), "zero or negative means"},
	{regexp.MustCompile(`\bit is open (whether|if|who)\b`), "it is unknown whether"},
	{regexp.MustCompile(`\bleft in peace\b`), "not disturbed"},
	{regexp.MustCompile(`(?:%[dqsv]|\b(?:[Tt]his|[Ii]t)) is no [a-km-z%]\w*`), "is not a"},
	{regexp.MustCompile(`\b(what|that|which) (is|are) no (?:[A-Za-km-z]\w*|l[a-np-z]\w*)`), "is not a"},
}

// foundCalques returns the calques in a text, each with its replacement.
func foundCalques(text string) (found []string) {
	text = strings.Join(strings.Fields(text), " ")
	for _, c := range calques {
		for _, phrase := range c.phrase.FindAllString(text, -1) {
			found = append(found, fmt.Sprintf("%q: write %q", phrase, c.instead))
		}
	}
	return found
}

// maxSentence bounds the words of a sentence in a comment that godoc shows.
const maxSentence = 40

var (
	codeInText  = regexp.MustCompile("(?m)^(?:\t| {4,}).*$|`[^`\n]*`")
	sentenceEnd = regexp.MustCompile(`[.:;!?]['")\]]*(?:\s+|$)|\n\s*(?:\n|-|\d+\.|#)`)
)

// longSentences returns the first words of the sentences that have too many words. Colons and
// semicolons end a sentence, as do paragraphs and the items of a list; code is not counted.
func longSentences(text string) (found []string) {
	text = codeInText.ReplaceAllString(text, "\n\n")
	for _, sentence := range sentenceEnd.Split(text, -1) {
		words := strings.Fields(sentence)
		if len(words) > maxSentence {
			start := strings.Join(words[:6], " ")
			found = append(found, fmt.Sprintf("a sentence of %d words: %q", len(words), start))
		}
	}
	return found
}

// docComments returns the comments of a file that godoc shows.
func docComments(f *file) (docs []*ast.CommentGroup) {
	docs = append(docs, f.ast.Doc)
	for _, decl := range f.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			docs = append(docs, decl.Doc)
		case *ast.GenDecl:
			docs = append(docs, decl.Doc)
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					docs = append(docs, n.Doc)
				case *ast.ValueSpec:
					docs = append(docs, n.Doc)
				case *ast.Field:
					docs = append(docs, n.Doc)
				}
				return true
			})
		}
	}
	return docs
}

// foreignEnglish returns the calques and long sentences in a Go file: in comments, and in texts such
// as errors.
func foreignEnglish(f *file) (found []string) {
	for _, group := range f.ast.Comments {
		for _, c := range foundCalques(codeInText.ReplaceAllString(group.Text(), "")) {
			found = append(found, f.at(group.Pos())+": "+c)
		}
	}
	for _, doc := range docComments(f) {
		for _, long := range longSentences(doc.Text()) {
			found = append(found, f.at(doc.Pos())+": "+long)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			for _, c := range foundCalques(lit.Value) {
				found = append(found, f.at(lit.Pos())+": "+c)
			}
		}
		return true
	})
	return found
}

// foreignFiles returns the findings of each file of the repository, its other modules included. It
// skips this package, which contains the calques, and tests.
func foreignFiles(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	eachFile(t, func(name, text string) {
		switch filepath.Ext(name) {
		case ".md":
			plain := mdCode.ReplaceAllString(codeInText.ReplaceAllString(text, ""), "")
			found[name] = foundCalques(plain)
		case ".go":
			if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/house/") {
				return
			}
			f, err := parse(name, text)
			require.NoError(t, err)
			found[name] = foreignEnglish(f)
		}
	})
	return found
}

var mdCode = regexp.MustCompile("(?s)```.*?```")

// eachFile visits the files of the repository, by their names with slashes.
func eachFile(t *testing.T, visit func(name, text string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); entry.IsDir() || ext != ".md" && ext != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		visit(filepath.ToSlash(name), string(text))
		return err
	})
	require.NoError(t, err)
}

func TestTheEnglishIsPlain(t *testing.T) {
	for name, findings := range foreignFiles(t) {
		if len(findings) > knownForeign[name] {
			for _, finding := range findings {
				t.Errorf("%s: %s", name, finding)
			}
		}
	}
	require.Len(t, foundCalques("The\nrooms, for who waits, and what is no\nURL. There is room for more."), 3)
	require.Empty(t, foundCalques("what is no longer needed makes room for one page"))
	long := strings.Repeat("word ", maxSentence) + "end"
	require.Len(t, longSentences(long+". Short one: "+long), 2)
	require.Empty(t, longSentences(strings.Repeat("word ", 30)+"end: "+strings.Repeat("word ", 30)))
	f, err := parse("p/p.go", "// Package p heeds.\npackage main\nconst help = `the pages in hand`\n// T "+long+".\ntype T int")
	require.NoError(t, err)
	require.Len(t, foreignEnglish(f), 3)
}

// knownForeign has the number of known findings of each file. The table only shrinks.
var knownForeign = map[string]int{}
