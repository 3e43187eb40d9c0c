package export

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// isForeign reports whether viewers in browsers cannot read a file, because it is zstd.
func isForeign(name string) bool { return strings.HasSuffix(name, ".zst") }

// recompressedName returns the name of the gzip file that replaces a foreign file.
func recompressedName(name string) string { return strings.TrimSuffix(name, ".zst") + ".gz" }

// A move is the new position of the record that was at an offset.
type move struct{ offset, at, length int64 }

// moves maps records to their positions in recompressed files: for each file, those of its records in their order.
type moves map[string][]move

// recompress writes the records of a file, each in a gzip member. Damaged records are omitted, and
// have no move.
func (m moves) recompress(w io.Writer, a *archive.Archive, name string) error {
	out := &counter{w: w}
	z := gzip.NewWriter(out)
	for rec, err := range a.Records(name) {
		if errors.Is(err, warc.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		start := out.n
		z.Reset(out)
		err = writeRecord(z, rec)
		if closed := z.Close(); closed != nil {
			return closed
		}
		if errors.Is(err, warc.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		m[name] = append(m[name], move{rec.Offset, start, out.n - start})
	}
	return nil
}

// writeRecord writes a record with its parsed header and unchanged block.
func writeRecord(w io.Writer, rec *warc.Record) error {
	header := []byte(rec.Version + "\r\n")
	for _, f := range rec.Fields() {
		header = append(header, f.Name+": "+f.Value+"\r\n"...)
	}
	if _, err := w.Write(append(header, "\r\n"...)); err != nil {
		return err
	}
	if _, err := io.Copy(w, rec); err != nil {
		return err
	}
	_, err := w.Write([]byte("\r\n\r\n"))
	return err
}

// find returns the new position of a record. The length is 0 if the record was omitted.
func (m moves) find(name string, offset int64) (at, length int64) {
	i, found := slices.BinarySearchFunc(m[name], offset, func(to move, offset int64) int {
		return cmp.Compare(to.offset, offset)
	})
	if !found {
		return 0, 0
	}
	return m[name][i].at, m[name][i].length
}
