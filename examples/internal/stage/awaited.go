package stage

import "time"

// Await counts a page of a host in the store, if it waits.
func (b *HostTable) Await(host string, s State) { b.await(host, s, 1) }

// Arrived says that a page was handed out in the state that was passed to Await.
func (b *HostTable) Arrived(host string, s State) { b.await(host, s, -1) }

func (b *HostTable) await(host string, s State, pages int32) {
	if !s.Waits() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entry(host); s.Postponed {
		e.postponed += pages
	} else {
		e.unvisited += pages
	}
}

// Awaits reports whether a page waits whose host can be visited within Wait. Pages of a full host
// count: each gets its fate. Such hosts are common, so a walk over all of them is rare.
func (b *HostTable) Awaits(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	soon := now.Add(b.Wait).UnixMilli()
	worth := func(e *hostEntry) bool {
		return e.blocked <= soon && (e.postponed > 0 || e.unvisited > 0)
	}
	if b.awaited != nil && worth(b.awaited) {
		return true
	}
	for _, e := range b.hosts {
		if worth(e) {
			b.awaited = e
			return true
		}
	}
	return false
}
