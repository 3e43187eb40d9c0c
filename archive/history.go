package archive

// history visits the entries of URLs in order, and adds what some lack: the address of the content
// of an unchanged version, and the time of the last change. Its zero value is ready to use, by one
// goroutine at a time.
type history struct {
	url     string
	changed []entry           // of the URL
	last    map[digest]*entry // last of changed by digest, and of all by ""; nil until needed
	missing searches          // for references
}

func (h *history) searched() searches {
	if h.missing == nil {
		h.missing = searches{}
	}
	return h.missing
}

// complete completes the next entry.
func (h *history) complete(url string, e *entry) {
	if url != h.url {
		h.url, h.changed, h.last = url, h.changed[:0], nil
	}
	switch {
	case e.kind == Changed:
		h.changed = append(h.changed, *e)
		if h.last != nil {
			h.see(&h.changed[len(h.changed)-1])
		}
		return
	case len(h.changed) == 0:
		return
	case !e.hasPrior:
		e.prior, e.hasPrior = h.changed[len(h.changed)-1].time, true
	}
	if e.kind == Failed || e.content.length > 0 {
		return
	}
	if h.last == nil {
		h.last = map[digest]*entry{}
		for i := range h.changed {
			h.see(&h.changed[i])
		}
	}
	if before, found := h.last[e.digest]; found {
		e.repeat(before)
	}
}

func (h *history) see(e *entry) {
	copied := *e // because the list may be reallocated
	h.last[e.digest], h.last[""] = &copied, &copied
}
