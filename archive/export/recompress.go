package export

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sort"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// isForeign reports whether viewers in browsers cannot read a file, because it is zstd.
func isForeign(name string) bool { return strings.HasSuffix(name, ".zst") }

// recompressedName returns the name of the gzip file that replaces a foreign file.
func recompressedName(name string) string { return strings.TrimSuffix(name, ".zst") + ".gz" }

// moves maps records to their positions in recompressed files. Its table is in a temporary file,
// because an archive may have more records than fit in memory. Its zero value is ready to use, by
// one goroutine at a time.
type moves struct {
	table *os.File
	rows  int64
	files map[string][2]int64 // the first row and the one after the last
}

// rowSize is the size of a row: a record's old offset, new offset and new length.
const rowSize = 24

// recompress writes the records of a file, each in a gzip member. Damaged records are omitted, and
// have no row.
func (m *moves) recompress(w io.Writer, a *archive.Archive, name string) (err error) {
	if m.table == nil {
		m.files = map[string][2]int64{}
		if m.table, err = os.CreateTemp("", "wacz-"); err != nil {
			return err
		}
	}
	first := m.rows
	out := &counter{w: w}
	z := gzip.NewWriter(out)
	var row [rowSize]byte
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
		binary.BigEndian.PutUint64(row[:], uint64(rec.Offset))
		binary.BigEndian.PutUint64(row[8:], uint64(start))
		binary.BigEndian.PutUint64(row[16:], uint64(out.n-start))
		if _, err := m.table.WriteAt(row[:], m.rows*rowSize); err != nil {
			return err
		}
		m.rows++
	}
	m.files[name] = [2]int64{first, m.rows}
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
func (m *moves) find(name string, offset int64) (at, length int64, err error) {
	rows := m.files[name]
	var row [rowSize]byte
	read := func(i int64) int64 {
		if _, failed := m.table.ReadAt(row[:], i*rowSize); failed != nil && err == nil {
			err = failed
		}
		return int64(binary.BigEndian.Uint64(row[:]))
	}
	n := int(rows[1] - rows[0])
	i := sort.Search(n, func(i int) bool { return read(rows[0]+int64(i)) >= offset })
	if i == n || read(rows[0]+int64(i)) != offset || err != nil {
		return 0, 0, err
	}
	return int64(binary.BigEndian.Uint64(row[8:])), int64(binary.BigEndian.Uint64(row[16:])), nil
}

// close removes the table.
func (m *moves) close() {
	if m.table != nil {
		_ = m.table.Close()
		_ = os.Remove(m.table.Name())
	}
}
