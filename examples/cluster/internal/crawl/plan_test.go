package crawl

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// failure is the report of a failed visit in a round.
func failedPage(url string, round uint32, due time.Time) message.Item {
	it := message.Item{Kind: message.Page, URL: url, Round: round}
	r, _ := report(it, stage.State{Failures: int(round) + 1}, due)
	return r
}

// advance returns what a state sends at a time.
func advance(s *seen, at time.Time) (all []sent) {
	s.Advance(at, func(to message.Module, part int, it message.Item) {
		all = append(all, sent{to, part, it})
	})
	return all
}

// TestOwnersAgreeOnThePlan lets an owner take over at any checkpoint: it sends out the same pages
// at the same times, in the same order.
func TestOwnersAgreeOnThePlan(t *testing.T) {
	o := Options{Parts: 1}.withDefaults()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 0))
		first, other := newSeen(&o), newSeen(&o)
		var chunks [][]byte
		out, sentOut := map[string]uint32{}, 0
		for step := range 40 {
			at := newYear.Add(time.Duration(step) * time.Minute)
			for range 1 + r.IntN(10) {
				it := page(fmt.Sprintf("http://a.test/%d", r.IntN(50)))
				if round, back := out[it.URL]; r.IntN(3) > 0 && back {
					it = failedPage(it.URL, round, at.Add(time.Duration(r.IntN(5))*time.Minute))
					if r.IntN(5) == 0 {
						it.Due = time.Time{}
					}
				} else if r.IntN(4) == 0 {
					it.LastMod = at
				}
				require.Equal(t, feed(first, at, it), feed(other, at, it))
				if it.Kind == message.Page {
					if _, known := out[it.URL]; !known {
						out[it.URL] = 0
					}
				}
			}
			got := advance(first, at)
			require.Equal(t, got, advance(other, at))
			for _, s := range got {
				out[s.it.URL] = s.it.Round
				sentOut++
			}
			require.Equal(t, first.Open(), other.Open())
			require.Equal(t, first.Next(), other.Next())
			if all := r.IntN(8) == 0; all {
				chunks = first.Changes(true, 200)
			} else {
				chunks = append(chunks, first.Changes(false, 200)...)
			}
			if r.IntN(3) == 0 {
				other = reborn(t, newSeen(&o), chunks, first.Counts()).(*seen)
			}
		}
		require.NotZero(t, sentOut)
	}
}

func TestARoundCountsOnce(t *testing.T) {
	o := Options{}.withDefaults()
	s := newSeen(&o)
	const url = "http://a.test/"
	require.Len(t, feed(s, newYear, page(url)), 1)
	feed(s, newYear, failedPage(url, 0, newYear.Add(time.Minute)))
	require.Equal(t, 1, s.Open())
	feed(s, newYear, failedPage(url, 0, newYear.Add(time.Hour)), failedPage(url, 7, newYear))
	require.Empty(t, advance(s, newYear.Add(59*time.Second)), "too early")
	at := newYear.Add(time.Minute)
	got := advance(s, at)
	require.Len(t, got, 1)
	require.EqualValues(t, 1, got[0].it.Round)
	require.True(t, got[0].it.Again)
	require.Equal(t, 1, stateOf(got[0].it).Failures)
	require.Empty(t, advance(s, at.Add(time.Hour)), "it is in flight")
	require.Len(t, advance(s, at.Add(lostAfter)), 1, "no report has arrived")
	feed(s, at, failedPage(url, 0, at), failedPage(url, 1, time.Time{}))
	require.Zero(t, s.Open(), "the page is finished")
	require.Zero(t, s.Next())
	feed(s, at, failedPage(url, 1, at))
	require.Zero(t, s.Next(), "the page is no longer planned")
}

// TestASitemapMovesAChangedPageUp also requires that a sitemap with the URL of a page is not taken
// for that page.
func TestASitemapMovesAChangedPageUp(t *testing.T) {
	o := Options{}.withDefaults()
	s := newSeen(&o)
	it := page("http://a.test/")
	feed(s, newYear, it)
	had := stage.State{History: revisit.History{}.Observe(revisit.Visit{At: newYear})}
	r, _ := report(it, had, newYear.Add(240*time.Hour))
	feed(s, newYear, r)
	require.Zero(t, s.Open(), "it was fetched")
	at := newYear.Add(time.Hour)
	it.LastMod = newYear.Add(-time.Minute)
	feed(s, at, it)
	require.Empty(t, advance(s, at))
	it.LastMod = newYear.Add(time.Minute)
	feed(s, at, it)
	require.Len(t, advance(s, at), 1)
	it.Kind, it.For = message.Sitemap, "a.test"
	require.Len(t, feed(s, at, it), 1, "the same URL")
	require.Empty(t, feed(s, at, it))
}

// TestWhenAPageIsDueAgain tests the possible fates.
func TestWhenAPageIsDueAgain(t *testing.T) {
	once := Options{Retry: time.Minute}.withDefaults()
	again := Options{Revisit: time.Hour, Retries: -1}.withDefaults()
	had := func() stage.State {
		return stage.State{History: revisit.History{}.Observe(revisit.Visit{At: newYear})}
	}
	for _, tt := range []struct {
		name  string
		o     Options
		fate  stage.Fate
		state stage.State
		after time.Duration // 0 means never
	}{
		{"it was fetched", once, stage.Fetched, had(), 0},
		{"it is not there", once, stage.ClientError, stage.State{}, 0},
		{"the server has trouble", once, stage.ServerError, stage.State{}, time.Minute + time.Second},
		{"once more", once, stage.ServerError, stage.State{Failures: 2}, 4*time.Minute + time.Second},
		{"for ever", once, stage.ServerError, stage.State{Failures: DefaultRetries}, 0},
		{"our own trouble", once, stage.Interrupted, stage.State{Failures: 99}, ownFault + time.Second},
		{"the operator's deny list", again, refused, had(), 0},
		{"it is gone", again, stage.ClientError, had(), 24*time.Hour + time.Second},
	} {
		due := tt.o.next(tt.fate, &tt.state, newYear, time.Time{})
		if tt.after == 0 {
			require.Zero(t, due, tt.name)
			continue
		}
		require.Equal(t, newYear.Add(tt.after), due, tt.name)
		later := newYear.Add(1000 * time.Hour)
		require.Equal(t, later.Add(time.Second), tt.o.next(tt.fate, &tt.state, newYear, later), tt.name)
	}
	state := had()
	require.GreaterOrEqual(t, again.next(stage.Fetched, &state, newYear, time.Time{}), newYear.Add(time.Hour))
}

func TestAHostHasALimitedShareOfTheWindow(t *testing.T) {
	l := newLoads(time.Minute)
	addr := page("").Addr
	now := newYear
	take := func(host string, delay time.Duration) time.Time {
		return l.take(host, addr, delay, time.Second, time.Time{}, now)
	}
	require.Zero(t, take("slow", time.Hour))
	require.Zero(t, take("slow", time.Hour))
	require.Equal(t, now.Add(time.Minute), take("slow", time.Hour))
	require.Equal(t, now.Add(61*time.Minute), take("slow", time.Hour), "each has a slot of its own")
	for range 58 { // with the two of slow, as many as fit for the address
		require.Zero(t, take("fast", time.Second))
	}
	require.Equal(t, now.Add(time.Hour+61*time.Minute), take("slow", time.Hour))
	require.NotZero(t, take("other", time.Second), "the address has enough URLs")
	l.done("slow", addr, now)
	require.Zero(t, take("other", time.Second))
	until := l.take("away", page("").Addr, time.Second, -1, now.Add(time.Hour), now)
	require.False(t, until.Before(now.Add(time.Hour)), "none of its URLs can be fetched before")
	l = newLoads(time.Minute)
	for range 10_000 {
		require.Zero(t, l.take("any", addr, -1, -1, time.Time{}, now))
	}
}

func FuzzLoadSeen(f *testing.F) {
	o := Options{}.withDefaults()
	s := newSeen(&o)
	feed(s, newYear, page("http://a.test/"), failedPage("http://a.test/", 0, newYear))
	for _, chunk := range s.Changes(true, 1<<20) {
		f.Add(chunk)
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		s := newSeen(&o)
		if s.Load(chunk) != nil {
			return
		}
		again := newSeen(&o)
		for _, chunk := range s.Changes(true, 100) {
			require.NoError(t, again.Load(chunk))
		}
		require.Equal(t, s.Open(), again.Open())
		require.Equal(t, s.Next(), again.Next())
		require.Equal(t, s.keys, again.keys)
	})
}

// TestAChunkOfThePlanFitsIntoAMessage has pages with the shortest URLs and states, whose JSON is
// mostly the names of fields.
func TestAChunkOfThePlanFitsIntoAMessage(t *testing.T) {
	o := Options{}.withDefaults()
	s := newSeen(&o)
	for i := range 20_000 {
		feed(s, newYear, page(fmt.Sprintf("http://a.b/%d", i)), failedPage(fmt.Sprintf("http://a.b/%d", i), 0, newYear))
	}
	const size = 512 << 10
	chunks := s.Changes(true, size)
	require.Greater(t, len(chunks), 3)
	for _, chunk := range chunks {
		require.LessOrEqual(t, len(chunk), size+1)
	}
	again := newSeen(&o)
	for _, chunk := range chunks {
		require.NoError(t, again.Load(chunk))
	}
	require.Equal(t, 20_000, again.Open())
}
