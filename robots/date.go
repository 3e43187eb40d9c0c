package robots

import (
	"strconv"
	"strings"
	"time"
)

const (
	maxDate    = 64                  // bytes: bounds the work on what may be no date at all
	maxSeconds = 999_999_999_999_999 // before and after 1970 (RFC 9651, 3.3.7)
)

// parseDate reads the dates that pages hold: those of RFC 822 and 850 and their like, of C, and of
// ISO 8601. Without a time it is the start of the day, without a zone UTC.
func parseDate(s string) (date time.Time, ok bool) {
	if len(s) > maxDate || s == "" {
		return date, false
	}
	if s[0] == '@' { // the dates of RFC 9651, of which a time.Time holds all
		seconds, err := strconv.ParseInt(s[1:], 10, 64)
		if err != nil || seconds < -maxSeconds || seconds > maxSeconds {
			return date, false
		}
		return time.Unix(seconds, 0).UTC(), true
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		return date, false
	}
	if weekday := strings.TrimRight(words[0], ","); isWeekday(weekday) {
		words = words[1:]
	}
	day, rest := cutDay(words)
	var ok1, ok2 bool
	digits := leading(rest, func(c byte) bool { return isDigit(c) || c == ':' || c == '.' })
	offset, ok1 := parseZone(strings.TrimSpace(rest[len(digits):]))
	clock, ok2 := parseAny(digits, "", "15:04:05", "15:04")
	date, ok = parseAny(day, "2006-01-02", "2-Jan-2006", "2-Jan-06", "2-January-2006")
	if !ok || !ok1 || !ok2 || digits == "" && rest != "" {
		return time.Time{}, false
	}
	hour, minute, second := clock.Clock()
	since := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	return date.Add(since + time.Duration(second)*time.Second - offset), true
}

// cutDay splits off the part of a date that names the day, with hyphens between its parts: that is
// what the standards have in different order and with different marks. What follows is always a
// time and a zone.
func cutDay(words []string) (day, rest string) {
	switch {
	case len(words) == 0:
		return "", ""
	case len(words) == 4 && !isDigit(words[0][0]): // Jun 25 15:00:00 2025
		return words[1] + "-" + words[0] + "-" + words[3], words[2]
	case !strings.Contains(words[0], "-") && len(words) >= 3:
		return strings.Join(words[:3], "-"), strings.Join(words[3:], " ")
	}
	day, rest = words[0], strings.Join(words[1:], " ")
	if i := strings.IndexAny(day, "Tt"); i == len("2006-01-02") {
		day, rest = day[:i], strings.TrimSpace(day[i+1:]+" "+rest)
	}
	return day, rest
}

// parseAny returns the time by the first layout that fits.
func parseAny(s string, layouts ...string) (t time.Time, ok bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// isWeekday reports whether s is a name of a day, short or long. Whether it is the right day is not
// checked: pages get it wrong, and the rest of the date is clear.
func isWeekday(s string) bool {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if name := day.String(); strings.EqualFold(s, name) || strings.EqualFold(s, name[:3]) {
			return true
		}
	}
	return false
}

// zones are the names, beside those of UTC, that RFC 822 gives a meaning. Others mean different
// things in different countries.
var zones = map[string]time.Duration{
	"EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8,
}

// parseZone takes names that it does not know for UTC.
func parseZone(s string) (offset time.Duration, ok bool) {
	if leading(s, isAlpha) == s {
		return zones[strings.ToUpper(s)] * time.Hour, true
	}
	zone, ok := parseAny(s, "-0700", "-07:00", "-07")
	_, seconds := zone.Zone()
	return time.Duration(seconds) * time.Second, ok
}
