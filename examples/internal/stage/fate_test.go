package stage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFatesHaveCodesAndDescriptions: programs use the codes, so that descriptions may change.
func TestFatesHaveCodesAndDescriptions(t *testing.T) {
	said := map[string]Fate{}
	for fate := range kinds {
		require.Regexp(t, `^[a-z][a-z0-9_]+$`, string(fate))
		require.NotContains(t, said, fate.String())
		said[fate.String()] = fate
	}
	require.Equal(t, "robots_unreachable", string(RobotsUnreachable))
	require.Equal(t, "another", Fate("another").String())
	require.True(t, TimedOut.Failed())
	require.False(t, Disallowed.Failed(), "a refusal by the site is not a failure")
	require.False(t, Fetched.Failed())
}
