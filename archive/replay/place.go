package replay

import (
	"errors"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// Addresses have the archived URL as their tail, as it is: the browser then resolves what no
// rewriting reached, such as a relative URL in a script, to something that stays in the archive.
const (
	viewPath   = "/view/"
	replayPath = "/replay/"
	rawPath    = "/raw/"
)

// latest stands for the last version in an address, where others have a time.
const latest = "latest"

// secondDigits is the length of a time in an address to the second, and fullDigits to the
// microsecond, as which the archive keeps it. Two versions may be of one second.
const (
	secondDigits = "20060102150405"
	fullDigits   = len(secondDigits) + 6
)

// formatMoment returns a time as it stands in addresses.
func formatMoment(t time.Time) string {
	if t.IsZero() {
		return latest
	}
	return strings.Replace(t.UTC().Format(secondDigits+".000000"), ".", "", 1)
}

// parseMoment is the inverse of formatMoment. Fewer digits mean all of that second, day or year:
// what was found in it counts.
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

// parseTime reads a time that a person gave: in a form field, or typed as a date. Empty means the
// last version.
func parseTime(s string) (t time.Time, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return t, true
	}
	digits := strings.NewReplacer("-", "", ":", "", "T", "", " ", "", ".", "", "Z", "").Replace(s)
	return parseMoment(digits)
}

// errNotWeb is returned for anything but the address of a web page.
var errNotWeb = errors.New("replay: no http or https URL")

// parseURL returns a URL in the form in which crawlers ask for it: without credentials and
// fragment.
func parseURL(raw string) (weburl.URL, error) {
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

// parsePlace reads the time and the URL at the end of an address. The URL is parsed as browsers do,
// which also mends one of whose two slashes a proxy has made one.
func parsePlace(tail string) (p place, ok bool) {
	moment, rest, _ := strings.Cut(tail, "/")
	if p.moment, ok = parseMoment(moment); !ok {
		return p, false
	}
	var err error
	p.url, err = parseURL(rest)
	return p, err == nil
}

// at returns the address of a page at a time, below a path that ends in a slash.
func at(path string, moment time.Time, url string) string {
	return path + formatMoment(moment) + "/" + url
}

// withScheme returns the same URL under the other of the two schemes. Sites moved from one to the
// other, and their links did not always follow. It returns "" where a port says which it is.
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
