package stage

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/simhash"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/revisit"
)

// visitedState returns a state with a value in each field.
func visitedState() State {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := revisit.History{}.Observe(revisit.Visit{At: at})
	return State{
		History:    h.Observe(revisit.Visit{At: at.Add(time.Hour), Changed: true}),
		Hash:       0x0102030405060708,
		Fresh:      at.Add(time.Minute).Unix(),
		Validators: fetch.Validators{ETag: `"x"`, LastModified: "Fri, 02 Jan 2026 03:04:05 GMT"},
		Text:       simhash.Print{Words: 1, Near: 2},
		Barred:     BarredBy("b.test"),
		Failures:   3, Due: at.Unix() + 7200, Interval: 3600,
	}
}

func TestRecordsAreReturnedUnchanged(t *testing.T) {
	const url = "http://example.org/"
	for name, tt := range map[string]struct {
		it    Item
		state State
		most  int // bytes
	}{
		"a page that was only discovered takes little": {it: Item{Depth: 3}, most: 4},
		"a redirect's target":                          {it: Item{Depth: 3, Hops: 2, LastMod: 1e9}, most: 9},
		"a time before 1970":                           {it: Item{LastMod: -5}, most: 4},
		"a sitemap":                                    {it: Item{Sitemap: &Sitemap{Server: "example.org"}}, most: 16},
		"a sitemap listed in an index":                 {it: Item{Sitemap: &Sitemap{Server: "example.org", Nested: true}}, most: 16},
		"a visited page":                               {it: Item{Depth: 1}, state: visitedState(), most: 129},
		"a postponed page":                             {state: State{Due: 5}, most: 61},
	} {
		t.Run(name, func(t *testing.T) {
			tt.it.URL = url
			b := AppendRecord([]byte("before"), tt.it, tt.state)[len("before"):]
			require.LessOrEqual(t, len(b), tt.most)
			it, state, err := ReadRecord(url, b)
			require.NoError(t, err)
			require.Equal(t, tt.it, it)
			require.Equal(t, tt.state, state)
			for n := range b {
				_, _, err := ReadRecord(url, b[:n])
				require.ErrorIs(t, err, ErrRecord, "the first %d bytes", n)
			}
			_, _, err = ReadRecord(url, append(b, 0))
			require.ErrorIs(t, err, ErrRecord, "with a byte more")
		})
	}
}

func TestLongValidatorsAreDropped(t *testing.T) {
	s := visitedState()
	s.Validators.ETag = strings.Repeat("x", maxValidator+1)
	_, got, err := ReadRecord("", AppendRecord(nil, Item{}, s))
	require.NoError(t, err)
	require.Empty(t, got.Validators.ETag)
	require.Equal(t, s.Validators.LastModified, got.Validators.LastModified)
}

func FuzzReadRecord(f *testing.F) {
	f.Add(AppendRecord(nil, Item{Depth: 5}, State{}))
	f.Add(AppendRecord(nil, Item{Sitemap: &Sitemap{Server: "a", Nested: true}}, visitedState()))
	f.Fuzz(func(t *testing.T, b []byte) {
		it, s, err := ReadRecord("http://a/", b)
		if err != nil {
			return
		}
		// A number may have several encodings, but its value survives encoding.
		again, state, err := ReadRecord("http://a/", AppendRecord(nil, it, s))
		require.NoError(t, err)
		require.Equal(t, it, again)
		s.Validators = fetch.Validators{ETag: short(s.Validators.ETag), LastModified: short(s.Validators.LastModified)}
		require.Equal(t, s, state)
	})
}

func TestCompare(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	page := func(status int, body, etag string) *fetch.Response {
		return &fetch.Response{Status: status, Body: []byte(body), Header: http.Header{"Etag": {etag}}}
	}
	away := page(302, "some text with the time of day", "")
	away.Location = "http://example.org/there"
	var s State
	s.Failures = 2
	for i, step := range []struct {
		name    string
		resp    *fetch.Response
		changed Change
		etag    string
	}{
		{"the first visit always counts as a change", page(200, "one", "a"), RealChange, "a"},
		{"the same bytes are no change", page(200, "one", "b"), NoChange, "b"},
		{"other bytes are a change", page(200, "two", "c"), RealChange, "c"},
		{"a 304 is no change, and keeps the validators", page(304, "", ""), NoChange, "c"},
		{"a 304 keeps the earlier state", page(200, "two", "d"), NoChange, "d"},
		{"an empty page is a version, too", page(200, "", "e"), RealChange, "e"},
		{"the same empty page is no change", page(200, "", "e"), NoChange, "e"},
		{"a page may consist of a URL", page(200, away.Location, "f"), RealChange, "f"},
		{"a page that now redirects to that URL has changed", away, RealChange, ""},
	} {
		changed := s.Compare(step.resp, false)
		s.History = s.History.Observe(revisit.Visit{
			At: at.Add(time.Duration(i) * time.Hour), Changed: changed == RealChange,
		})
		require.Equal(t, step.changed, changed, step.name)
		require.Equal(t, step.etag, s.Validators.ETag, step.name)
		require.Zero(t, s.Failures, step.name)
	}
	away.Body = []byte("another text")
	require.Equal(t, NoChange, s.Compare(away, false),
		"only the target of a redirect counts")
	visits, changes := s.History.Visits()
	require.Equal(t, []int{8, 4}, []int{visits, changes})
	require.True(t, s.Visited())
	require.False(t, State{Due: 1}.Visited())
}

// TestIncompletePageIsFetchedAgain has bodies cut for several reasons. If there was more to get,
// the next request must not be conditional.
func TestIncompletePageIsFetchedAgain(t *testing.T) {
	for cut, kept := range map[fetch.Kind]bool{
		fetch.Whole: true, fetch.CutLength: true,
		fetch.CutTime: false, fetch.CutSlow: false, fetch.CutDisconnect: false,
	} {
		resp := &fetch.Response{
			Status: 200, Header: http.Header{"Etag": {`"1"`}}, Body: []byte("a"), RawCut: cut, Truncated: cut,
		}
		var s State
		s.Compare(resp, false)
		require.Equal(t, kept, s.Validators.ETag != "", cut)
	}
}

func TestCompareTexts(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	page := func(text string) *fetch.Response {
		return &fetch.Response{
			URL: "http://a/", Status: 200, Header: http.Header{"Content-Type": {"text/html"}},
			Body: []byte("<title>t</title><p class=" + fmt.Sprint(len(text)) + ">" + text + "</p>"),
		}
	}
	var s State
	for i, step := range []struct {
		name string
		text string
		want Change
	}{
		{"the first visit", "You are visitor 12345 of this page about spiders and their webs", RealChange},
		{"another number", "You are visitor 99 of this page about spiders and their webs", SlightChange},
		{"other words", "This page has moved; ask the owner for the text that you came here for", RealChange},
	} {
		got := s.Compare(page(step.text), true)
		s.History = s.History.Observe(revisit.Visit{
			At: at.Add(time.Duration(i) * time.Hour), Changed: got == RealChange,
		})
		require.Equal(t, step.want, got, step.name)
	}
	visits, changes := s.History.Visits()
	require.Equal(t, []int{2, 1}, []int{visits, changes})
}
