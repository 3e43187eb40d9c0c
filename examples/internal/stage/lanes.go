package stage

import (
	"context"
	"sync"
	"time"
)

// Lanes space requests where several may be in flight: at a host, or at an address. The scheduler
// does so for leases. But net/http may repeat a request within its lease, if the server has closed
// the connection or asks for it, and a server that does so once may do so often. The zero Lanes is
// ready to use; its methods are safe for concurrent use.
type Lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane
}

// A lane is shared by the visits at a host or an address.
type lane struct {
	visits int
	turn   chan struct{}        // has a value from the turn of a request until its arrival
	next   map[string]time.Time // when the next request of a host may have its turn; "" is any host
}

// A LaneVisit is a visit with all its requests. Its methods are safe for concurrent use.
type LaneVisit struct {
	lanes     *Lanes
	key, host string
	any, own  time.Duration // delays between any two requests, and between two of the host

	lane    *lane
	mu      sync.Mutex
	hasTurn bool
}

// Enter begins a visit of a host in the lane of that key. any is the delay of the lane, and own
// that of the host.
func (l *Lanes) Enter(key, host string, any, own time.Duration) *LaneVisit {
	l.mu.Lock()
	defer l.mu.Unlock()
	shared := l.lanes[key]
	if shared == nil {
		shared = &lane{turn: make(chan struct{}, 1), next: map[string]time.Time{}}
		if l.lanes == nil {
			l.lanes = map[string]*lane{}
		}
		l.lanes[key] = shared
	}
	shared.visits++
	return &LaneVisit{lanes: l, key: key, host: host, any: any, own: own, lane: shared}
}

// Wait waits until the visit may send a request, or ctx ends. Call Arrived when it has.
func (v *LaneVisit) Wait(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hasTurn { // for a request that could not be sent
		return
	}
	select {
	case v.lane.turn <- struct{}{}:
		v.hasTurn = true
	case <-ctx.Done():
		return
	}
	v.lanes.mu.Lock()
	at := v.lane.next[""]
	if own := v.lane.next[v.host]; own.After(at) {
		at = own
	}
	v.lanes.mu.Unlock()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Arrived records when the request reaches the server, and ends the turn.
func (v *LaneVisit) Arrived(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.hasTurn {
		return
	}
	v.hasTurn = false
	v.lanes.mu.Lock()
	v.lane.next[""], v.lane.next[v.host] = at.Add(v.any), at.Add(v.own)
	v.lanes.mu.Unlock()
	<-v.lane.turn
}

// Leave ends the visit. The delays of a lane without visits are kept by the scheduler.
func (v *LaneVisit) Leave() {
	v.Arrived(time.Now()) // if it was to be sent
	v.lanes.mu.Lock()
	defer v.lanes.mu.Unlock()
	if v.lane.visits--; v.lane.visits == 0 {
		delete(v.lanes.lanes, v.key)
	}
}
