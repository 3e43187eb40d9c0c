package export

import (
	"archive/zip"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// Options say what a WACZ file tells of itself. The zero Options is fine.
type Options struct {
	// Title is what viewers show. "" means none.
	Title string

	// Created is when the file was made. The zero Time means now.
	Created time.Time
}

// The WACZ format, version 1.1.1 of specs.webrecorder.net.
const (
	waczVersion = "1.1.1"
	indexPath   = "indexes/index.cdxj"
	pagesPath   = "pages/pages.jsonl"
	packagePath = "datapackage.json"
	digestPath  = "datapackage-digest.json"
)

type resource struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

type dataPackage struct {
	Profile     string     `json:"profile"`
	WACZVersion string     `json:"wacz_version"`
	Title       string     `json:"title,omitempty"`
	Software    string     `json:"software"`
	Created     string     `json:"created"`
	Resources   []resource `json:"resources"`
}

// page is a line of the list of pages.
type page struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	TS  string `json:"ts"`
}

// WACZ writes the archive as a WACZ file: the WARC files as they are, an index, and a list of the
// pages. A file that is still being written goes in as far as it is now, and what is appended
// meanwhile is left out of the list of pages, and of the index if it begins a file.
func WACZ(w io.Writer, a *archive.Archive, o Options) error {
	if o.Created.IsZero() {
		o.Created = time.Now()
	}
	// What is in the index that is exported has to be in the files that are copied.
	if err := a.Sync(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	names, err := a.Files()
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	p := &packer{zip: zip.NewWriter(w), created: o.Created}
	short, ends := shortNames(names), map[string]int64{} // up to where files are in the index
	err = p.add(indexPath, zip.Deflate, func(w io.Writer) error {
		return writeCDXJ(w, a, func(loc archive.Location) (name string, in bool) {
			if name, in = short[loc.File]; in {
				ends[loc.File] = max(ends[loc.File], loc.Offset+loc.Length)
			}
			return name, in
		})
	})
	if err == nil {
		err = p.add(pagesPath, zip.Deflate, func(w io.Writer) error { return writePages(w, a, ends) })
	}
	for _, name := range slices.Sorted(maps.Keys(short)) {
		if err == nil {
			// What is compressed already is stored, so that a viewer can read at any offset.
			err = p.add("archive/"+short[name], zip.Store, func(w io.Writer) error {
				return copyFile(w, a, name)
			})
		}
	}
	if err == nil {
		err = p.finish(o)
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// location returns the name by which versions and OpenFile call a file that Files lists.
func location(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return strings.TrimSuffix(name, ".open")
}

// shortNames gives each file a name for the folder of WARC files in the package. Imported files may
// be called alike in different directories; the later ones get a number.
func shortNames(names []string) map[string]string {
	short, taken := map[string]string{}, map[string]bool{}
	for _, name := range names {
		name = location(name)
		if _, twice := short[name]; twice {
			continue // finished, and in an older state beside it
		}
		base := filepath.Base(name)
		for n := 2; taken[base]; n++ {
			base = fmt.Sprintf("%d-%s", n, filepath.Base(name))
		}
		short[name], taken[base] = base, true
	}
	return short
}

// copyFile ends where the archive says that the last whole capture does. The file may be growing.
func copyFile(w io.Writer, a *archive.Archive, name string) error {
	f, err := a.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// packer writes the parts of the file and remembers their hashes.
type packer struct {
	zip       *zip.Writer
	created   time.Time
	resources []resource
}

// add writes a part, which is hashed on its way: an archive may be larger than any memory, and is
// read once.
func (p *packer) add(name string, method uint16, write func(io.Writer) error) error {
	w, err := p.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: p.created})
	if err != nil {
		return err
	}
	sum := sha256.New()
	n := &counter{w: io.MultiWriter(w, sum)}
	if err := write(n); err != nil {
		return err
	}
	p.resources = append(p.resources, resource{path.Base(name), name,
		"sha256:" + hex.EncodeToString(sum.Sum(nil)), n.n})
	return nil
}

// finish writes the list of the parts, and its hash.
func (p *packer) finish(o Options) error {
	list, err := json.MarshalIndent(dataPackage{"data-package", waczVersion, o.Title,
		"spinneret", o.Created.UTC().Format(time.RFC3339), p.resources}, "", "  ")
	if err != nil {
		return err
	}
	if err := p.add(packagePath, zip.Deflate, write(list)); err != nil {
		return err
	}
	sum := sha256.Sum256(list)
	digest, err := json.Marshal(map[string]string{"path": packagePath,
		"hash": "sha256:" + hex.EncodeToString(sum[:])})
	if err == nil {
		err = p.add(digestPath, zip.Deflate, write(digest))
	}
	if err != nil {
		return err
	}
	return p.zip.Close()
}

// write is for the parts that are small enough to be held.
func write(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// counter counts what it passes on.
type counter struct {
	w io.Writer
	n int64
}

// Write passes on.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// writePages lists what a reader may want to begin with: whole documents in HTML, if they lie
// before the end of what was indexed of their file.
func writePages(w io.Writer, a *archive.Archive, ends map[string]int64) error {
	out := bufio.NewWriter(w)
	list := json.NewEncoder(out)
	list.SetEscapeHTML(false)
	err := list.Encode(map[string]string{"format": "json-pages-1.0", "id": "pages", "title": "Pages"})
	n := 0
	for v, failed := range a.All() {
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		loc := v.Location
		if v.Kind == archive.Changed && v.Status == 200 && strings.HasSuffix(v.Media, "html") &&
			loc.Offset+loc.Length <= ends[loc.File] {
			n++
			err = list.Encode(page{fmt.Sprint(n), v.URL, v.Time.Format(time.RFC3339)})
		}
	}
	return errors.Join(err, out.Flush())
}
