package stage

import "sync"

// Underway is a set of URLs, or of hosts. It knows the pages that are being visited before they are
// due. The zero underway is empty. Its methods are safe for concurrent use.
type Underway struct {
	mu    sync.Mutex
	pages map[string]struct{}
}

// Begin reports whether the page is not under way yet, and notes that it is.
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

// Has reports whether the page is under way.
func (u *Underway) Has(url string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, under := u.pages[url]
	return under
}

// End notes that a page is no longer under way.
func (u *Underway) End(url string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pages, url)
}

// Wake wakes who waits for it, or who will look next.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
