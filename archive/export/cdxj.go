package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/internal/extsort"
)

// sortMemory bounds the memory for sorting.
const sortMemory = 64 << 20

// line is the JSON of a line, with pywb's field names.
type line struct {
	URL      string `json:"url"`
	Mime     string `json:"mime,omitempty"`
	Status   string `json:"status,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Length   string `json:"length"`
	Offset   string `json:"offset"`
	Filename string `json:"filename"`
	Method   string `json:"method,omitempty"`
	Body     string `json:"requestBody,omitempty"`

	elsewhere bool // another record has the body
}

// CDXJ writes a line for each version, with its key, time and JSON, sorted by bytes. The keys are
// those of the Internet Archive's surt library, which pywb looks up. They are coarser than the
// archive's own: in lower case, without "www.", session IDs and the trailing slash, and with sorted
// query parameters. For methods other than GET, the key includes the method and the body of the
// request, as warcio.js writes them. Imported files are named by their paths.
func CDXJ(w io.Writer, a *archive.Archive) error {
	err := writeCDXJ(w, a, func(loc archive.Location) (archive.Location, bool) { return loc, true })
	if err != nil {
		return fmt.Errorf("export: index: %w", err)
	}
	return nil
}

// placing returns the position of a record in the export, and whether it is exported.
type placing func(archive.Location) (at archive.Location, in bool)

// writeCDXJ writes a line for each exported version.
func writeCDXJ(w io.Writer, a *archive.Archive, place placing) error {
	sorter := extsort.New(sortMemory)
	defer sorter.Close()
	for v, err := range a.All() {
		if err != nil {
			return err
		}
		l := line{elsewhere: v.Content != archive.Location{} && v.Content != v.Location}
		in := false
		if v.Location, in = place(v.Location); !in {
			continue
		}
		l.Filename = v.Location.File
		if v.Request != (archive.Location{}) {
			if l.Method, l.Body, err = posted(a, &v); err != nil {
				return err
			}
		}
		if err := sorter.Add(l.append(nil, &v)); err != nil {
			return err
		}
	}
	if err := sorter.Sort(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for text, err := range sorter.Items() {
		if err != nil {
			return err
		}
		_, _ = out.Write(text) // Flush returns the error
		_ = out.WriteByte('\n')
	}
	return out.Flush()
}

// append appends the line of a version without the line break. Like other indexers, it omits
// unknown fields and does not escape HTML. A revisit is marked by its media type, since its status
// is that of the page.
func (l line) append(dst []byte, v *archive.Version) []byte {
	_, l.Digest, _ = strings.Cut(v.Digest(), ":")
	l.URL, l.Mime = v.URL, v.Media
	l.Offset = strconv.FormatInt(v.Location.Offset, 10)
	l.Length = strconv.FormatInt(v.Location.Length, 10)
	if v.Status != 0 {
		l.Status = strconv.Itoa(v.Status)
	}
	if v.Kind == archive.Unchanged || l.elsewhere {
		l.Mime = "warc/revisit"
	}
	target := v.URL
	if l.Method != "" {
		target = postedURL(target, l.Method, l.Body)
	}
	b := bytes.NewBuffer(appendWord(dst, surt(target)))
	b.WriteByte(' ')
	b.Write(v.Time.AppendFormat(b.AvailableBuffer(), "20060102150405"))
	b.WriteByte(' ')
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(l) // strings always encode
	return bytes.TrimRight(b.Bytes(), "\n")
}

// appendWord escapes spaces and control characters, which would end a key or its line. URLs in
// imported files may contain them.
func appendWord(dst []byte, key string) []byte {
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c == 0x7f {
			dst = fmt.Appendf(dst, "%%%02x", c)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}
