package stage

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/pagerank"
)

func next(t *testing.T, o *Order) string {
	t.Helper()
	it, ok := o.Next()
	require.True(t, ok)
	return it.URL
}

func TestOrderPrefersLinkedPages(t *testing.T) {
	const a, b, c, d = "http://a.test/", "http://b.test/", "http://c.test/", "http://d.test/"
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
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

func TestOrderBoundsItemsPerHost(t *testing.T) {
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
	const host = "http://[2001:db8::1]"
	urls := []string{host + "/1", host + "/2", host + "/3", "http://b.test/1"}
	for _, url := range urls {
		o.Add(Item{URL: url})
	}
	first, second := next(t, o), next(t, o)
	third := next(t, o)
	require.ElementsMatch(t, []string{urls[0], urls[1], urls[3]}, []string{first, second, third})
	_, ok := o.Next()
	require.False(t, ok, "two of the first are in flight")
	o.Done("http://b.test/1")
	o.Done("http://b.test/1")
	o.Done("http://never-added.test/")
	_, ok = o.Next()
	require.False(t, ok)
	o.Done(urls[0])
	require.Equal(t, urls[2], next(t, o))
}

func TestOrderCountsLinksToLaterPages(t *testing.T) {
	const a, b, c, d = "http://a.test/", "http://b.test/", "http://c.test/", "http://d.test/"
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
	o.Add(Item{URL: a})
	require.Equal(t, a, next(t, o))
	o.Fetched(a, []string{c})
	o.Fetched(b, []string{c}) // also never added
	_, ok := o.Next()
	require.False(t, ok, "c was not added")
	require.True(t, o.Add(Item{URL: d}))
	require.True(t, o.Add(Item{URL: c}))
	require.False(t, o.Add(Item{URL: c}))
	require.Equal(t, c, next(t, o))
	require.Equal(t, d, next(t, o))
}

func TestOrderDoesNotRepeatFetchedPages(t *testing.T) {
	const a, b = "http://a.test/", "http://b.test/"
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
	o.Fetched(a, []string{b})
	require.False(t, o.Add(Item{URL: a}), "it was fetched already")
	o.Add(Item{URL: b})
	o.Fetched(b, nil)
	require.Equal(t, b, next(t, o), "a was fetched before Next returned it")
	o.Fetched(b, nil) // b is still in flight

	o = reread(t, o)
	require.False(t, o.Add(Item{URL: b}))
}

// reread returns what is read of an order that was written.
func reread(t *testing.T, o *Order) *Order {
	t.Helper()
	var file bytes.Buffer
	_, err := o.ranks.WriteTo(&file)
	require.NoError(t, err)
	ranks, err := pagerank.ReadURLs(&file, OrderOptions())
	require.NoError(t, err)
	return NewOrder(ranks)
}

func TestOrderDoesNotWaitForMissingItems(t *testing.T) {
	const a, b, c, d = "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
	for _, url := range []string{a, b, c} {
		o.Add(Item{URL: url})
	}
	require.Equal(t, a, next(t, o))
	require.Equal(t, b, next(t, o))
	o.Fetched(a, []string{d})
	_, ok := o.Next()
	require.False(t, ok, "two are in flight, and c and d are set aside")
	o.Done(a)
	require.Equal(t, c, next(t, o), "d has a higher score, but was not added")
}

func TestOrderSaved(t *testing.T) {
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
	for _, url := range []string{"http://a.test/done", "http://a.test/out", "http://b.test/low", "http://b.test/high"} {
		o.Add(Item{URL: url})
	}
	for range 2 {
		o.Next()
	}
	o.Done("http://a.test/done")
	o.Fetched("http://a.test/done", []string{"http://b.test/high", "http://c.test/linked"})
	o = reread(t, o)
	_, ok := o.Next()
	require.False(t, ok, "the items have not been added")
	require.False(t, o.Add(Item{URL: "http://a.test/done"}))
	for _, url := range []string{"http://b.test/low", "http://c.test/linked", "http://b.test/high", "http://a.test/out"} {
		require.True(t, o.Add(Item{URL: url}), url)
	}
	top := []string{next(t, o), next(t, o)}
	require.ElementsMatch(t, []string{"http://c.test/linked", "http://b.test/high"}, top)
	rest := []string{next(t, o), next(t, o)}
	require.ElementsMatch(t, []string{"http://a.test/out", "http://b.test/low"}, rest)
	require.Equal(t, "http://a.test/done", o.Top(1)[0].URL)
}

func TestOrderSavedWhileAHostWasBusy(t *testing.T) {
	urls := []string{"http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"}
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
	for _, url := range urls {
		o.Add(Item{URL: url})
	}
	next(t, o)
	next(t, o)
	_, ok := o.Next()
	require.False(t, ok, "two are in flight")
	o = reread(t, o)
	for _, url := range urls {
		o.Add(Item{URL: url})
	}
	var got []string
	for range urls {
		got = append(got, next(t, o))
		o.Done(got[len(got)-1])
	}
	require.ElementsMatch(t, urls, got)
}

func TestForgottenPagesAreNotNamed(t *testing.T) {
	o := NewOrder(pagerank.NewURLs(OrderOptions()))
	o.Fetched("http://a.test/", []string{"http://b.test/"})
	o.Fetched("http://b.test/", []string{"http://a.test/"})
	require.Equal(t, 1, o.Forget(func(url string) bool { return url == "http://b.test/" }))
	o = reread(t, o)
	require.Equal(t, "http://a.test/", o.Top(2)[0].URL)
	require.Len(t, o.Top(2), 1)
	require.True(t, o.Add(Item{URL: "http://b.test/"}))
}

// TestOrderFile: what Save wrote is there again, damage costs the order, and what another version wrote, or
// cannot be read, stays as it is.
func TestOrderFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "order")
	o, err := OpenOrder(name)
	require.NoError(t, err)
	o.Fetched("http://a.test/", []string{"http://b.test/"})
	o.Add(Item{URL: "http://c.test/"})
	changed, all := o.Changed()
	require.Equal(t, []int64{2, 3}, []int64{changed, all})
	require.NoError(t, o.Save(name))
	changed, all = o.Changed()
	require.Equal(t, []int64{0, 3}, []int64{changed, all})
	again, err := OpenOrder(name)
	require.NoError(t, err)
	require.Equal(t, o.Top(3), again.Top(3))
	require.False(t, again.Add(Item{URL: "http://a.test/"}), "it was fetched")

	good, err := os.ReadFile(name)
	require.NoError(t, err)
	bad := bytes.Clone(good)
	bad[len(bad)/2] ^= 1
	require.NoError(t, os.WriteFile(name, bad, 0o600))
	o, err = OpenOrder(name)
	require.Error(t, err)
	require.True(t, o.Add(Item{URL: "http://a.test/"}))
	var later bytes.Buffer
	_, err = durable.NewStreamWriter(&later, "SPNURLS9").Close()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, later.Bytes(), 0o600))
	o, err = OpenOrder(name)
	require.Nil(t, o)
	require.ErrorIs(t, err, durable.ErrVersion)
	require.ErrorContains(t, err, name)
}
