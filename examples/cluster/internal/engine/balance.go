package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// DefaultBalance is the interval at which a partition may move because loads are uneven.
const DefaultBalance = time.Minute

// Bounds of rebalancing. A member's load is the time that its partitions work, per second.
const (
	unevenRatio = 1.25 // of the highest load to the mean: below, nothing moves
	leastLoad   = 100  // thousandths of a second per second: below, nothing moves
	loadSpan    = time.Minute
)

// A shift is the difference between the shares of members and equal shares. It is valid for one set
// of members: when one comes or goes, shares are equal again until new loads have been measured.
type shift struct {
	More map[string]int // by the id of each member; they add up to 0
	Give int            // the partition that moved last
}

// A seenShift is a shift with its revision in the table.
type seenShift struct {
	shift
	revision uint64
}

const shiftPrefix = "shift."

// loadOf holds the load of each partition of each member.
type loadOf map[string]map[int]int

func (l loadOf) total(member string) (sum int) {
	for _, load := range l[member] {
		sum += load
	}
	return sum
}

// rebalance returns a shift with one partition moved from the member with the highest load to one
// with a low load. It reports false if loads are even enough, or if no move helps.
//
// The partition that moves is the one that comes closest to halving the difference. The difference
// shrinks by at least a fifth, so that no partition moves back and forth. A member has at least
// half and at most twice an equal share: loads change, and an idle partition may become busy.
// It takes O(members log members + partitions).
func rebalance(loads loadOf, now shift) (shift, bool) {
	ids := slices.Sorted(maps.Keys(loads))
	sum, parts := 0, 0
	for _, id := range ids {
		sum += loads.total(id)
		parts += len(loads[id])
	}
	slices.SortStableFunc(ids, func(a, b string) int { return loads.total(a) - loads.total(b) })
	if len(ids) < 2 {
		return now, false
	}
	hot := ids[len(ids)-1]
	high := loads.total(hot)
	equal := max(parts/len(ids), 1)
	if high < leastLoad || float64(high*len(ids)) <= unevenRatio*float64(sum) ||
		len(loads[hot])-1 < max(equal/2, 1) {
		return now, false
	}
	for _, cold := range ids[:len(ids)-1] {
		gap := high - loads.total(cold)
		part, found := halving(loads[hot], gap)
		if !found || len(loads[cold])+1 > 2*equal {
			continue
		}
		next := shift{More: map[string]int{}, Give: part}
		for _, id := range ids {
			next.More[id] = now.More[id]
		}
		next.More[hot]--
		next.More[cold]++
		return next, true
	}
	return now, false
}

// halving returns the partition whose move comes closest to halving a difference of loads.
func halving(loads map[int]int, gap int) (best int, found bool) {
	distance := 0
	for _, part := range slices.Sorted(maps.Keys(loads)) {
		load := loads[part]
		if 10*load < gap || 10*load > 9*gap {
			continue
		}
		if d := abs(2*load - gap); !found || d < distance {
			best, distance, found = part, d, true
		}
	}
	return best, found
}

func abs(n int) int { return max(n, -n) }

// A meter measures the load of a partition. It is not safe for concurrent use.
type meter struct {
	start, last time.Time
	worked      time.Duration // in all, at last
	load        float64       // thousandths
}

// read updates the meter with the total time that the partition has worked. The mean is over all of
// its time at first, and over the last minute later.
func (m *meter) read(worked time.Duration, now time.Time) int {
	if span := now.Sub(m.last); span > 0 {
		load := 1000 * float64(worked-m.worked) / float64(span)
		m.load += (load - m.load) * float64(span) / float64(min(now.Sub(m.start), loadSpan+span))
		m.last, m.worked = now, worked
	}
	return int(m.load)
}

// loads measures the partitions of this member.
func (m *Member) loads(now time.Time) map[string]map[int]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]map[int]int{}
	for _, o := range m.owned {
		module := o.claim.Module.String()
		if all[module] == nil {
			all[module] = map[int]int{}
		}
		all[module][o.claim.Part] = o.meter.read(time.Duration(o.claim.worked.Load()), now)
	}
	return all
}

// balance moves one partition if loads are uneven. Only the member whose id comes first does that,
// and not before the members and their shares were the same for a while.
func (m *Member) balance(ctx context.Context, module message.Module, parts int, self string) {
	if m.opts.Balance < 0 {
		return
	}
	loads, now := m.view.loads(module)
	settled := len(loads) > 1 && slices.Min(slices.Collect(maps.Keys(loads))) == self
	for id, load := range loads {
		settled = settled && len(load) == m.view.share(module, parts, id)
	}
	if !settled {
		delete(m.steady, module)
		return
	}
	since, steady := m.steady[module]
	if !steady || time.Since(since) < m.opts.Balance {
		if !steady {
			m.steady[module] = time.Now()
		}
		return
	}
	next, ok := rebalance(loads, now.shift)
	if !ok {
		return // the next look retries
	}
	delete(m.steady, module)
	value, _ := json.Marshal(next) // cannot fail
	m.table.Try(ctx, shiftPrefix+module.String(), value, now.revision)
}

// loads returns the loads that members report for the partitions of a module, and the current
// shift.
func (v *view) loads(m message.Module) (loadOf, seenShift) {
	v.mu.Lock()
	defer v.mu.Unlock()
	loads := loadOf{}
	for id, s := range v.sessions {
		if !s.Dead && s.runs(m) {
			loads[id] = s.Loads[m.String()]
		}
	}
	now := v.shifts[shiftPrefix+m.String()]
	if !now.holds(slices.Collect(maps.Keys(loads))) {
		now.shift = shift{}
	}
	return loads, now
}

// holds reports whether a shift was made for these members.
func (s shift) holds(ids []string) bool {
	for _, id := range ids {
		if _, is := s.More[id]; !is {
			return false
		}
	}
	return len(ids) == len(s.More)
}
