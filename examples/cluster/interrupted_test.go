package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnInterruptedCommandHasNotSucceeded interrupts commands that wait for a broker: a script must not go on
// as if the crawl had ended, or its seeds were sent.
func TestAnInterruptedCommandHasNotSucceeded(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"wait", "-nats", "nats://127.0.0.1:1"},
		{"add", "-nats", "nats://127.0.0.1:1", "http://a.test/"},
		{"pause", "-nats", "nats://127.0.0.1:1"},
		{"create", "-nats", "nats://127.0.0.1:1", "-loopback", "http://a.test/"},
		{"run", "-nats", "nats://127.0.0.1:1"},
		{"status", "-nats", "nats://127.0.0.1:1"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		var out, log bytes.Buffer
		status := command(ctx, args, &out, &log)
		cancel()
		if args[0] == "run" || args[0] == "status" {
			require.Zero(t, status, "%v: nothing else ends it", args)
			continue
		}
		require.Equal(t, 1, status, "%v", args)
		require.Contains(t, log.String(), "interrupted", "%v", args)
	}
}
