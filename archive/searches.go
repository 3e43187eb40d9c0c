package archive

import "math"

// searches remember searches for bodies that found nothing, by URL. A later one for the same may stop where
// such a search started. So versions whose bodies are missing, such as those of a deduplicated crawl
// without its first part, cost no search of the whole history of their URL for each. It is not safe for
// concurrent use.
type searches map[string]map[sought]int64 // the search went back from this time

// sought is what a search was for.
type sought struct {
	how    int
	digest digest
}

// How a body is sought.
const (
	byReference = iota
	byURL
	anyBody // nothing had a body
)

// Limits of the numbers of URLs, and of searches for each.
const maxSearched, maxSought = 1000, 100

// lastBody returns the last entry of a URL before at that has a body and fits.
func (a *Archive) lastBody(s searches, url string, at entry, w sought, fits func(*entry) bool) (
	content entry, found bool, err error) {
	seen, bare := s.before(url, w, at.time)
	err = a.index.back(url, at, func(before *entry) bool {
		if before.time <= seen {
			return false
		}
		some := before.body().length > 0
		bare = bare && !some
		content, found = *before, some && fits(before)
		return !found
	})
	if err == nil && !found {
		from := at.time
		if w.how == byURL { // others of that instant may be behind it
			from--
		}
		s.note(url, w, from, bare)
	}
	return content, found, err
}

// before returns where a search that goes back from a time may stop, and whether there is no body at all
// before that.
func (s searches) before(url string, w sought, at int64) (seen int64, bare bool) {
	last := func(w sought) int64 {
		if from, known := s[url][w]; known && from <= at {
			return from
		}
		return math.MinInt64
	}
	none := last(sought{how: anyBody})
	seen = max(last(w), none)
	return seen, none == seen
}

// note remembers a search that found nothing.
func (s searches) note(url string, w sought, from int64, bare bool) {
	if len(s) >= maxSearched {
		clear(s)
	}
	if len(s[url]) >= maxSought || s[url] == nil {
		s[url] = map[sought]int64{}
	}
	s[url][w] = from
	if bare {
		s[url][sought{how: anyBody}] = from
	}
}

// added forgets the searches that would find a new entry.
func (s searches) added(url string, e *entry) {
	if e.body().length == 0 {
		return
	}
	for w, from := range s[url] {
		if from >= e.time {
			delete(s[url], w)
		}
	}
}
