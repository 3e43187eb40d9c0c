package satstore

import (
	"errors"
	"sync"
)

// tasks run in the background. Callers wait for them only if the buffers are full, or if a slot
// begins while its records are still being moved.
type tasks struct {
	flusher      task // writes buffers
	checkpointer task // writes a checkpoint when the log is long
	splitter     task // moves records to finer buckets
	merger       task // merges runs of the id index

	started bool
	stop    chan struct{}
	stopped sync.WaitGroup
}

// A task runs once after any number of requests.
type task struct {
	ask chan struct{}
	run func() error
}

func (s *Store) makeTasks() {
	s.stop = make(chan struct{})
	s.flusher = task{make(chan struct{}, 1), s.flush}
	s.checkpointer = task{make(chan struct{}, 1), s.checkpointIfLong}
	s.splitter = task{make(chan struct{}, 1), s.moveSplit}
	s.merger = task{make(chan struct{}, 1), s.mergeIDs}
}

// all returns each task.
func (k *tasks) all() []*task {
	return []*task{&k.flusher, &k.checkpointer, &k.splitter, &k.merger}
}

// start starts the goroutines.
func (s *Store) start() {
	for _, t := range s.all() {
		if s.o.test.work == nil {
			s.stopped.Go(func() { s.loop(t) })
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	s.startCommit()
	s.requestAll()
}

// startCommit starts the goroutine that syncs the log. It requires that s.mu is held.
func (s *Store) startCommit() {
	if log := s.log; log != nil && s.started && !s.closed && s.o.Commit > 0 {
		s.stopped.Go(func() {
			log.Commit(s.stop, s.o.Commit, func(err error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				_ = s.fail(err)
			})
		})
	}
}

// end stops the goroutines and waits for them.
func (k *tasks) end() {
	close(k.stop)
	k.stopped.Wait()
}

func (s *Store) loop(t *task) {
	for {
		select {
		case <-s.stop:
			return
		case <-t.ask:
			s.runTask(t)
		}
	}
}

// runTask runs a task. Its error makes the store read-only, unless it says only that the store is.
func (s *Store) runTask(t *task) {
	if err := t.run(); err != nil && !errors.Is(err, ErrReadOnly) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			_ = s.fail(err)
		}
	}
}

// request asks for a task to run.
func (s *Store) request(t *task) {
	select {
	case t.ask <- struct{}{}:
	default:
	}
}

func (s *Store) requestAll() {
	for _, t := range s.all() {
		s.request(t)
	}
}

// wait waits until s.changed is signaled. It requires that s.mu is held, and releases it to wait.
func (s *Store) wait() {
	if s.o.test.work == nil {
		s.changed.Wait()
	}
	s.idle()
}

// idle lets a test do the background work. It requires that s.mu is held, and releases it.
func (s *Store) idle() {
	if s.o.test.work != nil {
		s.mu.Unlock()
		s.o.test.work(s)
		s.mu.Lock()
	}
}

// mergeIDs merges runs of the id index until there is nothing left to merge. It takes none of the
// store's locks while it merges.
//
// Damage ends all merging until the next Open, since the same merge would fail again. It is no reason
// to make the store read-only: look-ups that do not meet it still work, though they have more runs to
// search, and visits need no ids.
func (s *Store) mergeIDs() error {
	s.mu.Lock()
	damaged := s.unmergeable
	s.mu.Unlock()
	for more := !damaged; more && !s.stopping(); {
		var err error
		if more, err = s.ids.Step(); errors.Is(err, ErrCorrupt) {
			s.mu.Lock()
			s.unmergeable = true
			s.stats.Damage = errors.Join(s.stats.Damage, err)
			s.keepDamage(err)
			s.mu.Unlock()
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}
