package archivefs

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkFS opens and reads pages by name, and lists a directory of a thousand.
func BenchmarkFS(b *testing.B) {
	a := openDir(b, b.TempDir())
	body := strings.Repeat("<p>A page of usual length.</p>\n", 1000)
	for i := range 1000 {
		visit{fmt.Sprintf("http://a.test/d/%03d.html", i), someTime, 200, body}.into(b, a)
	}
	view := New(a, "a.test", time.Time{})
	b.Run("what=read", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			data, err := fs.ReadFile(view, "a.test/d/500.html")
			if err != nil || len(data) != len(body) {
				b.Fatal(len(data), err)
			}
		}
	})
	b.Run("what=list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			entries, err := view.ReadDir("a.test/d")
			if err != nil || len(entries) != 1000 {
				b.Fatal(len(entries), err)
			}
		}
		b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	})
	require.NoError(b, a.Close())
}
