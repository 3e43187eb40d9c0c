package clients

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
)

func TestSheets(t *testing.T) {
	queue := scheduler.New[string](scheduler.Options{HostDelay: time.Second, LatencyFactor: -1})
	s := sheets{
		"":                {},
		"test,site,":      {Delay: time.Minute},
		"test,site,fast)": {Delay: 2 * time.Second},
	}
	for _, url := range []string{"http://fast.site.test/", "http://www.site.test/", "http://a.test/"} {
		require.NoError(t, s.add(queue, url))
		require.NoError(t, s.add(queue, url+"2"))
	}
	now := time.Now()
	delays := map[string]time.Duration{}
	for range 3 {
		lease, _ := queue.TryNext(now)
		lease.Arrived(now)
		lease.Done(scheduler.Outcome{})
	}
	for _, host := range []string{"fast.site.test", "www.site.test", "a.test"} {
		delays[host] = queue.Explain(host).Until.Sub(now).Round(100 * time.Millisecond)
	}
	require.Equal(t, map[string]time.Duration{
		"fast.site.test": 2 * time.Second, "www.site.test": time.Minute, "a.test": time.Second,
	}, delays)
}
