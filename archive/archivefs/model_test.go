package archivefs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// naiveTree returns the files of a chronological history at a time. It follows the documentation,
// with everything in memory.
func naiveTree(history []visit, at time.Time) map[string]string {
	contents, valid := map[string]string{}, map[string]bool{} // by host and path
	for _, v := range history {
		if v.at.After(at) {
			break
		}
		page := strings.TrimPrefix(v.url, "http://")
		switch v.status {
		case 200:
			contents[page], valid[page] = v.body, true
		case 304:
			_, valid[page] = contents[page]
		default:
			valid[page] = false
		}
	}
	pages := map[string]string{}
	for page := range valid {
		if valid[page] {
			pages[page] = contents[page]
		}
	}
	files := map[string]string{}
	for page, text := range pages {
		isDir := func(name string) bool {
			for other := range pages {
				if strings.HasPrefix(other, name+"/") {
					return true
				}
			}
			return false
		}
		_, index := pages[strings.TrimSuffix(page, "index.html")]
		switch {
		case strings.HasSuffix(page, "/"):
			page += "index.html"
		case strings.HasSuffix(page, "/index.html") && index, isDir(page):
			page += "#"
		}
		files[page] = text
	}
	return files
}

// randomHistory returns the history of a site where most names conflict.
func randomHistory(r *rand.Rand, n int) (history []visit) {
	at := someTime
	parts := []string{"", "d", "d/", "d/1", "d/1/2", "d/index.html", "index.html", "d/1/"}
	for range n {
		at = at.Add(time.Duration(1+r.Int64N(1e6)) * time.Millisecond)
		v := visit{at: at, status: []int{200, 200, 200, 200, 200, 304, 404}[r.IntN(7)]}
		v.url = fmt.Sprintf("http://%s/%s", []string{"a.test", "b.a.test:81"}[r.IntN(2)],
			parts[r.IntN(len(parts))])
		if v.status == 200 {
			v.body = fmt.Sprintf("%s %d", v.url, r.IntN(3))
		}
		history = append(history, v)
	}
	return history
}

func TestFilesMatchTheModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 3))
			a := openDir(t, t.TempDir())
			history := randomHistory(r, 120)
			for _, v := range history {
				v.into(t, a)
			}
			for range 12 {
				at := history[r.IntN(len(history))].at
				want := naiveTree(history, at)
				require.Equal(t, want, tree(t, New(a, "a.test", at)))
				names := slices.Collect(maps.Keys(want))
				require.NoError(t, fstest.TestFS(New(a, "", at), names...))
			}
			require.NoError(t, a.Close())
		})
	}
}
