package jet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// TestAFullBrokerIsWaitedFor: once there is room again, what was to be written is.
func TestAFullBrokerIsWaitedFor(t *testing.T) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: t.TempDir(), JetStream: true, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 24 << 20,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(20*time.Second))
	b, err := Connect(t.Context(), Options{URL: s.ClientURL(), MaxBytes: 16 << 20})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	require.NoError(t, b.CreateStream(t.Context()))
	table, err := b.MakeTable(t.Context(), "states")
	require.NoError(t, err)
	data := make([]byte, 512<<10) // that cannot be compressed
	for i := range data {
		data[i] = byte(rand.Int())
	}
	for name, write := range map[string]func(context.Context) error{
		"put": func(ctx context.Context) (err error) {
			for n := 0; err == nil; n++ {
				err = table.Put(ctx, fmt.Sprint("chunk.", n), data)
			}
			return err
		},
		"commit": func(ctx context.Context) error {
			_, _, err := b.Commit(ctx, []Record{{Of: message.Dest{To: message.Fetch}, Value: data}}, nil)
			return err
		},
		"send": func(ctx context.Context) error { return b.Send(ctx, Message{here, data}) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			for err = error(nil); err == nil; {
				err = write(ctx)
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}
