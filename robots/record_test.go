package robots

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const manyRecords = "Host: h.test # main\nX-Early: 1\nuser-agent: foo\nX-Foo : a b:c\nnocolon value\n" +
	"user-agent: foo2\nallow: /\nsitemap: /s.xml\nCrawl-Delay: 3\n" +
	"user-agent: *\nNoindex: /a\nLicense: https://h.test/l.xml\nx-empty:\nuser-agent: foo\nx-foo: late\n"

// A record that nobody has thought of yet must be reachable, with its place.
func TestRecordsOfFile(t *testing.T) {
	file := Parse([]byte(manyRecords))
	require.Equal(t, []Record{
		{0, 1, "Host", "h.test"},
		{0, 2, "X-Early", "1"},
		{1, 4, "X-Foo", "a b:c"},
		{1, 5, "nocolon", "value"},
		{1, 8, "sitemap", "/s.xml"},
		{1, 9, "Crawl-Delay", "3"},
		{2, 11, "Noindex", "/a"},
		{2, 12, "License", "https://h.test/l.xml"},
		{2, 13, "x-empty", ""},
		{2, 15, "x-foo", "late"},
	}, slices.Collect(file.Records()))
	for range file.Records() {
		break
	}
	require.Empty(t, slices.Collect(FromResponse(503, nil).Records()))
}

func TestRecordsOfRules(t *testing.T) {
	file := Parse([]byte(manyRecords))
	require.Equal(t, []Record{
		{1, 4, "X-Foo", "a b:c"},
		{1, 5, "nocolon", "value"},
		{1, 9, "Crawl-Delay", "3"},
		{2, 11, "Noindex", "/a"},
		{2, 13, "x-empty", ""},
		{2, 15, "x-foo", "late"},
	}, slices.Collect(file.Rules("foo").Records()), "its two groups: no rule parts * from foo")
	require.Len(t, slices.Collect(file.Rules("other").Records()), 3)
	require.Len(t, slices.Collect(file.Rules("foo2").Records()), 3)
	require.Empty(t, slices.Collect(Rules{}.Records()))
	require.Empty(t, slices.Collect(FromResponse(503, nil).Rules("foo").Records()))
}

func TestSitemapURLs(t *testing.T) {
	file := Parse([]byte("sitemap: https://h.test/a.xml\nsitemap: /b.xml\nsitemap: c.xml\n" +
		"sitemap: //other.test/d.xml\nsitemap: h.test/e.xml\nsitemap: HTTPS://h.test/a.xml\n" +
		"sitemap: mailto:x\nsitemap: http://%zz/\nsitemap: file:///etc\nsitemap: https:///f\n"))
	require.Equal(t, []string{
		"https://h.test/a.xml",
		"https://h.test:8443/b.xml",
		"https://h.test:8443/c.xml",
		"https://other.test/d.xml",
		"https://h.test:8443/h.test/e.xml",
	}, file.SitemapURLs("https://h.test:8443/robots.txt"))
	require.Equal(t, []string{"https://h.test/a.xml"}, file.SitemapURLs("%"),
		"without a base only the absolute ones are left")
}

func TestLicensesAndHost(t *testing.T) {
	file := Parse([]byte("host:\nlicense: /l.xml\nuser-agent: a\nLICENSE: https://h.test/l.xml\n" +
		"license: https://rsl.test/x\nHost: www.h.test:81\nhost: other.test\n"))
	require.Equal(t, []string{"https://h.test/l.xml", "https://rsl.test/x"},
		file.Licenses("https://h.test/robots.txt"))
	require.Equal(t, "www.h.test:81", file.Host())
	require.Empty(t, Parse(nil).Host())
}

func TestCleanParams(t *testing.T) {
	file := Parse([]byte("clean-param: s /forum/show.php\nuser-agent: x\nClean-Param: a&B&&c \t /x*y z\n" +
		"clean-param: ref\nclean-param: & /a\nclean-param:\n"))
	require.Equal(t, []CleanParam{
		{[]string{"s"}, "/forum/show.php"},
		{[]string{"a", "B", "c"}, "/x*y z"},
		{[]string{"ref"}, ""},
	}, file.CleanParams())
}

func clock(hour, minute int) time.Duration {
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
}

func TestRates(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  Rate
		delay time.Duration
	}{
		{"1/5", Rate{1, 5 * time.Second, allDay}, 5 * time.Second},
		{"1/5s", Rate{1, 5 * time.Second, allDay}, 5 * time.Second},
		{"30/1m", Rate{30, time.Minute, allDay}, 2 * time.Second},
		{"3/1", Rate{3, time.Second, allDay}, 333_333_334},
		{"100/1H", Rate{100, time.Hour, allDay}, 36 * time.Second},
		{"1/2d", Rate{1, 48 * time.Hour, allDay}, MaxDelay},
		{"99999/99999d", Rate{99999, 99999 * 24 * time.Hour, allDay}, MaxDelay},
		{"1/10m 1300-1659", Rate{1, 10 * time.Minute, Window{clock(13, 0), clock(16, 59)}},
			10 * time.Minute},
		{"1/1 2200 - 0600", Rate{1, time.Second, Window{clock(22, 0), clock(6, 0)}}, time.Second},
	} {
		rates := Parse([]byte("user-agent: *\nrequest-rate: " + tt.value)).Rules("foo").Rates()
		require.Equal(t, []Rate{tt.want}, rates, tt.value)
		require.Equal(t, tt.delay, rates[0].Delay(), tt.value)
	}
	for _, value := range []string{
		"", "/", "1", "5", "0/5", "1/0", "-1/5", "1/-5", "1/5x", "1/5ms", "1.5/1", "1/5 s", "1/5 25",
		"100000/1", "1/100000", "1/5 0800-", "1/5 0860-0900", "1/5 2500-0100", "x/y", "1/5s0800-0900",
	} {
		rules := Parse([]byte("user-agent: *\nrequest-rate: " + value)).Rules("foo")
		require.Empty(t, rules.Rates(), value)
	}
	require.Zero(t, Rate{}.Delay())
	require.Empty(t, Rules{}.Rates())
}

func TestVisitTimes(t *testing.T) {
	file := Parse([]byte("visit-time: 0000-0001\nuser-agent: foo\nVisit-time: 0600-0845\n" +
		"visit-time: 2230 - 2400\nvisit-time: 9\nvisit-time: 1-2\nvisit-time: 0600\n" +
		"visit-time: 06:00-08:45\nvisit-time: 2401-0000\ndisallow: /\nuser-agent: *\nallow: /\n"))
	require.Equal(t, []Window{
		{clock(6, 0), clock(8, 45)}, {clock(22, 30), clock(23, 59)},
	}, file.Rules("foo").VisitTimes())
	require.Empty(t, file.Rules("bar").VisitTimes())
}

func TestWindowContains(t *testing.T) {
	day, night := Window{clock(6, 0), clock(8, 45)}, Window{clock(22, 0), clock(5, 59)}
	zone := time.FixedZone("", 2*60*60)
	for _, tt := range []struct {
		window Window
		at     time.Time
		want   bool
	}{
		{day, time.Date(2024, 1, 1, 6, 0, 0, 0, time.UTC), true},
		{day, time.Date(2024, 1, 1, 5, 59, 59, 999, time.UTC), false},
		{day, time.Date(2024, 1, 1, 8, 45, 59, 999, time.UTC), true},
		{day, time.Date(2024, 1, 1, 8, 46, 0, 0, time.UTC), false},
		{day, time.Date(2024, 1, 1, 8, 0, 0, 0, zone), true},
		{day, time.Date(2024, 1, 1, 6, 0, 0, 0, zone), false},
		{night, time.Date(2024, 1, 1, 23, 0, 0, 0, time.UTC), true},
		{night, time.Date(2024, 1, 1, 3, 0, 0, 0, time.UTC), true},
		{night, time.Date(2024, 1, 1, 6, 0, 0, 0, time.UTC), false},
		{night, time.Date(2024, 1, 1, 21, 59, 0, 0, time.UTC), false},
		{allDay, time.Date(2024, 1, 1, 23, 59, 59, 0, time.UTC), true},
		{Window{}, time.Date(2024, 1, 1, 0, 0, 30, 0, time.UTC), true},
		{Window{}, time.Date(2024, 1, 1, 0, 1, 0, 0, time.UTC), false},
	} {
		require.Equal(t, tt.want, tt.window.Contains(tt.at), "%+v", tt)
	}
}
