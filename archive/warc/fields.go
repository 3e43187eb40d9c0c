package warc

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Field is one named field of a record's header.
type Field struct{ Name, Value string }

// Fields are the named fields of a record in the order of the file.
type Fields []Field

// Get returns the value of the first field of that name, ignoring case, or "".
func (f Fields) Get(name string) string {
	for i := range f {
		if len(f[i].Name) == len(name) && strings.EqualFold(f[i].Name, name) {
			return f[i].Value
		}
	}
	return ""
}

// Values returns the values of all fields of that name, in order.
func (f Fields) Values(name string) (values []string) {
	for i := range f {
		if strings.EqualFold(f[i].Name, name) {
			values = append(values, f[i].Value)
		}
	}
	return values
}

// Type returns WARC-Type in lower case: response, revisit and so on.
func (f Fields) Type() string { return strings.ToLower(f.Get("WARC-Type")) }

// URI returns the URI of a field without angle brackets. WARC 1.0 puts them around all URIs, and
// WARC 1.1 around some.
func (f Fields) URI(name string) string {
	value := f.Get(name)
	if inner, found := strings.CutPrefix(value, "<"); found {
		return strings.TrimSuffix(inner, ">")
	}
	return value
}

// Date returns WARC-Date, including fractions of seconds, which WARC 1.1 allows, and whether it is
// valid.
func (f Fields) Date() (time.Time, bool) { return Field{Value: f.Get("WARC-Date")}.Date() }

// dateLayouts are the layouts of WARC 1.1, section 5.4. A less precise date means the start of its
// period.
var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04Z", "2006-01-02", "2006-01", "2006"}

// Date parses WARC-Date or WARC-Refers-To-Date, and reports whether it is valid. A year must have four
// digits in UTC.
func (f Field) Date() (time.Time, bool) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, f.Value); err == nil && hasFourDigits(t) {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// hasFourDigits reports whether a year can be written. A zone can move a year with four digits past
// the limit.
func hasFourDigits(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 0 && year <= 9999
}

// errLength means that the end of the block is unknown.
var errLength = errors.New("no usable Content-Length")

// length returns Content-Length. Two different values are an error, because other readers may use
// either.
func (f Fields) length() (int64, error) {
	length := int64(-1)
	for i := range f {
		if !strings.EqualFold(f[i].Name, "Content-Length") {
			continue
		}
		n, err := strconv.ParseUint(f[i].Value, 10, 62)
		if err != nil || length >= 0 && length != int64(n) {
			return 0, errLength
		}
		length = int64(n)
	}
	if length < 0 {
		return 0, errLength
	}
	return length, nil
}

// parseHeader cuts a header, without the blank line at its end, into the version and the fields,
// which it appends to fields.
func parseHeader(header []byte, fields Fields) (version string, _ Fields, err error) {
	text := string(header)
	line, rest := cutLine(text)
	version = strings.TrimRight(line, " \t")
	if !isVersion(version) {
		return "", fields, errors.New("no version line")
	}
	if continues(rest) {
		return "", fields, errors.New("a continuation line before the first field")
	}
	for rest != "" {
		line, rest = cutLine(rest)
		name, value, found := strings.Cut(line, ":")
		if !found {
			return "", fields, errors.New("a line of the header is not a field")
		}
		value, rest = cutValue(value, rest)
		fields = append(fields, Field{strings.TrimRight(name, " \t"), value})
	}
	return version, fields, nil
}

// continues reports whether the next line continues the value.
func continues(rest string) bool { return rest != "" && (rest[0] == ' ' || rest[0] == '\t') }

// cutValue joins the first line of a value and its continuation lines with spaces. It allocates one
// string, since there may be a million lines.
func cutValue(first, rest string) (value, _ string) {
	value = strings.Trim(first, " \t")
	if !continues(rest) {
		return value, rest
	}
	joined := []byte(value)
	for continues(rest) {
		first, rest = cutLine(rest)
		if line := strings.Trim(first, " \t"); line != "" && len(joined) > 0 {
			joined = append(append(joined, ' '), line...)
		} else {
			joined = append(joined, line...)
		}
	}
	return string(joined), rest
}

// isVersion reports whether a line begins with "WARC/" in any case and a digit. Later versions are
// accepted.
func isVersion(line string) bool {
	return hasVersion([]byte(line)) && len(line) > longest && '0' <= line[longest] &&
		line[longest] <= '9'
}

// hasVersion reports whether a record may begin here. The case does not count: literals in the
// standard's grammar are those of RFC 5234, section 2.3.
func hasVersion(b []byte) bool {
	return len(b) >= longest && bytes.EqualFold(b[:longest], magics[2])
}

// cutLine cuts after the first LF, and drops the LF and a CR before it.
func cutLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}
