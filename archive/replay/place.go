package replay

import (
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// Addresses end in the archived URL, unchanged. So if a URL was not rewritten, such as a relative
// URL in a script, the browser resolves it to an address in the archive.
const (
	viewPath   = "/view/"
	replayPath = "/replay/"
	rawPath    = "/raw/"
)

// latest stands for the time in addresses of the last version.
const latest = "latest"

// secondDigits is the length of a time in an address with seconds, and fullDigits with
// microseconds, the archive's resolution. Two versions may have the same second.
const (
	secondDigits = "20060102150405"
	fullDigits   = len(secondDigits) + 6
)

// formatMoment formats a time for addresses.
func formatMoment(t time.Time) string {
	if t.IsZero() {
		return latest
	}
	return strings.Replace(t.UTC().Format(secondDigits+".000000"), ".", "", 1)
}

// parseMoment is the inverse of formatMoment. Fewer digits mean the end of that second, day or
// year, so that versions found in it count.
func parseMoment(s string) (t time.Time, ok bool) {
	if s == latest {
		return t, true
	}
	if strings.Trim(s, "0123456789") != "" {
		return t, false
	}
	if len(s) == fullDigits {
		cut := len(secondDigits)
		t, err := time.Parse(secondDigits+".000000", s[:cut]+"."+s[cut:])
		return t, err == nil
	}
	for _, unit := range []struct {
		digits int
		next   func(time.Time) time.Time
	}{
		{4, func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }},
		{6, func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
		{8, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
		{10, func(t time.Time) time.Time { return t.Add(time.Hour) }},
		{12, func(t time.Time) time.Time { return t.Add(time.Minute) }},
		{14, func(t time.Time) time.Time { return t.Add(time.Second) }},
	} {
		if len(s) == unit.digits {
			t, err := time.Parse(secondDigits[:unit.digits], s)
			return unit.next(t).Add(-time.Microsecond), err == nil
		}
	}
	return t, false
}

// timeShape is the form of a time that a user enters, which may end after each part. Other forms are
// refused: which part a digit belongs to is not guessed.
const timeShape = "0000-00-00T00:00:00.000000"

// parseTime parses a time that the user entered, in a form field or as a date, or as digits alone. ""
// means the last version.
func parseTime(s string) (t time.Time, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return t, true
	}
	s = strings.TrimSuffix(s, "Z")
	if t, ok = parseMoment(s); ok {
		return t, true
	}
	var digits []byte
	for i := range len(s) {
		switch {
		case i >= len(timeShape) || isDigit(s[i]) != isDigit(timeShape[i]),
			!isDigit(s[i]) && s[i] != timeShape[i] && (s[i] != ' ' || timeShape[i] != 'T'):
			return t, false
		case isDigit(s[i]):
			digits = append(digits, s[i])
		}
	}
	return parseMoment(string(digits))
}

// errNotWeb is returned for URLs other than http and https, and for those that are too long.
var errNotWeb = errors.New("replay: not an http or https URL of at most 64 KiB")

// maxURL bounds a URL, in bytes. The archive has no longer ones.
const maxURL = 64 << 10

// parseURL returns a URL in the form that crawlers request: without credentials and fragment.
func parseURL(raw string) (weburl.URL, error) {
	if len(raw) > maxURL {
		return weburl.URL{}, errNotWeb
	}
	u, err := weburl.Parse(raw, nil)
	if err != nil {
		return u, err
	}
	if !weburl.IsWeb(&u) || u.Host == "" {
		return u, errNotWeb
	}
	u.Username, u.Password = "", ""
	u.Fragment, u.HasFragment = "", false
	return u, nil
}

// place is a page at a time.
type place struct {
	moment time.Time
	url    weburl.URL
}

// parsePlace parses the time and the URL at the end of an address. It parses the URL as browsers
// do, which also repairs a double slash that a proxy has merged.
func parsePlace(tail string) (p place, ok bool) {
	moment, rest, _ := strings.Cut(tail, "/")
	if p.moment, ok = parseMoment(moment); !ok {
		return p, false
	}
	var err error
	p.url, err = parseURL(rest)
	return p, err == nil
}

// placeAt is parsePlace for the URL as it is in the archive.
func (v *Handler) placeAt(tail string) (p place, ok bool) {
	if p, ok = parsePlace(tail); ok {
		p.url = v.stored(p.url)
	}
	return p, ok
}

// at returns the address of a page at a time, below a path that ends in a slash.
func at(path string, moment time.Time, url string) string {
	return path + formatMoment(moment) + "/" + escaped(url)
}

const hexDigits = "0123456789abcdefABCDEF"

// escaped returns a URL as browsers write it, and with an escape for each percent sign that starts
// none, since servers refuse such a path.
func escaped(url string) string {
	path, _, _ := strings.Cut(url, "?")
	path = strings.ReplaceAll(path, `\`, "%5C") + url[len(path):] // not a slash
	u, err := weburl.Parse(strings.ReplaceAll(path, " ", "%20"), nil)
	if err != nil {
		return url
	}
	in := u.String()
	var out strings.Builder
	for {
		before, after, found := strings.Cut(in, "%")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteByte('%')
		if len(after) < 2 || strings.Trim(after[:2], hexDigits) != "" {
			out.WriteString("25")
		}
		in = after
	}
}

// spellings undo what a browser escapes. Other programs may send and store a URL without: all of it,
// or only what is not a space or a percent sign.
var spellings = func() []func(string) string {
	pairs := []string{"%22", `"`, "%27", "'", "%3C", "<", "%3E", ">", "%5C", `\`, "%5E", "^",
		"%60", "`", "%7B", "{", "%7D", "}"}
	all := strings.NewReplacer(append(pairs, "%20", " ")...)
	return []func(string) string{strings.NewReplacer(pairs...).Replace,
		func(s string) string { return all.Replace(barePercents(s)) }}
}()

// barePercents undoes the escapes of escaped. Of an escape with an escaped percent sign, such as %2541,
// it would make that of another page.
func barePercents(s string) string {
	parts := strings.Split(s, "%25")
	for i, after := range parts[1:] {
		if len(after) >= 2 && strings.Trim(after[:2], hexDigits) == "" {
			parts[i] += "25"
		}
	}
	return strings.Join(parts, "%")
}

// stored returns a URL as it is in the archive: in another spelling only if that one is not there.
func (v *Handler) stored(u weburl.URL) weburl.URL {
	for other := range respelled(u) {
		if _, err := v.archive.At(other.String(), time.Time{}); err == nil {
			return other
		}
	}
	return u
}

// respelled returns the spellings of a URL, first its own.
func respelled(u weburl.URL) iter.Seq[weburl.URL] {
	return func(yield func(weburl.URL) bool) {
		if !yield(u) {
			return
		}
		for _, r := range spellings {
			other := u
			other.Path, other.Query = r(u.Path), r(u.Query)
			if (other.Path != u.Path || other.Query != u.Query) && !yield(other) {
				return
			}
		}
	}
}

// withScheme returns the same URL with the other of the two schemes, because sites moved from one
// to the other, but not all links did. It returns "" if a port determines the scheme.
func withScheme(u weburl.URL) string {
	if u.Port != "" {
		return ""
	}
	if u.Scheme == "http" {
		u.Scheme = "https"
	} else {
		u.Scheme = "http"
	}
	return u.String()
}
