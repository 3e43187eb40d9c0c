//go:build unix

package pagerank

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spinneret-go/spinneret/pagerank"
)

// BenchmarkURLs reports the bytes per URL of the id table of pagerank.URLs, compared with the text
// of the URLs and a Go map from URL to id with a slice for the reverse.
func BenchmarkURLs(b *testing.B) {
	for name, list := range map[string][]string{
		"scoop": readURLs(b, ".", "urls-scoop.txt.zst"),
		"uci":   readURLs(b, "graphs/uci-ics", "*nodes.tsv.zst"), "debian": readURLs(b, "graphs/debian-docs", "*nodes.tsv.zst"),
	} {
		b.Run("urls="+name, func(b *testing.B) {
			text := 0
			for _, url := range list {
				text += len(url)
			}
			var u *pagerank.URLs
			before := cpu(b)
			for b.Loop() {
				u = pagerank.NewURLs(pagerank.Options{Cutoff: pagerank.DL1})
				for _, url := range list {
					u.Discover(url)
				}
			}
			known := float64(u.Stats().Known)
			begin := cpu(b)
			b.ReportMetric((begin-before)*1e9/float64(b.N)/known, "ns/URL")
			for i := range list { // not in the order of ids, like links
				if _, ok := u.ID(list[i*7919%len(list)]); !ok {
					b.Fatal(list[i])
				}
			}
			b.ReportMetric((cpu(b)-begin)*1e9/float64(len(list)), "ns/lookup")
			b.ReportMetric(float64(u.Stats().Bytes-u.Frontier().Stats().Bytes)/known, "B/URL")
			b.ReportMetric(mapBytes(list)/known, "B/URL-map")
			b.ReportMetric(float64(text)/known, "B/URL-text")
		})
	}
}

// mapBytes returns the size of a map from URL to id, with a slice for the reverse.
func mapBytes(list []string) float64 {
	before := heapBytes()
	ids, urls := map[string]uint32{}, []string{}
	for _, url := range list {
		if _, known := ids[url]; !known {
			url = string([]byte(url)) // a copy, as for a link in a parsed page
			ids[url] = uint32(len(urls))
			urls = append(urls, url)
		}
	}
	after := heapBytes()
	runtime.KeepAlive(ids)
	runtime.KeepAlive(urls)
	return after - before
}

func heapBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func readURLs(b *testing.B, dir, pattern string) (list []string) {
	data := os.Getenv("SPINNERET_DATA")
	if data == "" {
		data = "../../../../shared/data"
	}
	readLines(b, filepath.Join(data, dir), pattern, func(fields []string) error {
		list = append(list, fields[len(fields)-1])
		return nil
	})
	return list
}
