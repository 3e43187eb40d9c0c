package sitemap

import (
	"strings"
	"time"
)

// dateForms are those of sitemaps and Atom (W3C date and time), and common deviations.
var dateForms = []string{
	time.RFC3339, "2006-01-02", "2006-01-02T15:04Z07:00", "2006-01", "2006",
	"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04:05-0700",
	"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04",
	"2006-1-2", "2006/1/2", "20060102",
}

// mailForms are those of RSS, which uses the dates of mail (RFC 822, RFC 5322), without the day of
// the week and the zone.
var mailForms = []string{
	"2 Jan 2006 15:04:05", "2 Jan 06 15:04:05", "2 Jan 2006 15:04", "2 Jan 06 15:04", "2 Jan 2006",
	"2 January 2006 15:04:05", "2 January 2006", "January 2 2006 15:04:05", "Jan 2 15:04:05 2006",
}

// zones are the names of RFC 822. It also has zones of one letter, but with wrong signs, so they
// are not reliable.
var zones = map[string]string{
	"UT": "+0000", "GMT": "+0000", "UTC": "+0000", "Z": "+0000",
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// parseDate returns the zero time if s is not a date. Without a zone it is UTC.
func parseDate(s string) time.Time {
	const longest = 64
	if s = strings.TrimSpace(s); len(s) > longest {
		return time.Time{}
	}
	for _, form := range dateForms {
		if at, err := time.Parse(form, s); err == nil {
			return at
		}
	}
	words := strings.Fields(strings.ReplaceAll(s, ",", " "))
	if len(words) < 3 {
		return time.Time{}
	}
	// The day of the week is redundant, and sometimes wrong.
	for _, day := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
		if strings.HasPrefix(strings.ToLower(words[0]), day) {
			words = words[1:]
			break
		}
	}
	zone, last := "+0000", len(words)-1
	if offset, ok := zones[strings.ToUpper(words[last])]; ok {
		zone, words = offset, words[:last]
	} else if c := words[last][0]; (c == '+' || c == '-') && len(words[last]) == len(zone) {
		zone, words = words[last], words[:last]
	}
	text := strings.ReplaceAll(strings.Join(words, " "), "-", " ") + " " + zone
	for _, form := range mailForms {
		if at, err := time.Parse(form+" -0700", text); err == nil {
			return at
		}
	}
	return time.Time{}
}
