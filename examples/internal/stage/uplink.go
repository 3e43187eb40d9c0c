package stage

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
)

// The timeout of a probe, and the pauses between two visits that test whether an outage is over.
const (
	probeTimeout = 5 * time.Second
	firstTry     = 2 * time.Second
	longestTry   = 30 * time.Second
)

// An Uplink distinguishes outages of this machine from failures of hosts.
//
// When a visit fails and the host or the network may be the cause, the uplink sends the name server
// a query that any name server answers. If that fails too, the machine is offline: visits wait,
// except for an occasional one that tests the connection. It keeps no goroutine running. Its
// methods are safe for concurrent use.
type Uplink struct {
	Probe   func(context.Context) error // fails if the network does
	Timeout time.Duration               // of a request; 0 means unknown
	tell    func(trouble string)        // called when trouble begins and, with "", when it is over

	probing chan struct{} // holds a value while a probe runs

	mu       sync.Mutex
	worked   time.Time     // when a remote server last answered
	trouble  string        // "" if there is none
	since    time.Time     // when it began
	over     time.Time     // when the last one ended
	restored chan struct{} // closed when it ends; nil if there is none
	try      time.Time     // when the next visit may test
	pause    time.Duration // after that
}

// NewUplink returns an Uplink that probes with ping and reports trouble to tell.
func NewUplink(ping func(context.Context) error, tell func(string)) *Uplink {
	probe := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		return ping(ctx)
	}
	return &Uplink{Probe: probe, tell: tell, probing: make(chan struct{}, 1)}
}

// Answered records that a remote server answered.
func (u *Uplink) Answered() {
	u.mu.Lock()
	u.worked = time.Now()
	ended := u.trouble != ""
	if ended {
		u.trouble, u.over = "", u.worked
		close(u.restored)
	}
	u.mu.Unlock()
	if ended {
		u.tell("")
	}
}

// down records that this machine is offline.
func (u *Uplink) down(trouble string) {
	u.mu.Lock()
	begins := u.trouble == ""
	if begins {
		u.since, u.restored = time.Now(), make(chan struct{})
		u.pause, u.try = firstTry, u.since.Add(firstTry)
		u.trouble = trouble
	}
	u.mu.Unlock()
	if begins {
		u.tell(trouble)
	}
}

// State returns the trouble and its start; "" if there is none.
func (u *Uplink) State() (trouble string, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.trouble, u.since
}

// Ours reports whether a visit that began at the given time failed because of this machine. It may
// have to wait for a probe.
func (u *Uplink) Ours(ctx context.Context, err error, addr netip.Addr, began time.Time) bool {
	switch fault := Attribute(err, addr); {
	case ctx.Err() != nil, u.slept(err, began):
		return true
	case fault == TheirFault:
		u.Answered()
		return false
	case fault == OurFault:
		u.down(err.Error())
		return true
	}
	failed := time.Now()
	u.probing <- struct{}{}
	defer func() { <-u.probing }()
	if ours, known := u.verdict(began, failed); known {
		return ours
	}
	if probed := u.Probe(ctx); probed != nil {
		if ctx.Err() == nil {
			u.down(fmt.Sprintf("no answer from %s, nor from the name server: %v", err, probed))
		}
		return true
	}
	u.Answered()
	ours, _ := u.verdict(began, failed)
	return ours
}

// asleep is how much longer than its timeout a request takes if this machine or process was stopped meanwhile.
const asleep = 10 * time.Second

// slept reports whether an answer may have been missed because this machine or process was stopped. A sleep of the
// machine shows in the time of day only.
func (u *Uplink) slept(err error, began time.Time) bool {
	return u.Timeout > 0 && errors.As(err, new(*fetch.Error)) &&
		time.Now().Round(0).Sub(began.Round(0)) > u.Timeout+asleep
}

// verdict classifies a failed visit by what is known: an outage during the visit, or an answer to
// another visit since it failed.
func (u *Uplink) verdict(began, failed time.Time) (ours, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over.After(began) {
		return true, true
	}
	return false, u.trouble == "" && !u.worked.Before(failed)
}

// Wait waits until a visit may be tried: not at all, unless there is trouble. It returns false if
// ctx ends first.
func (u *Uplink) Wait(ctx context.Context) bool {
	for {
		wait, restored := u.turn(time.Now())
		if restored == nil {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-restored:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false
		}
	}
}

// turn returns nil if the caller may continue; otherwise the maximum wait, and a channel to wait
// for.
func (u *Uplink) turn(now time.Time) (wait time.Duration, restored chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.trouble == "":
		return 0, nil
	case now.Before(u.try):
		return u.try.Sub(now), u.restored
	}
	u.pause = min(2*u.pause, longestTry)
	u.try = now.Add(u.pause)
	return 0, nil
}
