package house

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A shellBlock is a code block with commands in a Markdown file.
type shellBlock struct {
	line     int    // of the file, where the block starts
	note     string // the comment before the block: what runs it, or why nothing does
	commands []string
}

// programs are the commands of this repository, by the folder of each.
var programs = map[string]string{
	"fullcrawler": "examples/fullcrawler", "cluster": "examples/cluster",
	"revisitlab": "examples/revisitlab", "pageranklab": "examples/pageranklab",
}

var (
	isCommand = regexp.MustCompile(`^(go (-C \S+ )?(run|test|get|install|build|doc) |cd |\.ci/|` +
		`(fullcrawler|cluster|revisitlab|pageranklab) [-a-z])`)
	trailing = regexp.MustCompile(`\s+#.*$`)
	noteLine = regexp.MustCompile(`^<!-- (.*) -->$`)
)

// shellBlocks returns the fenced and indented blocks with commands in a document. Continued lines
// are joined.
func shellBlocks(document string) (blocks []shellBlock) {
	var b shellBlock
	fenced, plain, note, joined := false, false, "", ""
	finish := func() {
		if len(b.commands) > 0 {
			blocks = append(blocks, b)
		}
		b = shellBlock{}
	}
	for i, line := range strings.Split(document, "\n") {
		text, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced, plain = !fenced, line == "```" || line == "```sh"
			finish()
			b.line, b.note = i+1, note
		case !fenced && noteLine.MatchString(line):
			note = noteLine.FindStringSubmatch(line)[1]
			continue
		case fenced && plain || !fenced && indented:
			if !fenced {
				line = text
			}
			if b.line == 0 || len(b.commands) == 0 && !fenced {
				b.line, b.note = i+1, note
			}
			joined += strings.TrimSpace(trailing.ReplaceAllString(line, ""))
			if rest, more := strings.CutSuffix(joined, `\`); more {
				joined = rest
				continue
			}
			if isCommand.MatchString(joined) {
				b.commands = append(b.commands, joined)
			}
			joined = ""
		case strings.TrimSpace(line) != "":
			finish()
			note = ""
		}
	}
	finish()
	return blocks
}

// badCommands returns the errors in the commands of a block: missing packages, and flags that the
// programs lack.
func badCommands(root, document string, b shellBlock) (found []string) {
	dir := ""
	if filepath.Base(document) == "README.md" && strings.Contains(strings.Join(b.commands, " "), "go install .") {
		dir = path.Dir(document) // a program's own README
	}
	for _, command := range b.commands {
		here := dir
		for part := range strings.SplitSeq(command, "&&") {
			words := strings.Fields(strings.ReplaceAll(part, "'", ""))
			if len(words) == 0 {
				continue
			}
			if len(words) > 3 && words[1] == "-C" {
				here, words = path.Join(here, words[2]), slices.Delete(words, 1, 3)
			}
			if words[0] == "cd" {
				here = path.Join(here, words[1])
				if part == command {
					dir = here
				}
			}
			for _, bad := range badWords(root, here, words) {
				found = append(found, fmt.Sprintf("%s:%d: %s: %s", document, b.line, command, bad))
			}
		}
	}
	return found
}

func badWords(root, here string, words []string) (found []string) {
	program := ""
	for i, word := range words {
		if word == "--" { // what follows is another program's
			break
		}
		isPath := strings.HasPrefix(word, "./") && words[0] == "go"
		folder := path.Join(here, strings.TrimSuffix(word, "/..."))
		if words[0] == "cd" && i == 1 {
			isPath, folder = true, here
		}
		if isPath {
			if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
				found = append(found, "there is no "+folder)
			}
			if words[1] == "run" && program == "" {
				program = folder
				continue
			}
		}
		name := strings.TrimLeft(word, "-")
		name, _, _ = strings.Cut(name, "=")
		if program != "" && strings.HasPrefix(word, "-") && name != "" && !hasFlag(root, program, name) {
			found = append(found, program+" has no flag -"+name)
		}
		if i == 0 && programs[word] != "" {
			program = programs[word]
		}
	}
	return found
}

// hasFlag reports whether a program's source contains the name of a flag as a string literal.
func hasFlag(root, program, name string) (has bool) {
	var files []string
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go"} {
		more, _ := filepath.Glob(filepath.Join(root, program, pattern))
		files = append(files, more...)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && !strings.HasSuffix(file, "_test.go") && strings.Contains(string(text), `"`+name+`"`)
	})
}

// unrunBlocks returns the blocks of a document without a valid note. A note is "run by" and a test
// or .ci/run, or "not run:" and the reason.
func unrunBlocks(tests, document string, blocks []shellBlock) (found []string) {
	for _, b := range blocks {
		by, run := strings.CutPrefix(b.note, "run by ")
		_, why := strings.CutPrefix(b.note, "not run: ")
		switch {
		case run && by != ".ci/run" && !strings.Contains(tests, "func "+by+"("):
			found = append(found, fmt.Sprintf("%s:%d: there is no test %s", document, b.line, by))
		case !run && !why:
			found = append(found, fmt.Sprintf("%s:%d: <!-- run by TEST --> or <!-- not run: why -->?",
				document, b.line))
		}
	}
	return found
}

func TestCommandsOfDocumentsWork(t *testing.T) {
	root := filepath.Join("..", "..")
	var tests strings.Builder
	documents := map[string]string{}
	eachFile(t, func(name, text string) {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			tests.WriteString(text)
		case filepath.Ext(name) == ".md" && name != "internal/bench/REPORT.md": // its commands were run to write it
			documents[name] = text
		}
	})
	commands := 0
	for name, text := range documents {
		blocks := shellBlocks(text)
		for _, b := range blocks {
			commands += len(b.commands)
			report(t, badCommands(root, name, b))
		}
		if !slices.Contains(knownUnrun, name) {
			report(t, unrunBlocks(tests.String(), name, blocks))
		}
	}
	require.Greater(t, commands, 30)
}

func TestBadCommandsAreFound(t *testing.T) {
	root := filepath.Join("..", "..")
	document := "<!-- not run: long -->\n\n    go run ./examples/revisitlab -out x \\\n      -nosuch 1   # why\n" +
		"\ntext\n\n```\ncd internal\ngo test ./none\ngo -C house run ./licences\n```\n"
	blocks := shellBlocks(document)
	require.Len(t, blocks, 2)
	require.Equal(t, "long", strings.TrimPrefix(blocks[0].note, "not run: "))
	require.Len(t, badCommands(root, "a.md", blocks[0]), 1)
	require.Len(t, badCommands(root, "a.md", blocks[1]), 1)
	require.Len(t, unrunBlocks("", "a.md", blocks), 1, "the second block")
	blocks[1].note = "run by TestNone"
	require.Len(t, unrunBlocks("", "a.md", blocks), 1)
}

// knownUnrun are the documents whose blocks lack notes. The table only shrinks.
var knownUnrun = []string{}
