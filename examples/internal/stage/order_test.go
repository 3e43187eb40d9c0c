package stage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func next(t *testing.T, o *Order) string {
	t.Helper()
	it, ok := o.Next()
	require.True(t, ok)
	return it.URL
}

func TestOrderPrefersWhatIsLinkedTo(t *testing.T) {
	const a, b, c, d = "http://a.test/", "http://b.test/", "http://c.test/", "http://d.test/"
	o := NewOrder()
	o.Add(Item{URL: a})
	o.Add(Item{URL: b})
	require.Equal(t, a, next(t, o))
	require.Equal(t, b, next(t, o))
	for _, url := range []string{c, d} {
		o.Add(Item{URL: url, Depth: 1})
	}
	o.Fetched(a, []string{c, d})
	o.Fetched(b, []string{d, "http://never-added.test/"})
	it, ok := o.Next()
	require.True(t, ok)
	require.Equal(t, Item{URL: d, Depth: 1}, it, "two pages link to it")
	require.Equal(t, c, next(t, o))
	_, ok = o.Next()
	require.False(t, ok)
}

func TestOrderKeepsSomeOfEachHostBack(t *testing.T) {
	o := NewOrder()
	urls := []string{"http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1"}
	for _, url := range urls {
		o.Add(Item{URL: url})
	}
	first, second := next(t, o), next(t, o)
	third := next(t, o)
	require.ElementsMatch(t, []string{urls[0], urls[1], urls[3]}, []string{first, second, third})
	_, ok := o.Next()
	require.False(t, ok, "two of a.test are out")
	o.Done("http://b.test/1")
	o.Done("http://b.test/1")
	o.Done("http://never-added.test/")
	_, ok = o.Next()
	require.False(t, ok)
	o.Done(urls[0])
	require.Equal(t, urls[2], next(t, o))
}
