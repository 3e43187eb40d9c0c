package stage

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

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
	o := NewOrder(pagerank.New)
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
	o := NewOrder(pagerank.New)
	urls := []string{"http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1"}
	for _, url := range urls {
		o.Add(Item{URL: url})
	}
	first, second := next(t, o), next(t, o)
	third := next(t, o)
	require.ElementsMatch(t, []string{urls[0], urls[1], urls[3]}, []string{first, second, third})
	_, ok := o.Next()
	require.False(t, ok, "two of a.test are in flight")
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
	o := NewOrder(pagerank.New)
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
	o := NewOrder(pagerank.New)
	o.Fetched(a, []string{b})
	require.False(t, o.Add(Item{URL: a}), "it was fetched already")
	o.Add(Item{URL: b})
	o.Fetched(b, nil)
	require.Equal(t, b, next(t, o), "a was fetched before Next returned it")
	o.Fetched(b, nil) // b is still in flight

	var file bytes.Buffer
	_, err := o.WriteTo(&file)
	require.NoError(t, err)
	o, err = ReadOrder(&file)
	require.NoError(t, err)
	require.False(t, o.Add(Item{URL: b}))
}

func TestOrderDoesNotWaitForMissingItems(t *testing.T) {
	const a, b, c, d = "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"
	o := NewOrder(pagerank.New)
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

// savedOrder returns a saved order with a page in each state.
func savedOrder(t testing.TB) []byte {
	o := NewOrder(pagerank.New)
	for _, url := range []string{"http://a.test/done", "http://a.test/out", "http://b.test/low", "http://b.test/high"} {
		o.Add(Item{URL: url})
	}
	for range 2 {
		o.Next()
	}
	o.Done("http://a.test/done")
	o.Fetched("http://a.test/done", []string{"http://b.test/high", "http://c.test/linked"})
	var file bytes.Buffer
	n, err := o.WriteTo(&file)
	require.NoError(t, err)
	require.EqualValues(t, file.Len(), n)
	return file.Bytes()
}

func TestOrderSaved(t *testing.T) {
	o, err := ReadOrder(bytes.NewReader(savedOrder(t)))
	require.NoError(t, err)
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
	o := NewOrder(pagerank.New)
	for _, url := range urls {
		o.Add(Item{URL: url})
	}
	next(t, o)
	next(t, o)
	_, ok := o.Next()
	require.False(t, ok, "two are in flight")
	var file bytes.Buffer
	_, err := o.WriteTo(&file)
	require.NoError(t, err)
	o, err = ReadOrder(&file)
	require.NoError(t, err)
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

func TestOrderFromABrokenFile(t *testing.T) {
	good := savedOrder(t)
	for n := range good {
		_, err := ReadOrder(bytes.NewReader(good[:n]))
		require.Error(t, err, n)
		bad := bytes.Clone(good)
		bad[n] ^= 1
		_, err = ReadOrder(bytes.NewReader(bad))
		require.Error(t, err, n)
	}
}

func FuzzReadOrder(f *testing.F) {
	f.Add(savedOrder(f))
	f.Add([]byte(formLine(orderKind, orderVersion)))
	f.Fuzz(func(t *testing.T, file []byte) {
		o, err := ReadOrder(bytes.NewReader(file))
		if err != nil {
			return
		}
		var again bytes.Buffer
		_, err = o.WriteTo(&again)
		require.NoError(t, err)
		_, err = ReadOrder(&again)
		require.NoError(t, err)
	})
}
