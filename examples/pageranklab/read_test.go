package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// write creates files and returns the name of the first.
func write(t testing.TB, files ...string) (first string) {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(files[i+1]), 0o600))
		if i == 0 {
			first = name
		}
	}
	return first
}

// links lists a web's links by the page numbers of the file.
func links(w *web) string {
	var list []string
	for id := range uint32(w.graph.Len()) {
		for _, to := range w.graph.Links(id) {
			list = append(list, fmt.Sprintf("%d>%d", w.fileID(id), w.fileID(to)))
		}
	}
	return strings.Join(list, " ")
}

func (w *web) fileID(id uint32) uint32 {
	if w.ids == nil {
		return id
	}
	return w.ids[id]
}

func packed(t *testing.T, text string) (gz, zst string) {
	t.Helper()
	var a, b bytes.Buffer
	g := gzip.NewWriter(&a)
	_, err := g.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, g.Close())
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	_, err = z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return a.String(), b.String()
}

func TestGraphsAreReadInAllForms(t *testing.T) {
	const want = "0>1 0>2 2>0"
	gz, zst := packed(t, "0\t1\n0\t2\n2\t0\n")
	for name, files := range map[string][]string{
		"tabs":                   {"g.tsv", "0\t1\n0\t2\n2\t0\n"},
		"blanks and no last end": {"g", "0 1\n0  2 \n2 0"},
		"commas and a heading":   {"g.csv", "from,to\n0,1\n0,2\n2,0\n"},
		"comments":               {"g", "# a graph\n% of links\n\n0 1\n0 2\n2 0\n"},
		"carriage returns":       {"g", "0 1\r\n0 2\r\n2 0\r\n"},
		"weights at the end":     {"g", "0 1 7\n0 2 0.5\n2 0 1\n"},
		"loops and duplicates":   {"g", "0 1\n0 1\n0 0\n0 2\n2 0\n"},
		"gzip":                   {"g.gz", gz},
		"zstd, by another name":  {"g", zst},
		"LAW ASCII":              {"g.graph-txt", "3\n1 2\n\n0\n"},
		"LAW ASCII, short":       {"g.graph-txt", "3\n1 2\n\n0"},
		"URLs":                   {"g", "http://a/ http://b/\nhttp://a/ http://c/\nhttp://b/\nhttp://c/ http://a/\n"},
	} {
		w, err := readWeb(write(t, files...), "")
		require.NoError(t, err, name)
		require.Equal(t, want, links(w), name)
		require.Equal(t, 3, w.graph.Len(), name)
	}
}

func TestURLsMayContainSeparators(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       []string
	}{
		{"nothing", " ,; ", nil},
		{"numbers", "0, 1;2\t3\r", []string{"0", "1", "2", "3"}},
		{"a tab between", "http://a/x,1\thttp://b/;y=2", []string{"http://a/x,1", "http://b/;y=2"}},
		{"a comma and a blank", "http://a/, http://b/", []string{"http://a/", "http://b/"}},
		{"a comma", "http://a/x,1,http://b/", []string{"http://a/x,1", "http://b/"}},
		{"one alone", "http://a/x,1", []string{"http://a/x,1"}},
		{"after a number", "7,1,http://a/;x", []string{"7", "1", "http://a/;x"}},
		{"nested", "http://a/http://b/ http://c/", []string{"http://a/http://b/", "http://c/"}},
	} {
		var got []string
		for w, rest := word([]byte(tt.line)); len(w) > 0; w, rest = word(rest) {
			got = append(got, string(w))
		}
		require.Equal(t, tt.want, got, tt.name)
	}
}

func TestBrokenGraphsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "words": "0 1\nzero one\n", "only one number": "0 1\n2\n",
		"a number too large": "0 1\n0 99999999999\n", "both kinds": "0 1\nhttp://a/ http://b/\n",
		"LAW, beyond": "2\n5\n\n", "LAW, too long": "1\n\n0 0\n0\n", "LAW, letters": "2\nx\n",
		"LAW, too many pages": "99999999999\n1\n", "not gzip": "\x1f\x8bxx", "no links": "3\n\n\n\n",
		"LAW, cut short": "3\n1 2\n0\n", "LAW, a negative number in an int of 32 bits": "2\n4294967295\n\n",
	} {
		_, err := readWeb(write(t, "g", text), "")
		require.Error(t, err, name)
	}
	_, err := readWeb(filepath.Join(t.TempDir(), "none"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestListsOfPagesGiveHostsAndTies(t *testing.T) {
	const edges = "0 1\n1 2\n2 0\n0 2\n"
	for name, files := range map[string][]string{
		"nodes beside edges": {"x.edges.tsv", edges, "x.nodes.tsv",
			"0\t1\thttp://a/\n1\t1\thttp://B/y/\n2\t1\thttp://a/x\n"},
		"a heading, no flags": {"edges.dat", edges, "nodes.dat",
			"id url\n0 http://a/\n1 http://B/y/\n2 http://a/x\n"},
		"bare": {"x.graph", edges, "x.urls", "http://a/\nhttp://B/y/\nhttp://a/x\n"},
	} {
		w, err := readWeb(write(t, files...), "")
		require.NoError(t, err, name)
		require.Equal(t, []uint32{0, 1, 0}, w.hosts, name)
		require.Less(t, w.ties[0], w.ties[2], "as many slashes, but shorter")
		require.Less(t, w.ties[2], w.ties[1], "fewer slashes")
		ids, err := w.find([]string{"http://a/x", "1"})
		require.NoError(t, err)
		require.Equal(t, []uint32{2, 1}, ids)
	}
	w, err := readWeb(write(t, "x.edges", edges), "")
	require.NoError(t, err)
	require.Nil(t, w.host())
}

func TestUnfetchedPagesAreDropped(t *testing.T) {
	w, err := readWeb(write(t, "edges", "0 1\n1 2\n2 0\n0 2\n", "nodes",
		"0 0 http://a/\n1 1 http://b/\n2 1 http://c/\n"), "")
	require.NoError(t, err)
	require.Equal(t, "1>2", links(w))
	require.Equal(t, []string{"http://b/", "http://c/"}, w.urls)
	ids, err := w.find([]string{"2"})
	require.NoError(t, err)
	require.Equal(t, []uint32{1}, ids, "the file's number, not ours")
	for _, name := range []string{"0", "4294967298", ""} {
		_, err = w.find([]string{name})
		require.Error(t, err, "%q is none of them", name)
	}
}

func TestAPageWithoutAURLHasNoName(t *testing.T) {
	w, err := readWeb(write(t, "edges", "0 1\n1 0\n", "nodes", "1 http://b/\n"), "")
	require.NoError(t, err)
	require.Empty(t, w.urls[0])
	_, err = w.find([]string{"1", ""})
	require.Error(t, err, "an extra comma is not a page")
}

func TestAGraphWithoutFetchedPagesHasNoStart(t *testing.T) {
	name := write(t, "edges", "0 1\n1 0\n", "nodes", "0 0 http://a/\n1 0 http://b/\n")
	require.ErrorContains(t, run([]string{name}, io.Discard, io.Discard), "no page to start from")
}

func TestGraphsAreNamedAfterTheirFiles(t *testing.T) {
	require.Equal(t, "x", nameOf("/data/x.edges.tsv.zst"))
	require.Equal(t, "cnr-2000", nameOf("/data/cnr-2000/edges.tsv.zst"))
	require.Equal(t, "edges", nameOf("edges.tsv"))
}

// FuzzReader reads any text; the resulting graph can be written as a list of links and read again.
func FuzzReader(f *testing.F) {
	for _, text := range []string{
		"0\t1\n", "3\n1 2\n\n0\n", "http://a/ http://b/\n", "from,to\n1,2\n", "# x\n0 1 2\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if slices.ContainsFunc(strings.Fields(text), func(w string) bool { return len(w) > 5 }) {
			t.Skip("large numbers take much memory, and URLs are not numbers")
		}
		w, err := readWeb(write(t, "g", text), "")
		if err != nil {
			t.Skip()
		}
		var again strings.Builder
		for id := range uint32(w.graph.Len()) {
			for _, to := range w.graph.Links(id) {
				fmt.Fprintln(&again, id, to)
			}
		}
		if again.Len() == 0 {
			t.Skip("only links that do not count")
		}
		back, err := readWeb(write(t, "g", again.String()), "")
		require.NoError(t, err)
		require.Equal(t, links(w), links(back))
	})
}
