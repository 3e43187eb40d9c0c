package robotstxt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"
)

// typicalFile has the shape of most files of shops and blogs: 29 rules, 3 with wildcards.
const typicalFile = `# Please be gentle with our servers.
User-agent: *
Crawl-delay: 2
Disallow: /admin/
Disallow: /account/
Disallow: /basket
Disallow: /bin/
Disallow: /cache/
Disallow: /checkout/
Disallow: /cgi-bin/
Disallow: /compare/
Disallow: /customer/
Disallow: /downloads/private/
Disallow: /feeds/internal/
Disallow: /includes/
Disallow: /login
Disallow: /logout
Disallow: /media/tmp/
Disallow: /modules/
Disallow: /newsletter/
Disallow: /orders/
Disallow: /print/
Disallow: /profiles/
Disallow: /review/
Disallow: /search
Disallow: /sendfriend/
Disallow: /wishlist/
Allow: /media/
Allow: /search/about
Disallow: /*?session=
Disallow: /*/trackback/
Disallow: /*.inc$

User-agent: examplebot-images
Disallow: /

Sitemap: https://www.example.com/sitemap.xml
`

var typicalURLs = []string{
	"https://www.example.com/",
	"https://www.example.com/blog/2024/05/how-we-bake-bread",
	"https://www.example.com/orders/4711/details",
	"https://www.example.com/shop/shoes/running/model-x?colour=red&size=42",
	"https://www.example.com/search/about",
	"https://www.example.com/shop/cart.php?session=0123456789abcdef",
	"https://www.example.com/wiki/%E6%97%A5%E6%9C%AC%E8%AA%9E",
	"https://www.example.com/media/img/photo-0001.jpg",
}

// hostileFile is the most wildcard rules that a body can usefully hold.
func hostileFile() []byte { return wildFile("disallow:/*a%d*b$\n") }

func wildFile(format string) []byte {
	var b strings.Builder
	b.WriteString("user-agent:*\n")
	for i := 0; b.Len() < MaxSize; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return []byte(b.String())
}

// shopFile has 124 rules, 30 of them with wildcards, as big shops do.
func shopFile() []byte {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range 94 {
		fmt.Fprintf(&b, "Disallow: /shop/%c%c/department-%d/\n", 'a'+i%26, 'a'+i%7, i)
	}
	for i := range 10 {
		fmt.Fprintf(&b, "Disallow: /*/part-%d/*.html\n", i)
		fmt.Fprintf(&b, "Disallow: /*?page%d=\n", i)
		fmt.Fprintf(&b, "Allow: /shop/*/item-%d$\n", i)
	}
	return []byte(b.String())
}

func BenchmarkMatch(b *testing.B) {
	for _, file := range []struct {
		name string
		body []byte
	}{
		{"typical", []byte(typicalFile)},
		{"shop", shopFile()},
		{"hostile", hostileFile()},
		{"hostile-open", wildFile("disallow:/*a%d*b\n")},
	} {
		b.Run("file="+file.name+"/engine=own", func(b *testing.B) {
			rules := Parse(file.body).Rules("examplebot")
			benchmarkChecks(b, rules.Allowed)
		})
		b.Run("file="+file.name+"/engine=temoto", func(b *testing.B) {
			data, err := robotstxt.FromBytes(file.body)
			if err != nil {
				b.Fatal(err)
			}
			group := data.FindGroup("examplebot")
			benchmarkChecks(b, func(url string) bool {
				return group.Test(strings.TrimPrefix(url, "https://www.example.com"))
			})
		})
	}
}

var sink bool

func benchmarkChecks(b *testing.B, allowed func(url string) bool) {
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		sink = allowed(typicalURLs[i%len(typicalURLs)])
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "checks/s")
}

// BenchmarkParse includes what the first check of a file costs: rules are compiled on demand.
func BenchmarkParse(b *testing.B) {
	for _, file := range []struct {
		name string
		body []byte
	}{
		{"typical", []byte(typicalFile)},
		{"hostile", hostileFile()},
	} {
		b.Run("file="+file.name+"/engine=own", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(file.body)))
			for b.Loop() {
				sink = Parse(file.body).Rules("examplebot").Allowed("/")
			}
			live := liveHeap(5, func() *File { return compiledFile(file.body) })
			b.ReportMetric(float64(live), "live-B/file")
		})
		b.Run("file="+file.name+"/engine=temoto", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(file.body)))
			for b.Loop() {
				if _, err := robotstxt.FromBytes(file.body); err != nil {
					b.Fatal(err)
				}
			}
			live := liveHeap(5, func() *robotstxt.RobotsData {
				data, _ := robotstxt.FromBytes(file.body)
				return data
			})
			b.ReportMetric(float64(live), "live-B/file")
		})
	}
}
