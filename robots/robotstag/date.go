package robotstag

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
	"time"
)

// maxDate bounds, in bytes, the text that is tried as a date.
const maxDate = 64

// form matches the dates found in pages: RFC 822, RFC 850, ISO 8601 and similar. Weekdays are not
// checked: pages get them wrong, and the rest of the date is unambiguous.
var form = sync.OnceValue(func() *regexp.Regexp {
	const (
		weekday = `(?:[a-z]{3,9},? +)?`
		iso     = `(\d{4}-\d\d-\d\d)`
		rfc     = `(\d\d?)[- ]([a-z]{3})[a-z]*[- ](\d\d(?:\d\d)?)`
		clock   = `(\d\d?:\d\d(?::\d\d)?)(?:\.\d+)?`
		zone    = `([a-z]*|[+-]\d\d:?(?:\d\d)?)`
	)
	return regexp.MustCompile(`(?i)^` + weekday + `(?:` + iso + `|` + rfc + `)` +
		`(?:[t ] *(?:` + clock + ` *` + zone + `)?)?$`)
})

// zones are the names that RFC 822 defines besides those of UTC. Other names mean different things
// in different countries, and are read as UTC.
var zones = map[string]string{
	"EDT": "-0400", "EST": "-0500", "CDT": "-0500", "CST": "-0600",
	"MDT": "-0600", "MST": "-0700", "PDT": "-0700", "PST": "-0800",
}

// parseDate reads a date. Without a time it is the start of the day, without a zone UTC.
func parseDate(s string) (date time.Time, ok bool) {
	if len(s) > maxDate {
		return date, false
	}
	m := form().FindStringSubmatch(s)
	if m == nil {
		return date, false
	}
	layout, day := "2006-01-02", m[1]
	if day == "" {
		layout, day = "2-Jan-2006", m[2]+"-"+m[3]+"-"+m[4]
		if len(m[4]) == 2 {
			layout = "2-Jan-06"
		}
	}
	clock, zone := cmp.Or(m[5], "00:00"), strings.ReplaceAll(m[6], ":", "")
	if strings.Count(clock, ":") == 1 {
		clock += ":00"
	}
	switch {
	case zone == "" || zone[0] != '+' && zone[0] != '-':
		zone = cmp.Or(zones[strings.ToUpper(zone)], "+0000")
	case len(zone) == len("+00"):
		zone += "00"
	}
	date, err := time.Parse(layout+" 15:04:05 -0700", day+" "+clock+" "+zone)
	return date.UTC(), err == nil
}
