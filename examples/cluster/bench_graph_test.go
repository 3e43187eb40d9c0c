package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/graphweb"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// A site is a web served on this machine: a generated one, or one with the links of a real web.
type site interface {
	Hosts() iter.Seq[webtest.Host]
	IsPage(url string) bool
	Reachable(seeds ...string) []string
	Log() []webtest.Request
	Close() error
}

// readGraph reads the graph in a directory, which is a pair of files *nodes*.tsv.zst and
// *edges*.tsv.zst.
func readGraph(dir string) (*graphweb.Graph, error) {
	var files []io.Reader
	for _, pattern := range []string{"*nodes*.tsv.zst", "*edges*.tsv.zst"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(names) != 1 {
			return nil, fmt.Errorf("graph %s: want one file %s: %w", dir, pattern,
				errors.Join(err, os.ErrNotExist))
		}
		f, err := os.Open(names[0])
		if err != nil {
			return nil, err
		}
		defer f.Close()
		z, err := zstd.NewReader(f)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		files = append(files, z)
	}
	return graphweb.Read(files[0], files[1], asked)
}

// asked turns a URL of a graph into the URL that the crawl requests, without TLS. It returns "" for
// URLs that the crawl's filter rejects, such as those that look like a trap: a page of the virtual
// web must be one that the crawl can fetch.
func asked(text string) string {
	url, err := weburl.Canonical(text)
	if rest, ok := strings.CutPrefix(url, "https://"); ok && err == nil {
		url, err = weburl.Canonical("http://" + rest)
	}
	if err != nil {
		return ""
	}
	filter := stage.Filter{Format: urlfilter.Format{AnySuffix: true}, MaxDepth: -1}
	if filter.Check(stage.Item{URL: url}) != "" {
		return ""
	}
	// A literal address is a machine outside, which must not get requests.
	if _, ok := stage.Literal(weburl.Host(url)); ok {
		return ""
	}
	return strings.Clone(url)
}

// defaultGraph returns the directory of a university's graph below SPINNERET_DATA, or "" if that is
// not set.
func defaultGraph() string {
	if data := os.Getenv("SPINNERET_DATA"); data != "" {
		return filepath.Join(data, "graphs", "uci-ics")
	}
	return ""
}
