package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/revisit"
)

// TestImportantPagesCostLess: under -order rank, a visit costs less the more important the page is,
// with policies that have a price.
func TestImportantPagesCostLess(t *testing.T) {
	r := revisits{Order: stage.NewOrder(pagerank.NewURLs(stage.OrderOptions())), Policy: revisit.Bayes{}}
	for n := range 5 {
		r.Order.Fetched(fmt.Sprint("http://a.test/", n), []string{"http://b.test/"})
	}
	require.Less(t, stage.PriceOf(r.PolicyOf("http://b.test/").(revisit.Bayes)), revisit.DefaultPrice)
	require.Greater(t, stage.PriceOf(r.PolicyOf("http://a.test/1").(revisit.Bayes)), revisit.DefaultPrice)
	r.Policy = revisit.Every(time.Hour)
	require.Equal(t, r.Policy, r.PolicyOf("http://b.test/"))
	r.Policy, r.Order = revisit.Bayes{Price: 2}, nil
	require.Equal(t, r.Policy, r.PolicyOf("http://b.test/"))
}

// TestCrowdedHostOverflow: intervals beyond the range of a Duration do not become zero.
func TestCrowdedHostOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := revisits{
			Clock: stage.Clock{Began: time.Now(), Pace: 1}, Policy: revisit.Every(200 * 24 * time.Hour),
			Hosts: stage.NewHostTable(time.Hour, time.Minute, 0, 1), Retries: new(stage.Retries),
		}
		for range 20_000 {
			r.Hosts.UpdateLoad("a.test", 0, time.Hour)
		}
		it := stage.Item{URL: "http://a.test/", Visit: &stage.Visit{}}
		it.Visit.State.History = it.Visit.State.History.Observe(revisit.Visit{At: time.Now()})
		require.Equal(t, time.Now().Add(stage.Longest), r.Next(it, stage.Fetched))
	})
}
