package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMissingBrokersAreReportedAtOnce: a command that waits must say what it waits for.
func TestMissingBrokersAreReportedAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, log lockedBuffer
	ended := make(chan int, 1)
	go func() { ended <- command(ctx, []string{"status", "-nats", "nats://127.0.0.1:1"}, &out, &log) }()
	for log.String() == "" {
		time.Sleep(time.Millisecond)
	}
	require.Contains(t, log.String(), "no answer from nats://127.0.0.1:1: ")
	require.Contains(t, log.String(), "waiting until a broker is there")
	cancel()
	<-ended
}
