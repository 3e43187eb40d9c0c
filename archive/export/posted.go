package export

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// maxPosted bounds the part of a request body that is read, and maxQuery the query in a line, in
// bytes. The second is the limit of warcio.js.
const (
	maxPosted = 1 << 20
	maxQuery  = 4096
)

// posted returns the method of a request other than GET, and its body as a query, so that responses
// to different forms have different keys.
func posted(a *archive.Archive, v *archive.Version) (method, query string, err error) {
	rec, err := a.Read(v.Request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, warc.ErrDamaged) {
		return "", "", nil // the request is missing or damaged
	}
	if err != nil {
		return "", "", err
	}
	defer rec.Close()
	message, err := rec.HTTP()
	if errors.Is(err, warc.ErrDamaged) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	method, _, _ = strings.Cut(string(message.Head), " ")
	body, err := io.ReadAll(io.LimitReader(message.Body, maxPosted))
	if err == nil {
		err = rec.Close() // where damage shows
	}
	if errors.Is(err, warc.ErrDamaged) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	query = bodyQuery(message.Get("Content-Type"), body)
	for len(query) > maxQuery {
		_, size := utf8.DecodeLastRuneInString(query)
		query = query[:len(query)-size]
	}
	return method, query, nil
}

// postedURL appends a method and a query to a URL as warcio.js and pywb do. A query that does not
// decode to UTF-8 is omitted.
func postedURL(target, method, query string) string {
	if text, err := url.PathUnescape(query); err != nil || !utf8.ValidString(text) {
		query = ""
	}
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	return fmt.Sprintf("%s%s__wb_method=%s&%s", target, separator, method, query)
}

// bodyQuery converts the body of a request to a query.
func bodyQuery(contentType string, body []byte) string {
	media, _, _ := strings.Cut(contentType, ";")
	switch media {
	case "application/x-www-form-urlencoded":
		return strings.ToValidUTF8(string(body), "\ufffd")
	case "application/json", "text/plain":
		var q query
		q.json(json.NewDecoder(bytes.NewReader(body)))
		return q.String()
	case "multipart/form-data":
		var q query
		q.multipart(contentType, string(body))
		return q.String()
	}
	return "__wb_post_data=" + base64.StdEncoding.EncodeToString(body)
}

// query is a list of names and values. Its zero value is ready to use, by one goroutine at a time.
type query struct {
	names, values []string
	size          int            // of those that add has appended
	seen          map[string]int // how often add got a name, or where set put it
}

// set sets the value of a name.
func (q *query) set(name, value string) {
	if q.seen == nil {
		q.seen = map[string]int{}
	}
	if i, found := q.seen[name]; found {
		q.values[i] = value
		return
	}
	q.seen[name] = len(q.names)
	q.names, q.values = append(q.names, name), append(q.values, value)
}

// add appends a name with its value. It numbers a name that was added before. What comes after the
// longest query in a line is dropped: a document may repeat a long name for each of its values.
func (q *query) add(name, value string) {
	if q.size > maxQuery {
		return
	}
	if q.seen == nil {
		q.seen = map[string]int{}
	}
	q.seen[name]++
	if n := q.seen[name]; n > 1 {
		name = fmt.Sprintf("%s.%d_", name, n)
	}
	q.size += len(name) + len(value)
	q.names, q.values = append(q.names, name), append(q.values, value)
}

// String encodes the query like URLSearchParams in browsers.
func (q *query) String() string {
	var b strings.Builder
	for i := range q.names {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(searchParam(q.names[i]) + "=" + searchParam(q.values[i]))
	}
	return b.String()
}

var searchParams = strings.NewReplacer("%2A", "*", "~", "%7E")

func searchParam(s string) string { return searchParams.Replace(url.QueryEscape(s)) }

// json sets the query to the values of a document, each named by its nearest key. It ignores
// invalid JSON.
func (q *query) json(d *json.Decoder) {
	var found query
	if found.value(d, "", 0) == nil {
		if _, err := d.Token(); err == io.EOF {
			*q = found
		}
	}
}

// maxDepth bounds the recursion into a document.
const maxDepth = 1000

var errDepth = errors.New("export: JSON is nested too deeply")

// value adds one value, including all nested ones.
func (q *query) value(d *json.Decoder, name string, depth int) error {
	token, err := d.Token()
	if err != nil || depth > maxDepth {
		return cmp.Or(err, errDepth)
	}
	switch t := token.(type) {
	case json.Delim:
		for d.More() {
			inner := name
			if t == '{' {
				key, err := d.Token()
				if err != nil {
					return err
				}
				inner, _ = key.(string)
			}
			if err := q.value(d, inner, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token() // the closing delimiter
		return err
	case string:
		if t != "" {
			q.add(name, t)
		}
	case float64:
		q.add(name, number(t))
	case bool:
		q.add(name, strconv.FormatBool(t))
	case nil:
		q.add(name, "null")
	}
	return nil
}

// number formats a number as a browser does.
func number(f float64) string {
	if size := math.Abs(f); size < 1e21 && size >= 1e-6 || f == 0 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strings.Replace(strconv.FormatFloat(f, 'e', -1, 64), "e-0", "e-", 1)
}

var formField = regexp.MustCompile(`(?i)name="([^"]+)"\r\n\r\n([^\r\n]*)`)

// multipart sets the fields of a form, each up to its first line break. Files are omitted.
func (q *query) multipart(contentType, body string) {
	_, boundary, found := strings.Cut(contentType, "boundary=")
	if !found || boundary == "" {
		return
	}
	for part := range strings.SplitSeq(body, strings.Trim(boundary, `"`)) {
		if m := formField.FindStringSubmatch(part); m != nil {
			q.set(m[1], m[2])
		}
	}
}
