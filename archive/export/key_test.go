package export

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

func TestLines(t *testing.T) {
	at := time.Date(2026, 11, 3, 4, 5, 6, 7_000, time.UTC)
	loc := archive.Location{File: "f.warc.gz", Offset: 12, Length: 34}
	for _, tt := range []struct {
		name string
		v    archive.Version
		want string
	}{
		{"all fields", archive.Version{URL: "http://a.test/b", Time: at,
			Kind: archive.Changed, Status: 200, Media: "text/html", Location: loc},
			`test,a)/b 20261103040506 {"url":"http://a.test/b","mime":"text/html","status":"200",` +
				`"length":"34","offset":"12","filename":"x"}`},
		{"a revisit", archive.Version{URL: "http://a.test/b", Time: at, Kind: archive.Unchanged,
			Status: 304, Media: "text/html", Location: loc},
			`test,a)/b 20261103040506 {"url":"http://a.test/b","mime":"warc/revisit",` +
				`"status":"304","length":"34","offset":"12","filename":"x"}`},
		{"no status and no type", archive.Version{URL: "http://a.test/b", Time: at, Location: loc},
			`test,a)/b 20261103040506 {"url":"http://a.test/b",` +
				`"length":"34","offset":"12","filename":"x"}`},
		{"special characters of HTML", archive.Version{URL: `http://a.test/<&"`, Time: at},
			`test,a)/<&" 20261103040506 {"url":"http://a.test/<&\"",` +
				`"length":"0","offset":"0","filename":"x"}`},
		{"a space in the query", archive.Version{URL: "http://a.test/?b=c d", Time: at},
			`test,a)/?b=c%20d 20261103040506 {"url":"http://a.test/?b=c d",` +
				`"length":"0","offset":"0","filename":"x"}`},
		{"control characters without a host", archive.Version{URL: "x:a b\rc\td\x7f", Time: at},
			`x:a%20bcd%7f 20261103040506 {"url":"x:a b\rc\td` + "\x7f" + `",` +
				`"length":"0","offset":"0","filename":"x"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const before = "before "
			got := line{Filename: "x"}.append([]byte(before), &tt.v)
			require.Equal(t, before+tt.want, string(got))
		})
	}
}

// FuzzLine asserts that any URL takes one line, whose key has no space and whose JSON has the URL.
func FuzzLine(f *testing.F) {
	f.Add("http://a.test/b c\n")
	f.Add("dns:x y")
	f.Add("http://www.:a@/?&&=")
	f.Fuzz(func(t *testing.T, url string) {
		if strings.ContainsAny(url, "\n\x00") || strings.ToValidUTF8(url, "") != url {
			t.Skip() // no version has such a URL, or JSON cannot represent it
		}
		v := archive.Version{URL: url, Time: time.Unix(1.8e9, 0)}
		text := string(line{Filename: "f"}.append(nil, &v))
		require.NotContains(t, text, "\n")
		require.NotContains(t, text, "\r")
		parts := strings.SplitN(text, " ", 3)
		require.Len(t, parts, 3)
		require.Equal(t, "20270115080000", parts[1])
		var fields line
		require.NoError(t, json.Unmarshal([]byte(parts[2]), &fields))
		require.Equal(t, url, fields.URL)
	})
}

func TestShortNames(t *testing.T) {
	for _, tt := range []struct {
		name  string
		names []string
		want  map[string]string
	}{
		{"the archive's own files keep their names", []string{"a.warc.gz", "b.warc.gz.open"},
			map[string]string{"a.warc.gz": "a.warc.gz", "b.warc.gz": "b.warc.gz"}},
		{"imports lose their directories", []string{"/x/a.warc.gz", "/y/b.warc.gz.open"},
			map[string]string{"/x/a.warc.gz": "a.warc.gz", "/y/b.warc.gz.open": "b.warc.gz.open"}},
		{"the later one of the same name gets a number", []string{"a", "/x/a", "/y/a"},
			map[string]string{"a": "a", "/x/a": "2-a", "/y/a": "3-a"}},
		{"an old copy of a finished file is not another file", []string{"a.warc", "a.warc.open"},
			map[string]string{"a.warc": "a.warc"}},
		{"numbers skip names that are taken", []string{"2-a", "a", "/x/a"},
			map[string]string{"2-a": "2-a", "a": "a", "/x/a": "3-a"}},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, shortNames(tt.names)) })
	}
}
