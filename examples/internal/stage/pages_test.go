package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/revisit"
)

var pagesBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func openPages(t *testing.T, dir string) *Pages {
	t.Helper()
	p, err := OpenPages(dir, PagesOptions(8<<20, time.Minute, pagesBegin))
	require.NoError(t, err)
	return p
}

// due takes the items that are due at a time after the beginning.
func due(t *testing.T, p *Pages, after time.Duration) (items []Item) {
	t.Helper()
	for it, err := range p.Due(t.Context(), pagesBegin.Add(after)) {
		require.NoError(t, err)
		items = append(items, it)
	}
	return items
}

func urlsOf(items []Item) (urls []string) {
	for _, it := range items {
		urls = append(urls, it.URL)
	}
	slices.Sort(urls)
	return urls
}

func TestDiscoveryIsDueOnceAfterCommit(t *testing.T) {
	p := openPages(t, t.TempDir())
	defer p.Close()
	for range 3 {
		require.NoError(t, p.Discover(Item{URL: "http://a/", Depth: 2}))
	}
	require.Empty(t, due(t, p, 0), "nothing is recorded yet")
	done, err := p.Commit(nil)
	require.NoError(t, err)
	require.Equal(t, Recorded{New: 1}, done)
	items := due(t, p, 0)
	require.Equal(t, []string{"http://a/"}, urlsOf(items))
	require.Equal(t, 2, items[0].Depth)
	require.NoError(t, p.Discover(Item{URL: "http://a/"}))
	done, err = p.Commit(nil)
	require.NoError(t, err)
	require.Zero(t, done)
	require.Empty(t, due(t, p, 0), "it is in flight")
}

func TestUnreturnedVisitsAreDueAgain(t *testing.T) {
	dir := t.TempDir()
	p := openPages(t, dir)
	for _, url := range []string{"http://a/", "http://b/", "http://c/"} {
		require.NoError(t, p.Discover(Item{URL: url}))
	}
	_, err := p.Commit(nil)
	require.NoError(t, err)
	items := due(t, p, 0)
	require.Len(t, items, 3)
	back := items[1]
	back.Visit.State.Due = pagesBegin.Add(time.Hour).Unix()
	p.GiveBack(back.Visit)
	require.NoError(t, p.Close())

	p = openPages(t, dir)
	defer p.Close()
	want := slices.DeleteFunc(urlsOf(items), func(url string) bool { return url == back.URL })
	require.Equal(t, want, urlsOf(due(t, p, 0)))
	require.Equal(t, []string{back.URL}, urlsOf(due(t, p, time.Hour)))
}

func TestEarlyVisitPostponesThePage(t *testing.T) {
	p := openPages(t, t.TempDir())
	defer p.Close()
	require.NoError(t, p.Discover(Item{URL: "http://a/"}))
	_, err := p.Commit(nil)
	require.NoError(t, err)
	_, ok, err := p.Early("http://a/", pagesBegin)
	require.NoError(t, err)
	require.False(t, ok, "it was never visited, and is already due")
	_, ok, err = p.Early("http://unknown/", pagesBegin)
	require.NoError(t, err)
	require.False(t, ok)

	first := due(t, p, 0)[0]
	first.Visit.State.History = revisit.History{}.Observe(revisit.Visit{At: pagesBegin})
	first.Visit.State.Due = pagesBegin.Add(time.Hour).Unix()
	require.False(t, first.Visit.Early())
	p.GiveBack(first.Visit)
	_, err = p.Commit(nil)
	require.NoError(t, err)

	it, ok, err := p.Early("http://a/", pagesBegin)
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, it.Visit.Early())
	require.Equal(t, pagesBegin, it.Visit.Before.UTC())
	p.Forgo(it.Visit)
	it, ok, err = p.Early("http://a/", pagesBegin)
	require.NoError(t, err)
	require.True(t, ok, "the other one was not made")
	it.Visit.State.Due = pagesBegin.Add(3 * time.Hour).Unix()
	for _, step := range []func(){func() {}, func() { p.GiveBack(it.Visit) }} {
		step()
		_, ok, err = p.Early("http://a/", pagesBegin)
		require.NoError(t, err)
		require.False(t, ok, "a visit is under way, or not recorded yet")
		require.True(t, p.IsEarly("http://a/"))
	}
	_, err = p.Commit(nil)
	require.NoError(t, err)
	require.False(t, p.IsEarly("http://a/"))
	known, err := p.Find("http://a/")
	require.NoError(t, err)
	require.Equal(t, it.Visit.State, known.State)

	again := due(t, p, time.Hour)
	require.Len(t, again, 1, "the store's slot is the old one")
	require.Equal(t, it.Visit.State, again[0].Visit.State, "the state is the new one")
}

func TestDueEndsWithItsContext(t *testing.T) {
	p := openPages(t, t.TempDir())
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range p.Due(ctx, pagesBegin) {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, p.Check())
}

// TestPagesAgainstAMap compares random histories, including reopening, with a map.
func TestPagesAgainstAMap(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := model{
				t: t, dir: t.TempDir(), r: rand.New(rand.NewPCG(seed, 0)), now: pagesBegin, taken: pagesBegin,
				due: map[string]int64{}, slot: map[string]int64{}, hand: map[string]Item{},
			}
			m.p = openPages(t, m.dir)
			for range 400 {
				m.step()
			}
			m.compare()
			require.NoError(t, m.p.Close())
		})
	}
}

// A model is the expected content of Pages.
type model struct {
	t   *testing.T
	r   *rand.Rand
	dir string
	p   *Pages
	now time.Time

	taken time.Time        // when items were last taken
	due   map[string]int64 // of all recorded pages, including those in flight
	slot  map[string]int64 // when Due returns them: the next slot at the earliest
	hand  map[string]Item

	discovered []string
	back       []Item
}

func (m *model) step() {
	switch n := m.r.IntN(20); {
	case n < 8:
		url := fmt.Sprintf("http://h/%d", m.r.IntN(300))
		require.NoError(m.t, m.p.Discover(Item{URL: url, Depth: len(url)}))
		m.discovered = append(m.discovered, url)
	case n < 12:
		for url, it := range m.hand {
			it.Visit.State.Due = m.now.Unix() + 60*int64(1+m.r.IntN(100))
			m.p.GiveBack(it.Visit)
			m.back = append(m.back, it)
			delete(m.hand, url)
			break
		}
	case n < 15:
		m.commit()
	case n < 17:
		m.take()
	case n < 19:
		m.now = m.now.Add(time.Duration(m.r.IntN(30)) * time.Minute)
	default:
		m.reopen()
	}
}

func (m *model) commit() {
	_, err := m.p.Commit(nil)
	require.NoError(m.t, err)
	m.committed()
}

func (m *model) committed() {
	for _, url := range m.discovered {
		if _, known := m.due[url]; !known {
			m.due[url] = 0
		}
	}
	for _, it := range m.back {
		m.due[it.URL] = it.Visit.State.Due
		m.slot[it.URL] = max(it.Visit.State.Due, m.taken.Unix()+60)
	}
	m.discovered, m.back = nil, nil
}

// take takes the due items, which must be those of the map that are not in flight.
func (m *model) take() {
	out := maps.Clone(m.hand)
	for _, it := range m.back {
		out[it.URL] = it // given back, but not recorded
	}
	var want []string
	for url := range m.due {
		if _, inHand := out[url]; !inHand && m.slot[url] <= m.now.Unix() {
			want = append(want, url)
		}
	}
	slices.Sort(want)
	m.taken = m.now
	got := due(m.t, m.p, m.now.Sub(pagesBegin))
	require.Equal(m.t, want, urlsOf(got))
	for _, it := range got {
		require.Equal(m.t, len(it.URL), it.Depth)
		m.hand[it.URL] = it
	}
}

// reopen simulates an interrupted crawl: pages in flight are due as before.
func (m *model) reopen() {
	require.NoError(m.t, m.p.Close())
	m.committed()
	clear(m.hand)
	m.p = openPages(m.t, m.dir)
}

func (m *model) compare() {
	m.commit()
	got := map[string]int64{}
	for known, err := range m.p.All() {
		require.NoError(m.t, err)
		got[known.Item.URL] = known.State.Due
	}
	require.Equal(m.t, m.due, got)
	require.NoError(m.t, m.p.Check())
}

// BenchmarkPages discovers new URLs and visits each once. With -benchtime 10000000x it reports the
// memory and disk for that many pages.
func BenchmarkPages(b *testing.B) {
	dir := b.TempDir()
	p, err := OpenPages(dir, PagesOptions(96<<20, time.Minute, pagesBegin))
	require.NoError(b, err)
	defer p.Close()
	b.ReportAllocs()
	n := 0
	visit := func() {
		_, err := p.Commit(nil)
		require.NoError(b, err)
		for it, err := range p.Due(b.Context(), pagesBegin) {
			require.NoError(b, err)
			it.Visit.State.History = revisit.History{}.Observe(revisit.Visit{At: pagesBegin})
			it.Visit.State.Due = pagesBegin.Add(time.Duration(1+n%10_000) * time.Minute).Unix()
			p.GiveBack(it.Visit)
		}
	}
	for b.Loop() {
		url := fmt.Sprintf("http://h%d.example.org/some/path/%d", n%1000, n)
		require.NoError(b, p.Discover(Item{URL: url}))
		if n++; n%10_000 == 0 {
			visit()
		}
	}
	visit()
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	store := p.Stats()
	b.ReportMetric(float64(memory.HeapAlloc)/float64(n), "B-memory/page")
	b.ReportMetric(float64(store.DiskSize)/float64(n), "B-disk/page")
}

// TestFailedPrepare: if prepare fails, no visits are recorded.
func TestFailedPrepare(t *testing.T) {
	dir := t.TempDir()
	p := openPages(t, dir)
	require.NoError(t, p.Discover(Item{URL: "http://a/"}))
	_, err := p.Commit(nil)
	require.NoError(t, err)
	items := due(t, p, 0)
	require.Len(t, items, 1)
	items[0].Visit.State.Due = time.Now().Add(time.Hour).Unix()
	p.GiveBack(items[0].Visit)
	full := errors.New("disk full")
	done, err := p.Commit(func() error { return full })
	require.ErrorIs(t, err, full)
	require.Zero(t, done)
	require.NoError(t, p.Close())

	p = openPages(t, dir)
	defer p.Close()
	require.Len(t, due(t, p, 0), 1, "the visit is repeated")
}

// TestAnEarlyVisitDoesNotPostpone: whether a page is postponed is not known to a visit that was in
// flight before it was.
func TestAnEarlyVisitDoesNotPostpone(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	it := Item{URL: "http://a.test/"}
	var visited State
	visited.History = visited.History.Observe(revisit.Visit{At: now, Changed: true})
	for _, postponed := range []bool{false, true} {
		record, visit := visited, visited
		record.Postponed, visit.Postponed, visit.Due = postponed, !postponed, 7
		merged := mergeVisit(it.URL, AppendRecord(nil, it, record), AppendRecord(nil, it, visit))
		_, state, err := ReadRecord(it.URL, merged)
		require.NoError(t, err)
		visit.Postponed = postponed
		require.Equal(t, visit, state)
	}
}
