package crawl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAScopeThatNeedsOtherSeedsIsRefused narrows the scope of crawls that do not keep the seeds which that needs:
// the pages of seeds would end as unwanted, for good.
func TestAScopeThatNeedsOtherSeedsIsRefused(t *testing.T) {
	t.Parallel()
	seeds := []string{"http://a.test/x/", "http://a.test/y/"}
	for first, refused := range map[string]string{"host": "page prefix", "domain": "page prefix", "prefix": ""} {
		o := testOptions()
		o.Scope, o.Seeds = first, seeds
		c, err := Create(t.Context(), connect(t, startBroker(t)), o)
		require.NoError(t, err)
		for _, then := range []string{"page", "prefix", "host", "domain", "any"} {
			_, err := c.Change(t.Context(), func(s *Settings) error { s.Scope = then; return nil })
			if err != nil {
				require.Contains(t, refused, then)
				require.ErrorContains(t, err, "seeds")
				continue
			}
			s, _, err := c.Settings(t.Context())
			require.NoError(t, err)
			f, err := c.filter(s)
			require.NoError(t, err)
			for _, seed := range seeds {
				require.Empty(t, f.Check(knownOf(page(seed))), "%s of a crawl with scope %s, then %s", seed, first, then)
			}
		}
	}
	o := testOptions()
	o.Scope = "any" // "cluster create" keeps no seeds
	c, err := Create(t.Context(), connect(t, startBroker(t)), o)
	require.NoError(t, err)
	_, err = c.Change(t.Context(), func(s *Settings) error { s.Scope = "host"; return nil })
	require.ErrorContains(t, err, "seeds")
	_, err = c.Change(t.Context(), func(s *Settings) error { s.Scope = "hots"; return nil })
	require.ErrorContains(t, err, "hots")
	require.NotContains(t, err.Error(), "seeds")
	_, err = c.Change(t.Context(), func(s *Settings) error { s.Scope = "any"; return nil })
	require.NoError(t, err)
}
