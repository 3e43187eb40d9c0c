// Package webdate reads the dates that people and programs write into pages, feeds and header
// fields: those of RFC 822 and 850, of ISO 8601, of the C library, and common deviations.
package webdate

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxLen bounds, in bytes, the text that is tried as a date.
const maxLen = 64

// The groups of form.
const (
	digits = iota + 1
	isoYear
	isoMonth
	isoDay
	day
	month
	year
	usMonth
	usDay
	usClock
	usZone
	usYear
	clock
	compactClock
	half
	zone
)

// form matches a date. Words that stand for a weekday or a zone are not looked up, or dates would be lost
// in languages and zones that nobody thought of: which day of the week it is does not matter, as pages get
// it wrong and the rest of the date is unambiguous. Callers whose dates stand next to words of other
// meanings have to know those. Every repetition matches one kind of text, so that the work is linear.
var form = sync.OnceValue(func() *regexp.Regexp {
	const (
		weekday = `(?:\pL{2,12}\.?,? +)?`
		day     = `(\d\d?)(?:st|nd|rd|th|\.)?`
		month   = `([a-z]{3})[a-z]*\.?`
		clock   = `(\d\d?:\d\d(?::\d\d)?)`
		iso     = `(\d{4})(?:[-/](\d\d?)(?:[-/](\d\d?))?)?`
		compact = `(\d{8})`
		rfc     = day + `[- ] *` + month + `[-, ] *(\d{4}|\d\d)`
		us      = month + ` +` + day + `,? +(?:` + clock + ` +(?:([a-z]{1,5}) +)?)?(\d{4})`
		time    = `(?:[t ] *` + clock + `|t(\d{4}(?:\d\d)?))(?:[.,]\d+)?(?: *([ap])(?:m\b|\.m\.?))?`
		zone    = `([a-z]{0,5}|(?:gmt|utc?)?[+-]\d\d?:?(?:\d\d)?(?: +[a-z]{1,5})?)(?: +\([a-z ]*\))?`
	)
	return regexp.MustCompile(`(?i)^` + weekday + `(?:` + compact + `|` + iso + `|` + rfc + `|` + us + `)` +
		`(?:` + time + ` *` + zone + `|[t ] *)?$`)
})

// zones are the hours of the names that RFC 822 defines besides those of UTC. Other names mean
// different things in different countries, and are read as UTC; its letters have wrong signs.
var zones = map[string]int{
	"EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8,
}

var months = map[string]int{
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
	"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}

// Parse reads a date, in UTC and to the second. A missing month or day is the first, a missing time
// the start of the day, and a missing zone UTC. It is safe for concurrent use.
func Parse(s string) (date time.Time, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) > maxLen {
		return date, false
	}
	if date, err := time.Parse(time.RFC3339, s); err == nil { // the usual one, and fast
		return date.UTC().Truncate(time.Second), true
	}
	m := form().FindStringSubmatch(s)
	if m == nil {
		return date, false
	}
	switch {
	case m[digits] != "":
		date, ok = civil(m[digits][:4], m[digits][4:6], m[digits][6:])
	case m[isoYear] != "":
		date, ok = civil(m[isoYear], m[isoMonth], m[isoDay])
		ok = ok && (m[isoDay] != "" || s[0] == m[isoYear][0]) // "Summer 2025" is no date
	case m[year] != "":
		date, ok = civil(m[year], m[month], m[day])
	default:
		date, ok = civil(m[usYear], m[usMonth], m[usDay])
	}
	if !ok {
		return time.Time{}, false
	}
	seconds, ok := ofDay(m[clock] + m[compactClock] + m[usClock])
	if !ok || m[clock]+m[compactClock] != "" && m[usClock] != "" {
		return time.Time{}, false
	}
	if seconds, ok = ofHalf(seconds, m[half]); !ok {
		return time.Time{}, false
	}
	ahead, ok := offset(m[zone] + m[usZone])
	if !ok {
		return time.Time{}, false
	}
	return date.Add(time.Duration(seconds-ahead) * time.Second), true
}

// civil returns the start of a day, and whether there is such a day.
func civil(year, month, day string) (date time.Time, ok bool) {
	y, m, d := number(year), number(month), number(day)
	if len(year) == 2 { // as package time does
		if y += 1900; y < 1969 {
			y += 100
		}
	}
	switch {
	case month == "":
		m = 1
	case m == 0:
		m = months[strings.ToLower(month)]
	}
	if day == "" {
		d = 1
	}
	date = time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	return date, date.Month() == time.Month(m) && date.Day() == d
}

// ofDay returns the seconds since the start of the day, and whether there is such a time. There are
// leap seconds, and the end of a day is 24:00.
func ofDay(clock string) (seconds int, ok bool) {
	if clock == "" {
		return 0, true
	}
	if !strings.Contains(clock, ":") {
		clock = clock[:2] + ":" + clock[2:4] + ":" + clock[4:]
	}
	part := strings.Split(clock+":00", ":")
	h, m, s := number(part[0]), number(part[1]), number(part[2])
	seconds = h*3600 + m*60 + s
	return seconds, m < 60 && s <= 60 && (h < 24 || seconds == 24*3600)
}

// ofHalf returns the seconds of a time that counts from midnight (a) or noon (p), if it says so.
// Such a clock begins with 12.
func ofHalf(seconds int, half string) (ofDay int, ok bool) {
	const hour = 3600
	if half == "" {
		return seconds, true
	}
	if seconds < hour || seconds >= 13*hour {
		return 0, false
	}
	seconds %= 12 * hour
	if strings.EqualFold(half, "p") {
		seconds += 12 * hour
	}
	return seconds, true
}

// offset returns how many seconds a zone is ahead of UTC, and whether there can be such a zone. A name
// after an offset says the same.
func offset(zone string) (seconds int, ok bool) {
	at := strings.IndexAny(zone, "+-")
	if at < 0 {
		return zones[strings.ToUpper(zone)] * 3600, true
	}
	digits, _, _ := strings.Cut(strings.Replace(zone[at+1:], ":", "", 1), " ")
	hours, minutes := digits, ""
	if len(digits) > 2 {
		hours, minutes = digits[:len(digits)-2], digits[len(digits)-2:]
	}
	seconds = number(hours)*3600 + number(minutes)*60
	if zone[at] == '-' {
		seconds = -seconds
	}
	return seconds, number(hours) < 24 && number(minutes) < 60
}

// number returns the value of a few digits; 0 if there are none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the form has no others
	return n
}
