package satstore

import "sync"

// Tasks are done in the background: nobody waits for them, unless memory is full or a slot begins
// whose records are still being moved.
type tasks struct {
	flusher      task // writes buffers
	checkpointer task // lets a new log begin when the old one is long
	splitter     task // moves records that come near
	merger       task // merges runs of the index of ids

	started bool
	inline  bool
	asked   []*task // if inline
	stop    chan struct{}
	stopped sync.WaitGroup
}

// A task runs whenever somebody has asked for it.
type task struct {
	ask chan struct{}
	run func() error
}

func (k *tasks) make(s *Store) {
	k.inline, k.stop = s.o.test.inline, make(chan struct{})
	for _, t := range []struct {
		*task
		run func() error
	}{
		{&k.flusher, s.flush}, {&k.checkpointer, s.checkpointIfLong}, {&k.splitter, s.moveSplit},
		{&k.merger, s.mergeIDs},
	} {
		*t.task = task{make(chan struct{}, 1), t.run}
	}
}

// all returns each task.
func (k *tasks) all() []*task {
	return []*task{&k.flusher, &k.checkpointer, &k.splitter, &k.merger}
}

// start lets tasks run.
func (s *Store) start() {
	for _, t := range s.all() {
		if !s.inline {
			s.stopped.Go(func() { s.loop(t) })
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	s.startCommit()
	s.askAll()
}

// startCommit lets the log be synced a while after each change, once there is one. It requires
// that s.mu is held.
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

// end waits for all tasks to end.
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
			s.do(t)
		}
	}
}

// do runs a task. Nobody waits for its error: the next change is told.
func (s *Store) do(t *task) {
	if err := t.run(); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			_ = s.fail(err)
		}
	}
}

// ask asks for a task. It requires that s.mu is held.
func (s *Store) ask(t *task) {
	select {
	case t.ask <- struct{}{}:
		if s.inline {
			s.asked = append(s.asked, t)
		}
	default:
	}
}

func (s *Store) askAll() {
	for _, t := range s.all() {
		s.ask(t)
	}
}

// work runs what was asked for, if nobody else does. It requires that no lock is held.
func (s *Store) work() {
	if !s.inline {
		return
	}
	for {
		s.mu.Lock()
		if len(s.asked) == 0 || s.refusal() != nil {
			s.mu.Unlock()
			return
		}
		t := s.asked[0]
		s.asked = s.asked[1:]
		<-t.ask
		s.mu.Unlock()
		s.do(t)
	}
}

// await waits until something has changed. It requires that s.mu is held, and lets go of it.
func (s *Store) await() {
	if s.inline {
		s.mu.Unlock()
		s.work()
		s.mu.Lock()
		return
	}
	s.changed.Wait()
}

// mergeIDs merges runs of the index of ids until nothing is left to merge. It takes none of the
// store's locks.
func (s *Store) mergeIDs() error {
	for {
		if more, err := s.ids.Step(s.stop); err != nil || !more {
			return err
		}
	}
}
