package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimesInAddresses(t *testing.T) {
	end := func(y int, mo time.Month, d, h, mi, s int) time.Time {
		return time.Date(y, mo, d, h, mi, s, 0, time.UTC).Add(-time.Microsecond)
	}
	for _, tt := range []struct {
		name, text string
		want       time.Time
	}{
		{"the last version", "latest", time.Time{}},
		{"to the microsecond", "20261102090000000001", monday.Add(time.Microsecond)},
		{"the end of a second", "20261102090000", end(2026, 11, 2, 9, 0, 1)},
		{"the end of a minute", "202611020900", end(2026, 11, 2, 9, 1, 0)},
		{"the end of an hour", "2026110209", end(2026, 11, 2, 10, 0, 0)},
		{"the end of a day", "20261102", end(2026, 11, 3, 0, 0, 0)},
		{"the end of a month", "202611", end(2026, 12, 1, 0, 0, 0)},
		{"the end of a year", "2026", end(2027, 1, 1, 0, 0, 0)},
		{"the last month of a year", "202612", end(2027, 1, 1, 0, 0, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseMoment(tt.text)
			require.True(t, ok)
			require.Equal(t, tt.want, got)
			back, ok := parseMoment(formatMoment(got))
			require.True(t, ok)
			require.Equal(t, got, back)
		})
	}
	for _, text := range []string{"", "now", "20", "20261", "20261302", "20261102250000", "-2026",
		"2026110209000000000", "202611020900000000011", "２０２６", "2026-11"} {
		_, ok := parseMoment(text)
		require.False(t, ok, text)
	}
}

func TestTimesInForms(t *testing.T) {
	for _, text := range []string{"2026-11-02T09:00", "2026-11-02 09:00", " 202611020900 ",
		"2026-11-02T09:00Z"} {
		got, ok := parseTime(text)
		require.True(t, ok, text)
		require.Equal(t, monday.Add(time.Minute-time.Microsecond), got, text)
	}
	got, ok := parseTime(" ")
	require.True(t, ok)
	require.True(t, got.IsZero())
	_, ok = parseTime("yesterday")
	require.False(t, ok)
}

func TestPlaces(t *testing.T) {
	for _, tt := range []struct{ name, tail, url string }{
		{"unchanged", "latest/http://a.example/b?c=(d)", "http://a.example/b?c=(d)"},
		{"with a slash removed by a proxy", "latest/http:/a.example/b", "http://a.example/b"},
		{"without the path", "latest/http://a.example", "http://a.example/"},
		{"with dots", "latest/http://a.example/b/../c", "http://a.example/c"},
		{"with another address in the query", "latest/http://a.example/?u=http://b.example/",
			"http://a.example/?u=http://b.example/"},
		{"with credentials", "latest/http://me:x@a.example/", "http://a.example/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := parsePlace(tt.tail)
			require.True(t, ok)
			require.Equal(t, tt.url, p.url.String())
		})
	}
	for _, tail := range []string{"", "latest", "latest/", "latest/javascript:x", "latest/ftp://a/",
		"latest/a.example", "soon/http://a.example/", "http://a.example/"} {
		_, ok := parsePlace(tail)
		require.False(t, ok, tail)
	}
}

// FuzzTimesInAddresses asserts that any time of an archive can be formatted and parsed.
func FuzzTimesInAddresses(f *testing.F) {
	f.Add(monday.UnixMicro())
	f.Add(int64(-1))
	f.Fuzz(func(t *testing.T, micro int64) {
		at := time.UnixMicro(micro).UTC()
		if year := at.Year(); year < 0 || year > 9999 || at.IsZero() {
			t.Skip()
		}
		got, ok := parseMoment(formatMoment(at))
		if !ok || !got.Equal(at) {
			t.Errorf("%v became %q, then %v, %t", at, formatMoment(at), got, ok)
		}
	})
}
