package stage

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFreshFor(t *testing.T) {
	for control, want := range map[string]time.Duration{
		"": 0, "max-age=60": time.Minute, "public, Max-Age = 60": 0, "public, Max-Age=60": time.Minute,
		`max-age="60"`: time.Minute, "max-age=60, no-cache": 0, "no-store, max-age=60": 0, "s-maxage=60": 0,
		"max-age=-1": 0, "max-age=x": 0, "max-age=99999999999": 1 << 31 * time.Second,
		"max-age=9999999999999999999999": 0,
	} {
		require.Equal(t, want, FreshFor(http.Header{"Cache-Control": {control}}), control)
	}
	h := http.Header{"Cache-Control": {"max-age=60"}, "Age": {"45"}}
	require.Equal(t, 15*time.Second, FreshFor(h))
	h.Set("Age", "100")
	require.Zero(t, FreshFor(h))
}
