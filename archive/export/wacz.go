package export

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// Options sets the metadata of a WACZ file. The zero Options is the recommendation.
type Options struct {
	// Title is the title that viewers show. "" means none.
	Title string
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

// packageDigest is the hash of the list of parts.
type packageDigest struct {
	Path string `json:"path"`
	Hash string `json:"hash"`
}

// page is a line of the list of pages.
type page struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	TS    string `json:"ts"`
	Title string `json:"title,omitempty"`
}

// WACZ writes the archive as a WACZ file: the WARC files, an index, and a list of the pages with
// their titles. Files called .zst are recompressed with gzip, because viewers in browsers do not read them, which takes
// up to 60 bytes of memory for each of their records. Other files are copied unchanged. A file that is still
// being written is included up to its current end. Captures appended during the call may be
// missing, but both lists name only captures that are in the files. If an erasure changes the archive
// during the call, the file is incomplete, and an error says so.
func WACZ(w io.Writer, a *archive.Archive, o Options) error {
	if err := pack(w, a, o.Title); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// pack writes the file.
func pack(w io.Writer, a *archive.Archive, title string) error {
	// Records in the exported index must be in the copied files.
	if err := a.Sync(); err != nil {
		return err
	}
	names, err := a.Files()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return isUnknown(a, name) })
	p := &packer{zip: zip.NewWriter(w), created: time.Now(), archive: a, short: shortNames(names),
		ends: map[string]int64{}, others: map[string]bool{}, moves: moves{}}
	if a.Erasing() {
		return errErased
	}
	for _, name := range slices.Sorted(maps.Keys(p.short)) {
		// Compressed files are stored, so that a viewer can read at any offset.
		err := p.add("archive/"+p.short[name], zip.Store, func(w io.Writer) error { return p.copy(w, name) })
		if err != nil {
			return err
		}
	}
	err = p.add(indexPath, zip.Deflate, func(w io.Writer) error { return writeCDXJ(w, a, p.place) })
	if err == nil {
		err = p.add(pagesPath, zip.Deflate, func(w io.Writer) error { return writePages(w, a, p.place) })
	}
	if err == nil {
		err = p.notErased()
	}
	if err == nil {
		err = p.finish(title)
	}
	return err
}

// isUnknown reports whether another program has put a file into the directory since the archive was opened.
func isUnknown(a *archive.Archive, name string) bool {
	f, err := a.OpenFile(location(name))
	if err == nil {
		_ = f.Close() // it was not written to
	}
	return errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(name)
}

// location converts a name from Files to the name that versions and OpenFile use.
func location(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return strings.TrimSuffix(name, ".open")
}

// shortNames returns the names of the files in the package. Imported files from different
// directories may have the same name; later ones get a number.
func shortNames(names []string) map[string]string {
	short, taken := map[string]string{}, map[string]bool{}
	for _, name := range names {
		name = location(name)
		if _, twice := short[name]; twice {
			continue // an older copy of a finished file
		}
		own := filepath.Base(name)
		if isForeign(own) {
			own = recompressedName(own)
		}
		base := own
		for n := 2; taken[base]; n++ {
			base = fmt.Sprintf("%d-%s", n, own)
		}
		short[name], taken[base] = base, true
	}
	return short
}

// packer writes the parts of the file and remembers their hashes.
type packer struct {
	zip       *zip.Writer
	created   time.Time
	resources []resource
	archive   *archive.Archive
	short     map[string]string // the names of files in the package
	ends      map[string]int64  // how much of each file was copied
	others    map[string]bool   // files with versions that were not copied
	moves     moves             // of the records in recompressed files
}

// copy writes a file of the archive, up to its last complete capture.
func (p *packer) copy(w io.Writer, name string) error {
	if isForeign(name) {
		return p.moves.recompress(w, p.archive, name)
	}
	f, err := p.archive.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	p.ends[name], err = io.Copy(w, f)
	return err
}

// place returns the position of a record in the package.
func (p *packer) place(loc archive.Location) (at archive.Location, in bool) {
	name, in := p.short[loc.File]
	switch {
	case !in:
		p.others[loc.File] = true
		return loc, false
	case isForeign(loc.File):
		offset, length := p.moves.find(loc.File, loc.Offset)
		return archive.Location{File: name, Offset: offset, Length: length}, length > 0
	}
	in = loc.Offset+loc.Length <= p.ends[loc.File]
	loc.File = name
	return loc, in
}

// erasedField is in all records of the file in which an erasure leaves its tombstone, and what it has
// moved.
const erasedField = "Spinneret-Erased"

// notErased returns an error if an erasure has made a file since the list of files: a capture that it
// moved there is in no list of the package, and one that is gone may be in a file of it.
func (p *packer) notErased() error {
	if p.archive.Erasing() {
		return errErased
	}
	names, err := p.archive.Files()
	for _, name := range append(names, slices.Collect(maps.Keys(p.others))...) {
		name = location(name)
		if _, copied := p.short[name]; copied || filepath.IsAbs(name) {
			continue
		}
		for rec, failed := range p.archive.Records(name) {
			if failed == nil && rec.Type() == "warcinfo" {
				continue
			}
			if failed == nil && rec.Get(erasedField) != "" {
				return errErased
			}
			break // an unreadable file is not part of the package
		}
	}
	return err
}

// add writes a part and hashes it at the same time: an archive may be larger than memory, and is
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
func (p *packer) finish(title string) error {
	list, err := json.MarshalIndent(dataPackage{"data-package", waczVersion, title,
		"spinneret", p.created.UTC().Format(time.RFC3339), p.resources}, "", "  ")
	if err != nil {
		return err
	}
	if err := p.add(packagePath, zip.Deflate, write(list)); err != nil {
		return err
	}
	sum := sha256.Sum256(list)
	digest, err := json.Marshal(packageDigest{packagePath, "sha256:" + hex.EncodeToString(sum[:])})
	if err == nil {
		err = p.add(digestPath, zip.Deflate, write(digest))
	}
	if err != nil {
		return err
	}
	return p.zip.Close()
}

// write returns an argument of add for a part that is in memory.
func write(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// counter counts the bytes written to a writer.
type counter struct {
	w io.Writer
	n int64
}

// Write implements [io.Writer].
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

var errErased = errors.New("an erasure has changed the archive meanwhile: export it again")
