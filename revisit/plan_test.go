package revisit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// original is a crawler that stores the interval that it planned, as Nutch does.
type original struct {
	policy   Scale
	interval float64 // seconds
}

func (o *original) observe(changed bool) {
	lo, hi := bounds(o.policy.Min, o.policy.Max)
	factor := o.policy.Grow
	if changed {
		factor = o.policy.Shrink
	}
	o.interval = min(max(o.interval*factor, lo.Seconds()), hi.Seconds())
}

// TestRulesStepFromThePlannedInterval visits pages late, by up to three times, and on time.
func TestRulesStepFromThePlannedInterval(t *testing.T) {
	for _, policy := range []Scale{Nutch(), StormCrawler()} {
		random := rand.New(rand.NewPCG(1, 0))
		for range 200 {
			o := original{policy, policy.Second.Seconds()}
			at := start
			h := History{}.Observe(Visit{At: at})
			changes := random.Float64()
			for range mostOutcomes {
				require.InEpsilon(t, o.interval, policy.Next(h).Seconds(), 1e-6)
				late := 1 + 2*random.Float64()
				at = at.Add(time.Duration(o.interval * late * float64(time.Second)))
				changed := random.Float64() < changes
				h = h.Observe(Visit{At: at, Changed: changed})
				o.observe(changed)
			}
		}
	}
}

// TestRulesStayOnTimeForever needs no memory of the plan as long as visits are on time.
func TestRulesStayOnTimeForever(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	policy := StormCrawler()
	o := original{policy, policy.Second.Seconds()}
	at := start
	h := History{}.Observe(Visit{At: at})
	for range 1000 {
		at = at.Add(time.Duration(o.interval) * time.Second)
		changed := random.IntN(3) == 0
		h = h.Observe(Visit{At: at, Changed: changed})
		o.observe(changed)
		require.InEpsilon(t, o.interval, policy.Next(h).Seconds(), 2e-3)
		o.interval = policy.Next(h).Seconds()
	}
}

// TestLateVisitsDoNotAddUp: a page that always changes is visited at the shortest interval, however
// late each visit is.
func TestLateVisitsDoNotAddUp(t *testing.T) {
	for _, policy := range []Policy{Nutch(), StormCrawler(), AIMD{Min: time.Hour}} {
		at := start
		h := History{}.Observe(Visit{At: at})
		for range 200 {
			at = at.Add(policy.Next(h) * 2)
			h = h.Observe(Visit{At: at, Changed: true})
		}
		require.LessOrEqual(t, policy.Next(h), 2*time.Hour, "%T", policy)
	}
}
