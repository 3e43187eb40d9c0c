package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// entries returns the first page of each site below a directory: the highest index.html, or
// otherwise the highest page.
func entries(dir string) (urls []string, err error) {
	if dir == "" {
		return nil, nil
	}
	sites, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, site := range sites {
		best, depth := "", 0
		err := fs.WalkDir(os.DirFS(filepath.Join(dir, site.Name())), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".html") {
				return err
			}
			deep := strings.Count(name, "/")
			if !strings.HasSuffix(name, "index.html") {
				deep += 1000 // below any index
			}
			if best == "" || deep < depth {
				best, depth = name, deep
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if best != "" {
			urls = append(urls, "http://"+site.Name()+"/"+best)
		}
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("no site in %s has a page: want %[1]s/HOST/PATH.html", dir)
	}
	return urls, nil
}

// staticEngines includes only fullcrawler: the others have no flag for many seeds, each with its
// own host as the scope.
func (b *bench) staticEngines() (engines []engine) {
	for _, archive := range []string{"none", "gzip", "zstd"} {
		command := []string{b.path("fullcrawler"), "-hosts", b.path("hosts"), "-out", b.path("out"), "-delay", "0",
			"-host-pages", "0", "-depth", "-1", "-concurrency", "200", "-archive", archive, "-sitemaps=false",
			"-exclude", "^https:", "-wait", "1s"}
		engines = append(engines, engine{"fullcrawler, archive " + archive, append(command, b.entries...), false})
	}
	return engines
}
