package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// TestACommitThatMakesRoomGoesFirst has a stream without room for what hosts releases until fetch has
// committed, and both commit at the same tick.
func TestACommitThatMakesRoomGoesFirst(t *testing.T) {
	bus, err := jet.Connect(t.Context(), jet.Options{URL: startBroker(t), MaxBytes: 4 << 20})
	require.NoError(t, err)
	t.Cleanup(bus.Close)
	require.NoError(t, bus.CreateStream(t.Context()))
	states, err := bus.MakeTable(t.Context(), "states")
	require.NoError(t, err)
	keep := func(to message.Module) *Keeper {
		c := claim(1)
		c.To = to
		k, err := Keep(t.Context(), bus, states, c)
		require.NoError(t, err)
		return k
	}
	hosts, fetch := keep(message.Hosts), keep(message.Fetch)
	to := message.Dest{To: message.Fetch}
	for range 48 { // 3 of 4 MiB
		require.NoError(t, bus.Send(t.Context(), jet.Message{To: to, Data: make([]byte, 64<<10)}))
	}
	fetch.Root.Seq, err = bus.End(t.Context(), to)
	require.NoError(t, err)

	var out Outbox
	for i := 0; out.size < 2<<20; i++ {
		out.Put(message.Fetch, 0, message.Item{Kind: message.Page,
			URL: fmt.Sprintf("http://a.test/%s/%d", strings.Repeat("x", 100), i)})
	}
	post := newPost(t, bus)
	released, made := post.Commit(hosts, &out), post.Commit(fetch, &Outbox{})
	result := func(of <-chan error) error {
		select {
		case err := <-of:
			return err
		case <-time.After(8 * time.Second):
			return fmt.Errorf("no result")
		}
	}
	require.NoError(t, result(made))
	require.NoError(t, bus.Forget(t.Context(), to, fetch.Root.Seq))
	require.NoError(t, result(released))
}
