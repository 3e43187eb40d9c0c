package scheduler

// A task is the engine's part of a task. The item is in the Scheduler, under the same number, so
// that only items can contain pointers and tasks are densely packed.
type task struct {
	next     uint32 // task of the same host, or the first one if this is the last
	priority uint8
}

// A deferral is a task whose NotBefore lies ahead.
type deferral struct{ task, host uint32 }

const priorities = 8

// admits reports whether the bounds of a host, its address and its group allow another task.
func (e *engine) admits(host uint32) bool {
	h := e.host(host)
	for _, i := range [...]uint32{host, h.addr, h.group} {
		if i != 0 && e.at(i).tasks >= e.maxTasks[e.at(i).kind] {
			return false
		}
	}
	return true
}

// countTasks adds to the number of queued tasks of a host, its address and its group.
func (e *engine) countTasks(host uint32, more int32) {
	h := e.host(host)
	for _, i := range [...]uint32{host, h.addr, h.group} {
		if i != 0 {
			e.at(i).tasks += uint32(more)
		}
	}
}

// add queues a new task of a host, and returns its number.
func (e *engine) add(host uint32, priority uint8, notBefore int64) (t uint32) {
	t = e.tasks.alloc()
	e.tasks.at(t).priority = priority
	e.queue(host, t, notBefore)
	return t
}

// queue queues a task. At notBefore it goes behind those of the same priority.
func (e *engine) queue(host, t uint32, notBefore int64) {
	e.countTasks(host, 1)
	if notBefore <= e.now {
		e.enqueue(host, t)
		return
	}
	d := e.deferrals.alloc()
	*e.deferrals.at(d) = deferral{t, host}
	e.deferredTimers[0].alloc() // same number: the slabs are used in step
	e.deferredTimers.at(d).due = notBefore
	e.deferred.insert(d)
}

// taskDue queues a task whose time has come.
func (e *engine) taskDue(d uint32) {
	later := *e.deferrals.at(d)
	e.deferrals.release(d)
	e.deferredTimers[0].release(d)
	e.enqueue(later.host, later.task)
}

// firstTask returns the first of the tasks of a host that may be leased. It requires that there is one.
func (e *engine) firstTask(h *hostLimiter) (t uint32) { return e.tasks.at(h.last).next }

// enqueue puts a task behind those of the same priority.
func (e *engine) enqueue(host, t uint32) {
	h, task := e.host(host), e.tasks.at(t)
	if h.last == 0 {
		h.last, task.next = t, t
		e.settle(host)
		return
	}
	behind, isFirst := h.last, false // the first task follows the last
	if e.isRanked(h) || e.tasks.at(behind).priority != task.priority {
		behind, isFirst = e.rank(host, t)
	}
	previous := e.tasks.at(behind)
	task.next, previous.next = previous.next, t
	switch {
	case isFirst:
		e.settle(host)
	case behind == h.last:
		h.last = t
	}
}

func (e *engine) isRanked(h *hostLimiter) bool {
	return h.extra != 0 && e.extras.at(h.extra).ranked
}

// rank makes a task the last of its priority and returns the task to put it behind, and whether it
// comes before all others. The number of steps is bounded by the number of priorities.
func (e *engine) rank(host, t uint32) (behind uint32, isFirst bool) {
	last, x, priority := e.host(host).last, e.extraOf(host), e.tasks.at(t).priority
	if !x.ranked {
		x.ranked, x.tails = true, [priorities]uint32{}
		x.tails[e.tasks.at(last).priority] = last
	}
	behind, isFirst = last, true
	for _, tail := range x.tails[priority:] {
		if tail != 0 {
			behind, isFirst = tail, false
			break
		}
	}
	x.tails[priority] = t
	return behind, isFirst
}

// dequeue removes the first task from the queue of a host.
func (e *engine) dequeue(host uint32) (t uint32) {
	h := e.host(host)
	last := e.tasks.at(h.last)
	t = last.next
	task := e.tasks.at(t)
	if last.next = task.next; t == h.last {
		h.last = 0
	}
	task.next = 0
	if e.isRanked(h) {
		x := e.extras.at(h.extra)
		if tail := &x.tails[task.priority]; *tail == t {
			*tail = 0
		}
		if h.last == 0 {
			x.ranked = false
			e.updateDue(host)
		}
	}
	return t
}

// withdraw empties the queue of a host, and calls each with every task.
func (e *engine) withdraw(host uint32, each func(t uint32)) {
	for e.host(host).last != 0 {
		t := e.dequeue(host)
		e.countTasks(host, -1)
		each(t)
		e.host(host).used = e.stamp()
	}
	e.settle(host)
	e.sweep()
}
