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

// next is Next, with room for the lease.
func (s *Scheduler[T]) next(ctx context.Context, lease *Lease[T]) (*Lease[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if found, err := s.poll(time.Now(), lease); found {
		return lease, nil
	} else if err != nil {
		return nil, err
	}
	select {
	case <-s.baton:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.baton <- struct{}{} }()
	for {
		wait, err := s.pollOrSleep(time.Now(), lease)
		if err != nil {
			return nil, err
		}
		if wait == 0 {
			return lease, nil
		}
		if err := s.sleep.wait(ctx, wait); err != nil {
			s.giveUp(time.Now())
			return nil, err
		}
	}
}

// poll is a look at time now by a Next without the baton.
func (s *Scheduler[T]) poll(now time.Time, lease *Lease[T]) (found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.take(now, lease) == 0 {
		return true, nil
	}
	return false, s.ended()
}

// pollOrSleep is a look by the holder of the baton. If it finds nothing, the holder counts as
// asleep from here on, under the same lock as the look: what happens next kicks it.
func (s *Scheduler[T]) pollOrSleep(
	now time.Time, lease *Lease[T],
) (wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = s.take(now, lease)
	s.sleep.asleep = false
	s.sleep.note(s.book.now, wait != 0 && s.queued > 0)
	if wait == 0 {
		return 0, nil
	}
	if err := s.ended(); err != nil {
		return wait, err
	}
	s.sleep.asleep, s.sleep.until = true, later(s.book.now, int64(wait))
	return wait, nil
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
	if !z.asleep || s.book.soonest() >= z.until && s.ended() == nil {
		return
	}
	z.asleep = false
	select {
	case z.kick <- struct{}{}:
	default: // an older kick is still there and does as well
	}
}
