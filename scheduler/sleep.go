package scheduler

import (
	"context"
	"time"
)

// sleep is where a Next waits that has found nothing. These are the rules:
//
// One Next at a time holds the baton. It alone sets a timer, for the earliest time at which
// something may become ready, and it alone is kicked when another call makes that time earlier.
// The others wait for the baton, in the order in which they came. Whoever leaves Next, with a
// lease or without, hands the baton on, and who gets it looks before it sleeps. So one event wakes
// one of them, and if it left work for two the second is woken by the first.
//
// No wake-up is lost, since a look that finds nothing and the falling asleep are one step under
// the mutex. A Next that has only just come may take what another was woken for; that one sleeps
// again.
//
// All fields but kick are guarded by the mutex of the Scheduler.
type sleep struct {
	// kick ends the sleep early. One place is enough: who is kicked looks at everything anew, and
	// a kick that comes between the look and the sleep is not lost.
	kick chan struct{}

	asleep bool  // and not yet kicked
	until  int64 // the holder wakes at this time by itself

	blocked bool  // the holder waits although tasks are queued
	since   int64 // the holder's last look, for waited
	waits   int64
	waited  int64
}

// wait returns after d, after a kick, or with ctx's error.
func (z *sleep) wait(ctx context.Context, d time.Duration) error {
	// If only a kick can help, due stays nil. A timer for the end of all time would be as silent,
	// but would hide a deadlock from the run time and from synctest.
	var due <-chan time.Time
	if d != Forever {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-z.kick:
	case <-due:
	}
	return nil
}

// note accounts for the time since the last look of the holder.
func (z *sleep) note(now int64, blocked bool) {
	if z.blocked {
		z.waited += now - z.since
	}
	if blocked && !z.blocked {
		z.waits++
	}
	z.blocked, z.since = blocked, now
}

// poll is a look at time now by a Next without the baton.
func (s *Scheduler[T]) poll(now time.Time) (*Lease[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease, _ := s.take(now)
	if lease == nil && s.drained() {
		return nil, ErrDrained
	}
	return lease, nil
}

// pollOrSleep is a look by the holder of the baton. If it finds nothing, the holder counts as
// asleep from here on, under the same lock as the look: what happens next kicks it.
func (s *Scheduler[T]) pollOrSleep(now time.Time) (*Lease[T], time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease, wait := s.take(now)
	s.sleep.asleep = false
	s.sleep.note(s.book.now, lease == nil && s.queued > 0)
	if lease != nil {
		return lease, 0, nil
	}
	if s.drained() {
		return nil, 0, ErrDrained
	}
	s.sleep.asleep, s.sleep.until = true, later(s.book.now, int64(wait))
	return nil, wait, nil
}

// giveUp ends the sleep of a holder whose context has ended.
func (s *Scheduler[T]) giveUp(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sleep.asleep = false
	s.sleep.note(max(s.instant(now), s.sleep.since), false)
}

// alert kicks the holder of the baton if it would sleep too long. Every call that may make a task
// ready, or leave nothing to wait for, ends with it. It requires that s.mu is held.
func (s *Scheduler[T]) alert() {
	z := &s.sleep
	if !z.asleep || s.book.soonest() >= z.until && !s.drained() {
		return
	}
	z.asleep = false
	select {
	case z.kick <- struct{}{}:
	default: // an older kick is still there and does as well
	}
}
