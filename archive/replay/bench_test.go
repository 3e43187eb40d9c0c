package replay

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// article returns a typical page of about size bytes.
func article(size int) []byte {
	var page bytes.Buffer
	page.WriteString(frontPage("An article", "long"))
	for i := 0; page.Len() < size; i++ {
		fmt.Fprintf(&page, `<div class="item"><p>Some words &amp; more, %d times, with a `+
			`<a href="/n/%d?a=1&amp;b=2" class=more>link</a> and `+
			`<img src="//cdn.example.org/i/%d.jpg" srcset="/i/%d.jpg 1x, /i/%d-2.jpg 2x" `+
			`alt="An image"> in them.</p></div>`+"\n", i, i, i, i, i)
	}
	return page.Bytes()
}

// BenchmarkRewrite rewrites pages and sheets of typical sizes.
func BenchmarkRewrite(b *testing.B) {
	const rule = ".a > .b:hover { margin: -5px 0 1.5em; background: #fff url(i/x.png) }\n"
	sheet := strings.Repeat(rule, 700)
	for _, bench := range []struct {
		name string
		size int
		run  func()
	}{
		{"kind=page/size=20K", 20 << 10, nil}, {"kind=page/size=1M", 1 << 20, nil},
		{"kind=sheet/size=48K", len(sheet), func() { rewrittenCSS(sheet, testLinker(home)) }},
	} {
		run := bench.run
		if run == nil {
			page := article(bench.size)
			run = func() { rewrittenHTML(page, testLinker(home)) }
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(bench.size))
			for b.Loop() {
				run()
			}
		})
	}
}

// BenchmarkDiff compares pages with 1% of their lines changed, and pages without common lines,
// which reach the bound.
func BenchmarkDiff(b *testing.B) {
	var before, after, other []string
	for i := range 10_000 {
		before = append(before, fmt.Sprint("line ", i%5000))
		after = append(after, fmt.Sprint("line ", (i%5000)*(1+i%100/99)))
		other = append(other, fmt.Sprint("other ", i%5000))
	}
	for name, to := range map[string][]string{"changed=some": after, "changed=all": other} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				diff(before, to)
			}
		})
	}
}

// BenchmarkCounts counts the versions for the start page and for the page of a host. Real archives
// have millions.
func BenchmarkCounts(b *testing.B) {
	const pages, versions = 5000, 4
	a := archiveOf(b)
	for i := range pages * versions {
		_, err := a.Append(archive.Capture{
			URL:  fmt.Sprintf("http://h%d.example/d%d/p%d", i%50, i%7, i%pages),
			Time: days(i / pages), Body: fmt.Appendf(nil, "<p>%d", i),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")})
		if err != nil {
			b.Fatal(err)
		}
	}
	v := New(a, Options{})
	for name, count := range map[string]func() error{
		"of=archive": func() error { _, err := summarize(a, v.maxScan); return err },
		"of=host": func() error {
			l := &listing{prefix: "h1.example/", size: itemsPerPage, left: maxListed}
			return v.list(b.Context(), l, "http://h1.example/", time.Time{})
		},
	} {
		if err := count(); err != nil { // the first call writes the index
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := count(); err != nil {
					b.Fatal(err)
				}
			}
			n := pages * versions
			if name == "of=host" {
				n /= 50
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/version")
		})
	}
}
