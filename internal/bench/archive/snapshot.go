package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// readSize is the size of reads when a file is read sequentially.
const readSize = 2 << 20

// snapshot counts only the bytes of the snapshot's documents, whatever else a subject has to read.
// In the first contest, all captures belong to the snapshot; in the second, its captures are
// scattered among many older versions.
func snapshot(o options) error {
	if err := snapshotOf("dense", func(i int) string { return capture(i).URL }, o); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(3, 4))
	return snapshotOf("scattered", func(int) string { return capture(r.IntN(o.pages/2 + 1)).URL }, o)
}

func snapshotOf(what string, url func(i int) string, o options) error {
	dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a, err := fillWith(dir, o.pages, url)
	if err != nil {
		return err
	}
	defer a.Close()
	places, err := wanted(a)
	if err != nil {
		return err
	}
	same := filepath.Join(dir, "same-bytes")
	total, err := concatenate(same, dir, places)
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.warc.*"))
	if err != nil {
		return err
	}
	cold := func(name string, run func() error) subject {
		return subject{name, func() (int64, error) { return total, run() }, func() error {
			for _, name := range append(names, same) {
				if err := forget(name); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	s, err := a.Snapshot(archive.Query{})
	if err != nil {
		return err
	}
	defer s.Close()
	byAddress := slices.Clone(places)
	slices.SortFunc(byAddress, func(a, b archive.Location) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	return contest{
		cold("the same bytes, one file", func() error { return endToEnd(same) }),
		cold("snapshot, already located", func() error { return documents(s) }),
		cold("snapshot, with the search", func() error { return findAndRead(a) }),
		cold("all files, sequentially", func() error { return endToEnd(names...) }),
		cold("by pointer, in file order", func() error { return byPointer(dir, byAddress) }),
		cold("by pointer, in index order", func() error { return byPointer(dir, places) }),
	}.compare(what, o.rounds)
}

// fillWith creates an archive of n captures, whose URLs may repeat.
func fillWith(dir string, n int, url func(i int) string) (*archive.Archive, error) {
	a, err := archive.Open(dir, archive.Options{Compression: warc.Zstd, MaxFile: 256 << 20})
	if err != nil {
		return nil, err
	}
	for i := range n {
		c := capture(i)
		c.URL = url(i)
		c.Body = fmt.Appendf(bytes.Clone(c.Body), "%d", i) // each is stored
		c.Time = c.Time.Add(time.Duration(i) * time.Second)
		if _, err := a.Append(c); err != nil {
			return nil, err
		}
	}
	return a, a.Sync()
}

// wanted returns the locations of the last versions, in the order of the index.
func wanted(a *archive.Archive) (places []archive.Location, err error) {
	for v, err := range a.All() {
		if err != nil {
			return nil, err
		}
		if v.Until.IsZero() {
			places = append(places, v.Content)
		}
	}
	return places, nil
}

// concatenate writes the members of a snapshot to one file, and returns its length.
func concatenate(name, dir string, places []archive.Location) (total int64, err error) {
	out, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	err = eachPart(dir, places, func(part []byte) error {
		n, err := out.Write(part)
		total += int64(n)
		return err
	})
	return total, err
}

// eachPart reads parts of files in the given order.
func eachPart(dir string, places []archive.Location, visit func([]byte) error) error {
	files := map[string]*os.File{}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	buf := make([]byte, 1<<20)
	for _, loc := range places {
		f := files[loc.File]
		if f == nil {
			var err error
			if f, err = openNamed(dir, loc.File); err != nil {
				return err
			}
			files[loc.File] = f
		}
		if _, err := f.ReadAt(buf[:loc.Length], loc.Offset); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if err := visit(buf[:loc.Length]); err != nil {
			return err
		}
	}
	return nil
}

func byPointer(dir string, places []archive.Location) error {
	return eachPart(dir, places, func([]byte) error { return nil })
}

func openNamed(dir, name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		f, err = os.Open(filepath.Join(dir, name+".open"))
	}
	return f, err
}

func endToEnd(names ...string) error {
	buf := make([]byte, readSize)
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

func documents(s *archive.Snapshot) error {
	for _, err := range s.Documents() {
		if err != nil {
			return err
		}
	}
	return nil
}

func findAndRead(a *archive.Archive) error {
	s, err := a.Snapshot(archive.Query{})
	if err != nil {
		return err
	}
	defer s.Close()
	return documents(s)
}
