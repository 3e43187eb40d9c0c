package lsm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestPowerFailureAfterAKill: a process is killed at each step, and the power fails at each step of the next
// Open. That finds names which are not durable yet, perhaps that of a new manifest.
func TestPowerFailureAfterAKill(t *testing.T) {
	opts := Options{Prefix: prefixOf, Segment: 700}
	script := func(files *vfs.Mem) (states []map[string]string, acknowledged int) {
		states = []map[string]string{{}}
		tree, _, err := Open(files, opts)
		if err != nil {
			return states, 0
		}
		r := rand.New(rand.NewPCG(5, 5))
		for i := 1; i <= 4; i++ {
			state := maps.Clone(states[i-1])
			for range 30 {
				key := randomKey(r)
				tree.Put([]byte(key), fmt.Appendf(nil, "v%d", i))
				state[key] = fmt.Sprint("v", i)
			}
			states = append(states, state)
			if commit(tree, fmt.Sprint(i)) != nil {
				return states, i - 1
			}
		}
		return states, 4
	}
	whole := vfs.NewMem()
	script(whole)
	for step := 1; step <= whole.Steps(); step++ {
		files := vfs.NewMem()
		files.FailAt(step, vfs.ErrPower)
		states, acknowledged := script(files)
		for failAt, more := 1, true; more; failAt++ {
			killed := files.Clone()
			killed.FailAt(failAt, vfs.ErrPower)
			_, _, _ = Open(killed, opts)
			more = killed.Steps() >= failAt
			for seed := range uint64(5) {
				found := killed.Crash(rand.New(rand.NewPCG(seed, uint64(failAt))))
				tree, meta, err := Open(found, opts)
				require.NoError(t, err, "a kill at step %d, then power failure at %d", step, failAt)
				i := 0
				_, _ = fmt.Sscan(string(meta), &i)
				require.GreaterOrEqual(t, i, acknowledged)
				require.Equal(t, states[i], contents(t, tree, "", "~"))
				tree.Close()
			}
		}
	}
}
