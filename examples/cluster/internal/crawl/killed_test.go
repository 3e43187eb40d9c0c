package crawl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The crawl is finished, but the last process was killed before it reported that.
func TestWaitAfterAKill(t *testing.T) {
	bus := connect(t, startBroker(t))
	c, err := Create(t.Context(), bus, testOptions())
	require.NoError(t, err)
	ok, _ := c.Leases.Try(t.Context(), "session.p-1", []byte(`{"Modules":["fetch"],"TTL":100000000}`), 0)
	require.True(t, ok)
	done, err := c.Finished(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, c.Wait(t.Context(), 50*time.Millisecond))
}
