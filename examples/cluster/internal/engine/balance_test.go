package engine

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// dealt distributes partitions with random loads among members, in equal shares.
func dealt(r *rand.Rand, members, parts int) loadOf {
	loads := loadOf{}
	for part := range parts {
		id := fmt.Sprintf("m%02d", part%members)
		if loads[id] == nil {
			loads[id] = map[int]int{}
		}
		load := r.IntN(200)
		if r.IntN(8) == 0 {
			load *= 10 // a few have a much higher load
		}
		loads[id][part] = load
	}
	return loads
}

// extremes returns the highest and the lowest load of all members.
func extremes(loads loadOf) (high, low int) {
	low = 1 << 40
	for id := range loads {
		high, low = max(high, loads.total(id)), min(low, loads.total(id))
	}
	return high, low
}

// move moves a partition as the members do after a shift.
func move(t *testing.T, loads loadOf, before, after shift) {
	t.Helper()
	var from, to string
	sum := 0
	for id := range loads {
		sum += after.More[id]
		switch after.More[id] - before.More[id] {
		case -1:
			from = id
		case 1:
			to = id
		default:
			require.Equal(t, before.More[id], after.More[id], "one partition moves")
		}
	}
	require.Zero(t, sum, "shares add up to the partitions")
	load, has := loads[from][after.Give]
	require.True(t, has, "%s does not have partition %d", from, after.Give)
	delete(loads[from], after.Give)
	loads[to][after.Give] = load
}

// TestRebalancingEvensLoadsOut rebalances random loads until nothing moves. The highest load never
// rises, members keep a minimum of partitions, it ends, and at the end loads are even or no move
// within the bounds would help.
func TestRebalancingEvensLoadsOut(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		members := 2 + r.IntN(9)
		parts := members * (1 + r.IntN(12))
		loads, now := dealt(r, members, parts), shift{}
		first, _ := extremes(loads)
		moves := 0
		for {
			high, _ := extremes(loads)
			next, ok := rebalance(loads, now)
			if !ok {
				break
			}
			move(t, loads, now, next)
			now = next
			after, _ := extremes(loads)
			require.LessOrEqual(t, after, high)
			require.LessOrEqual(t, after, first)
			moves++
			require.LessOrEqual(t, moves, 4*parts, "partitions move in circles: seed %d", seed)
		}
		sum := 0
		for id := range loads {
			sum += loads.total(id)
			require.GreaterOrEqual(t, len(loads[id]), max(parts/members/2, 1))
			require.LessOrEqual(t, len(loads[id]), 2*(parts/members))
		}
		high, _ := extremes(loads)
		if float64(high*members) > unevenRatio*float64(sum) && high >= leastLoad {
			require.False(t, helps(loads, parts/members), "seed %d: %v", seed, loads)
		}
	}
}

// helps moves each partition of the member with the highest load to each other member.
func helps(loads loadOf, equal int) bool {
	high, _ := extremes(loads)
	hot := "" // the last one with the highest load: that one gives
	for id := range loads {
		if loads.total(id) == high {
			hot = max(hot, id)
		}
	}
	for cold := range loads {
		gap := high - loads.total(cold)
		for _, load := range loads[hot] {
			fits := len(loads[hot]) > max(equal/2, 1) && len(loads[cold])+1 <= 2*equal
			if cold != hot && fits && 10*load >= gap && 10*load <= 9*gap {
				return true
			}
		}
	}
	return false
}

// TestEvenLoadsDoNotMove varies equal loads by a tenth, as measurements do.
func TestEvenLoadsDoNotMove(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		loads := dealt(r, 4, 32)
		for _, parts := range loads {
			for part := range parts {
				parts[part] = 900 + r.IntN(200)
			}
		}
		_, ok := rebalance(loads, shift{})
		require.False(t, ok)
	}
	for name, loads := range map[string]loadOf{
		"no members":     {},
		"one member":     {"a": {0: 5000}},
		"idle":           {"a": {0: 40, 1: 50}, "b": {2: 0}},
		"one large part": {"a": {0: 9000, 1: 0}, "b": {2: 10, 3: 10}},
	} {
		_, ok := rebalance(loads, shift{})
		require.False(t, ok, name)
	}
}

// TestALoadIsThatOfTheLastMinute has a partition that works half of the time, and then not at all.
func TestALoadIsThatOfTheLastMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meter{start: time.Now(), last: time.Now()}
		worked, load := time.Duration(0), 0
		for range 40 {
			time.Sleep(time.Second)
			worked += time.Second / 2
			load = m.read(worked, time.Now())
		}
		require.InDelta(t, 500, load, 2)
		require.Equal(t, load, m.read(worked, time.Now()), "no time has passed")
		for range 240 {
			time.Sleep(time.Second)
			load = m.read(worked, time.Now())
		}
		require.Less(t, load, 25)
	})
}

// TestPartitionsMoveFromBusyMembers has three partitions that work a lot at any member. They end up
// on different members, and when one leaves, all partitions are owned again.
func TestPartitionsMoveFromBusyMembers(t *testing.T) {
	connect := setup(t)
	o := newOwners(t)
	busy := make(chan map[int]bool, 1)
	busy <- map[int]bool{}
	working := func(name string) Runner {
		run := o.runner(name)
		return func(ctx context.Context, c Claim) error {
			done := make(chan struct{})
			defer close(done)
			go func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(10 * time.Millisecond):
					}
					hot := <-busy
					if hot[c.Part] {
						c.Worked(10 * time.Millisecond)
					}
					busy <- hot
				}
			}()
			return run(ctx, c)
		}
	}
	takePart := func(name string) (leave func()) {
		_, leases, _ := connect()
		m := NewMember(leases, Options{
			Name: name, TTL: 300 * time.Millisecond, Run: working(name),
			Balance: 50 * time.Millisecond,
			Parts:   map[message.Module]int{message.Fetch: parts},
		})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		return func() { cancel(); require.NoError(t, <-ended) }
	}
	leaveA, leaveB := takePart("a"), takePart("b")
	hot := <-busy
	until(t, func() bool {
		clear(hot)
		owned := o.owned()
		for part, name := range owned {
			if name == "a" {
				hot[part] = true
			}
		}
		return len(owned) == parts && len(hot) == parts/2
	})
	busy <- hot
	spread := func() (n int) {
		hot := <-busy
		defer func() { busy <- hot }()
		for part, name := range o.owned() {
			if hot[part] && name == "b" {
				n++
			}
		}
		return n
	}
	until(t, func() bool { return spread() > 0 && len(o.owned()) == parts })
	leaveA()
	until(t, func() bool { return o.count()["b"] == parts })
	leaveB()
	for part, epochs := range o.epochs {
		require.True(t, slices.IsSorted(epochs), "partition %d: %v", part, epochs)
	}
}

// owned returns the owner of each partition.
func (o *owners) owned() map[int]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.by)
}
