package pagerank

import (
	"strconv"
	"strings"
)

// URLs is a [Frontier] for URLs instead of ids, with its own table of ids. A URL takes 40 to 60
// bytes in the table, about half of its text; a Go map and a slice take 150. Adding or finding one
// takes about a microsecond. Canonicalize URLs first: they are compared byte by byte. URLs of more
// than 8 KiB, and new ones when Options.Limit is reached, are ignored and counted in Stats.Dropped.
//
// It is not safe for concurrent use.
type URLs struct {
	frontier *Frontier
	urls     names
	hosts    names
	links    []uint32 // scratch
	dropped  int
}

// NewURLs returns an empty URLs. Options.Host is ignored: the host is that of the URL.
// Options.Score may call URL with its id.
func NewURLs(opts Options) *URLs {
	u := &URLs{}
	opts.Host = func(id uint32) uint32 {
		if uint64(id) >= uint64(len(u.frontier.nodes)) { // an id without a URL
			return 0
		}
		return u.frontier.nodes[id].host // which u.id has set
	}
	u.frontier = New(opts)
	return u
}

// Discover queues a URL: a seed, one that could not be fetched, or one whose Options.Score has
// changed. It returns false if the URL is not in the queue then: it was fetched, or there is no room
// for it.
func (u *URLs) Discover(url string) (ok bool) {
	id, ok := u.id(url)
	if ok {
		u.frontier.Discover(id)
	}
	return ok && u.frontier.nodes[id].state&(queued|aside) != 0
}

// Fetched reports that a page was fetched and which URLs it links to. See [Frontier.Fetched].
func (u *URLs) Fetched(url string, links []string) {
	page, ok := u.id(url)
	if !ok {
		return
	}
	u.links = u.links[:0]
	for _, link := range links {
		if id, ok := u.id(link); ok {
			u.links = append(u.links, id)
		}
	}
	u.frontier.Fetched(page, u.links)
}

// Next removes the URL with the highest key from the queue; ok is false if the queue is empty.
func (u *URLs) Next() (url string, ok bool) {
	id, ok := u.frontier.Next()
	return u.name(id, ok)
}

// NextReady is Next for a polite crawler: it returns only URLs of hosts that are ready. A host that
// is not ready is skipped until Release. It is in lower case, without a port. See [Frontier.NextReady].
func (u *URLs) NextReady(ready func(host string) bool) (url string, ok bool) {
	id, ok := u.frontier.NextReady(func(host uint32) bool { return ready(string(u.hosts.bytes(host))) })
	return u.name(id, ok)
}

// Release reports that a host may be visited again, as NextReady has named it. See [Frontier.Release].
func (u *URLs) Release(host string) {
	if id, ok := u.hosts.lookup(host); ok {
		u.frontier.Release(id)
	}
}

// Drop removes a URL from the queue: it will never be fetched. See [Frontier.Drop].
func (u *URLs) Drop(url string) {
	if id, ok := u.id(url); ok {
		u.frontier.Drop(id)
	}
}

// Forget erases the URLs for which it is asked, for those whose pages must not be named any longer. They
// leave the queue, and are unknown from then on. Their ids stay, and with them what their links
// gave to other pages; URL returns "" for these, and no host counts them among its pages. Memory and files
// hold nothing of the text, but for the names of hosts in memory. It takes about a microsecond for each URL
// that is known. While it asks, nothing has changed yet; which may call what changes nothing.
func (u *URLs) Forget(which func(url string) bool) (forgotten int) {
	var gone []uint32
	id := uint32(0)
	u.urls.all(func(url []byte) bool {
		if name := string(url); !isForgotten(name) && which(name) {
			gone = append(gone, id)
		}
		id++
		return true
	})
	if len(gone) == 0 {
		return 0
	}
	for _, id := range gone {
		u.frontier.Drop(id) // may call Options.Score for others, which may ask for any URL
	}
	u.erase(gone)
	return len(gone)
}

// erase replaces the text of ascending ids, and takes them from their hosts, as reading a file does.
func (u *URLs) erase(ids []uint32) {
	nobody, _ := u.hosts.add(hostOf(forgottenMark))
	for _, id := range ids {
		u.frontier.nodes[id].host = nobody
	}
	u.frontier.recount()
	var left names
	u.urls.all(func(url []byte) bool {
		name := string(url)
		if len(ids) > 0 && ids[0] == uint32(left.n) {
			name, ids = forgotten(ids[0]), ids[1:]
		}
		left.add(name)
		return true
	})
	u.urls = left
}

// A forgotten URL is replaced by a text that no URL is: this byte, and its id.
const forgottenMark = "\x00"

func forgotten(id uint32) string { return forgottenMark + strconv.FormatUint(uint64(id), 10) }

func isForgotten(url string) bool { return strings.HasPrefix(url, forgottenMark) }

// Stats returns the figures of the Frontier. Bytes includes the table, and Dropped is set.
func (u *URLs) Stats() Stats {
	s := u.frontier.Stats()
	s.Bytes += u.urls.size() + u.hosts.size() + 4*cap(u.links)
	s.Dropped = u.dropped
	return s
}

// Frontier returns the underlying Frontier, for scores and views: Score, Top, Refine.
// Report fetches only to the URLs.
func (u *URLs) Frontier() *Frontier { return u.frontier }

// ID returns the id of a URL in the Frontier. Ids are dense, in order of discovery.
func (u *URLs) ID(url string) (id uint32, ok bool) { return u.urls.lookup(url) }

// URL returns the URL of an id, and "" if there is none.
func (u *URLs) URL(id uint32) string {
	url, _ := u.name(id, int64(id) < int64(u.urls.n))
	if isForgotten(url) {
		return ""
	}
	return url
}

func (u *URLs) name(id uint32, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	return string(u.urls.bytes(id)), true
}

// id returns the id of a URL. A new URL gets an id if there is room.
func (u *URLs) id(url string) (id uint32, ok bool) {
	if isForgotten(url) {
		u.dropped++
		return 0, false
	}
	if len(url) > longestURL || u.urls.n >= u.frontier.opts.Limit {
		if id, ok = u.urls.lookup(url); !ok {
			u.dropped++
		}
		return id, ok
	}
	return u.assign(url), true
}

// assign returns the id of a URL for which there is room.
func (u *URLs) assign(url string) (id uint32) {
	id, added := u.urls.add(url)
	if added {
		host, _ := u.hosts.add(hostOf(url))
		u.frontier.cover(uint64(id) + 1)
		u.frontier.nodes[id].host = host
	}
	return id
}

// hostOf returns the host of a URL in lower case, without user and port; "" if it has none.
func hostOf(url string) string {
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		return ""
	}
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, ']') {
		rest = rest[:colon]
	}
	return strings.ToLower(rest)
}
