package stage

import "sync"

// Underway is a set of URLs, or of hosts. It has the pages that are being visited before they are
// due. The zero Underway is empty. Its methods are safe for concurrent use.
type Underway struct {
	mu    sync.Mutex
	pages map[string]struct{}
}

// Begin adds a page, and reports whether it was not in the set yet.
func (u *Underway) Begin(url string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, begun := u.pages[url]; begun {
		return false
	}
	if u.pages == nil {
		u.pages = map[string]struct{}{}
	}
	u.pages[url] = struct{}{}
	return true
}

// Has reports whether the page is in the set.
func (u *Underway) Has(url string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, under := u.pages[url]
	return under
}

// End removes a page.
func (u *Underway) End(url string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pages, url)
}

// Wake wakes a waiter of c, or the next one.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
