package scheduler

// A task is the engine's part of a task. The item is in the Scheduler, under the same number, so
// that only items can contain pointers and tasks are densely packed.
type task struct {
	next     uint32 // task of the same host; of a deferred task, the host
	priority uint8
}

const priorities = 8

// admits returns the kind of limiter whose queue is full for another task of a host, if any.
func (e *engine) admits(host uint32) (full kind, ok bool) {
	p := e.at(host)
	for _, i := range [...]uint32{host, p.addr, p.group} {
		if i == 0 {
			continue
		}
		if p := e.at(i); p.tasks >= e.maxTasks[p.kind] {
			return p.kind, false
		}
	}
	return 0, true
}

// countTasks adds to the number of queued tasks of a host, its address and its group.
func (e *engine) countTasks(host uint32, more int32) {
	p := e.at(host)
	for _, i := range [...]uint32{host, p.addr, p.group} {
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
	e.touch(host)
	e.countTasks(host, 1)
	if notBefore <= e.now {
		e.enqueue(host, t)
		return
	}
	d := e.deferredTimers.alloc()
	e.deferredTimers.at(d).due = notBefore
	*e.deferredTasks.at(e.deferredTasks.alloc()) = t // same number: the slabs are used in step
	e.tasks.at(t).next = host
	e.deferred.insert(d)
}

// taskDue queues a task whose time has come.
func (e *engine) taskDue(d uint32) {
	t := *e.deferredTasks.at(d)
	e.deferredTimers.release(d)
	e.deferredTasks.release(d)
	host := e.tasks.at(t).next
	e.tasks.at(t).next = 0
	e.enqueue(host, t)
}

// enqueue puts a task behind those of the same priority.
func (e *engine) enqueue(host, t uint32) {
	p, task := e.at(host), e.tasks.at(t)
	if p.head == 0 {
		p.head, p.tail = t, t
		e.replaceHost(host)
		return
	}
	behind := p.tail
	if e.isRanked(p) || e.tasks.at(p.tail).priority != task.priority {
		behind = e.rank(host, t)
	}
	if behind == 0 {
		task.next, p.head = p.head, t
		e.replaceHost(host)
		return
	}
	last := e.tasks.at(behind)
	task.next, last.next = last.next, t
	if behind == p.tail {
		p.tail = t
	}
}

func (e *engine) isRanked(p *limiter) bool {
	return p.extra != 0 && e.extras.at(p.extra).ranked
}

// rank makes a task the last of its priority and returns the task to put it behind. The number of
// steps is bounded by the number of priorities.
func (e *engine) rank(host, t uint32) (behind uint32) {
	p, x, priority := e.at(host), e.extraOf(host), e.tasks.at(t).priority
	if !x.ranked {
		x.ranked, x.tails = true, [priorities]uint32{}
		x.tails[e.tasks.at(p.tail).priority] = p.tail
	}
	for _, tail := range x.tails[priority:] {
		if tail != 0 {
			behind = tail
			break
		}
	}
	x.tails[priority] = t
	return behind
}

// dequeue removes the first task from the queue of a host.
func (e *engine) dequeue(host uint32) (t uint32) {
	p := e.at(host)
	t = p.head
	task := e.tasks.at(t)
	p.head, task.next = task.next, 0
	if p.head == 0 {
		p.tail = e.stamp()
	}
	if e.isRanked(p) {
		x := e.extras.at(p.extra)
		if tail := &x.tails[task.priority]; *tail == t {
			*tail = 0
		}
		if p.head == 0 {
			x.ranked = false
			e.updateDue(host)
		}
	}
	return t
}

// withdraw empties the queue of a host, and calls each with every task.
func (e *engine) withdraw(host uint32, each func(t uint32)) {
	if e.at(host).head == 0 {
		return
	}
	e.unplace(host)
	for e.at(host).head != 0 {
		t := e.dequeue(host)
		e.countTasks(host, -1)
		each(t)
	}
	e.placeHost(host)
}
