package webdate

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	at := func(y int, m time.Month, d, h, min int) time.Time {
		return time.Date(y, m, d, h, min, 0, 0, time.UTC)
	}
	for text, want := range map[string]time.Time{
		// The W3C's note on date and time formats.
		"1997":                         at(1997, 1, 1, 0, 0),
		"1997-07":                      at(1997, 7, 1, 0, 0),
		"1997-07-16":                   at(1997, 7, 16, 0, 0),
		"1997-07-16T19:20+01:00":       at(1997, 7, 16, 18, 20),
		"1997-07-16T19:20:00+01:00":    at(1997, 7, 16, 18, 20),
		"1997-07-16T19:20:00.45+01:00": at(1997, 7, 16, 18, 20),

		"1997-07-16 07:20:00 pm":    at(1997, 7, 16, 19, 20),
		"16 Jul 1997 2:30 AM EST":   at(1997, 7, 16, 7, 30),
		"Jul 16, 1997 12:10 p.m.":   at(1997, 7, 16, 12, 10),
		"Jul 16, 1997 12:10AM":      at(1997, 7, 16, 0, 10),
		"1997-07-16T19:20:00":       at(1997, 7, 16, 19, 20),
		"1997-07-16t19:20:00.75z":   at(1997, 7, 16, 19, 20),
		"1997-07-16T19:20:00,75Z":   at(1997, 7, 16, 19, 20),
		"1997-07-16 19:20:00":       at(1997, 7, 16, 19, 20),
		"1997-07-16T19:20:00+0100":  at(1997, 7, 16, 18, 20),
		"1997-07-16 19:20:00 +0100": at(1997, 7, 16, 18, 20),
		"1997-07-16T19:20":          at(1997, 7, 16, 19, 20),
		"1997-07-16T19:20-02":       at(1997, 7, 16, 21, 20),
		"1997-07-16T":               at(1997, 7, 16, 0, 0),
		"1997-7-16":                 at(1997, 7, 16, 0, 0),
		"1997/7/16":                 at(1997, 7, 16, 0, 0),
		"19970716":                  at(1997, 7, 16, 0, 0),

		"Wed, 16 Jul 1997 19:20:00 +0100":      at(1997, 7, 16, 18, 20),
		"16 Jul 97 19:20 GMT":                  at(1997, 7, 16, 19, 20),
		"16 Jul 97 19:20 UT":                   at(1997, 7, 16, 19, 20),
		"Wed, 16 Jul 97 19:20:00 GMT":          at(1997, 7, 16, 19, 20),
		"Wed, 16 Jul 1997 19:20:00":            at(1997, 7, 16, 19, 20),
		"Wed, 16 Jul 97 19:20":                 at(1997, 7, 16, 19, 20),
		"Wed, 16 Jul 1997 19:20:00 EST":        at(1997, 7, 17, 0, 20),
		"Wed, 16 Jul 1997 19:20:00 pdt":        at(1997, 7, 17, 2, 20),
		"Wed, 16 Jul 1997 19:20:00 Z":          at(1997, 7, 16, 19, 20),
		"Wed, 16 Jul 1997 19:20:00 CEST":       at(1997, 7, 16, 19, 20),
		"Wed, 16 Jul 1997 19:20:00 MSK":        at(1997, 7, 16, 19, 20),
		"Thurs 16 Jul 1997 19:20 aest":         at(1997, 7, 16, 19, 20),
		"Wed, 16 Jul 1997 19:20:00 -0100":      at(1997, 7, 16, 20, 20),
		"Wednesday, 16 July 1997 19:20:00 UTC": at(1997, 7, 16, 19, 20),
		"Sun, 16 Jul 1997 19:20:00 GMT":        at(1997, 7, 16, 19, 20),
		"Wednesday, 16-Jul-97 19:20:00 GMT":    at(1997, 7, 16, 19, 20),
		"Wednesday, 16-Jul-1997 19:20:00 GMT":  at(1997, 7, 16, 19, 20),
		"wed, 16 jul 1997":                     at(1997, 7, 16, 0, 0),
		"16 Jul 1997":                          at(1997, 7, 16, 0, 0),
		" 16 Jul 68\n":                         at(2068, 7, 16, 0, 0),
		"16 Jul 69":                            at(1969, 7, 16, 0, 0),

		"Wed Jul 16 19:20:00 1997": at(1997, 7, 16, 19, 20),
		"Wed Jul  6 19:20:00 1997": at(1997, 7, 6, 19, 20),
		"July 16, 1997 19:20:00":   at(1997, 7, 16, 19, 20),
		"Jul 16, 1997":             at(1997, 7, 16, 0, 0),
	} {
		got, ok := Parse(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "now", "yesterday", "Wed,", "@", "1", "12345", "1997-13-01", "1997-00-01", "1997-02-31", "31 Feb 1997",
		"16 Foo 1997", "Sommer 1997", "Wed, 1997-07", "16 Anf 1997", "Foo 16, 1997", "1997-07-16 GMT", "1997-07-16 25:00", "1997-07-16 19:60",
		"Wed Wed 16 Jul 1997", "16 Jul 1997 19:20 noindex", "1 16 Jul 1997",
		"16 Jul 97 1500 UT", "16 Jul 1997 15:00:00 +9x", "16 Jul 1997 15:00:00 GMT, noindex",
		"Jul 16 19:20:00 1997 19:20:00", "16 Jul 1997 15:00:00 " + strings.Repeat("a", 64), strings.Repeat("1", 100),
	} {
		got, ok := Parse(text)
		require.False(t, ok, text)
		require.Zero(t, got, text)
	}
}

// FuzzParse checks that whatever is a date reads the same when it is written in each of the forms.
func FuzzParse(f *testing.F) {
	f.Add("Wed, 16 Jul 1997 19:20:00 +0100")
	f.Add("1997-07-16T19:20:00Z")
	f.Fuzz(func(t *testing.T, text string) {
		date, ok := Parse(text)
		if ok != !date.IsZero() && date.Year() != 1 {
			t.Fatalf("%q: %v, %v", text, date, ok)
		}
		if year := date.Year(); !ok || year < 1969 || year > 2068 {
			return
		}
		zone := time.FixedZone("", -3*3600-1800)
		for _, form := range []string{time.RFC3339, time.RFC3339Nano, time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC,
			"02 Jan 06 15:04:05 -0700", "2006-01-02 15:04:05 -0700", "January 2, 2006 15:04:05"} {
			written := date.Format(form)
			if strings.Contains(form, "07") {
				written = date.In(zone).Format(form)
			}
			again, ok := Parse(written)
			if !ok || !again.Equal(date) {
				t.Errorf("%q is %v, but %q is %v, %v", text, date, written, again, ok)
			}
		}
	})
}

// TestNoSuchTime: what no clock shows and no zone has is no date, rather than another one.
func TestNoSuchTime(t *testing.T) {
	for _, text := range []string{
		"21 Aug 2025 10:00:00 +9959", "21 Aug 2025 10:00:00 +0160", "2025-08-21 14:30 PM", "2025-08-21 00:30 am",
	} {
		_, ok := Parse(text)
		require.False(t, ok, text)
	}
}

// TestForms has what the standards and programs write less often.
func TestForms(t *testing.T) {
	want := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, text := range []string{
		"Tue, 2 Jan 2024 03:04:05 +0000 (UTC)", "Tue, 2 Jan 2024 04:04:05 +0100 (Central European Time)",
		"20240102T030405Z", "20240102T030405", "20240102T050405+02", "2024-01-02T030405Z", "20240102 03:04:05",
		"Tue Jan 2 03:04:05 UTC 2024", "Mon Jan  1 19:04:05 PST 2024", "2024-01-02 03:04:05 +0000 UTC",
		"2024-01-02 05:04:05 +0200 CEST", "Tue Jan 02 2024 05:04:05 GMT+0200 (CEST)", "Jan. 2, 2024 03:04:05",
		"2nd January 2024 03:04:05", "Tuesday, January 2nd, 2024 03:04:05", "2. Jan. 2024 5:04:05 UTC+2",
		"Mon, 01 Jan 2024 21:34:05 GMT-5:30", "2 Jan 2024 08:34:05 +530",
	} {
		date, ok := Parse(text)
		require.True(t, ok, text)
		require.Equal(t, want, date, text)
	}
	for _, text := range []string{
		"2023-12-31T24:00:00Z", "Sun, 31 Dec 2023 23:59:60 GMT", "20231231T2400", "Sun Dec 31 24:00 2023",
	} {
		date, ok := Parse(text)
		require.True(t, ok, text)
		require.Equal(t, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), date, text)
	}
	for _, text := range []string{
		"20240102030405", "2024-01-02 0304", "20240102T03040", "2024-01-02T24:00:01", "2024-01-02T23:59:61",
		"Jan 2 foo 2024", "2024-01-02 (UTC)", "2024-01-02T10:00 GMT+0200 more words",
	} {
		_, ok := Parse(text)
		require.False(t, ok, text)
	}
}

// Words that nobody knows hide no date that is unambiguous without them.
func TestUnknownWords(t *testing.T) {
	for _, text := range []string{
		"Weds, 05 Mar 2025 10:00:00 GMT", "Mit, 05 Mar 2025 10:00:00 +0000", "Mier 05 Mar 2025 10:00:00",
		"mi\u00e9., 05 Mar 2025 10:00", "\u0441\u0440, 05 Mar 2025 10:00:00 GMT", "Mi 2025-03-05 10:00", "St\u0159eda, 5 Mar 2025 10:00",
		"05 Mar 2025 10:00:00 MEZ", "05 Mar 2025 10:00:00 WIB", "05 Mar 2025 10:00:00 AoE",
	} {
		date, ok := Parse(text)
		require.True(t, ok, text)
		require.Equal(t, time.Date(2025, 3, 5, 10, 0, 0, 0, time.UTC), date, text)
	}
}
