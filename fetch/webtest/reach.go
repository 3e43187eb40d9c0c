package webtest

import "slices"

// Reachable returns, sorted, the URLs of all pages that a crawler must fetch which starts at the
// seeds (the first host's "/" if there are none), follows every link and redirect, and obeys
// robots.txt as the constants of [RobotsMode] say. It omits traps and redirects, sitemaps with
// pages that only they list, and static hosts. Requests that a [Throttle] rejects count as repeated
// until they succeed, which they never do if it rejects every one.
func (w *Web) Reachable(seeds ...string) []string {
	if len(seeds) == 0 && w.generated > 0 {
		seeds = []string{w.hosts[0].URL()}
	}
	s := search{web: w, met: make(map[link]bool)}
	for _, seed := range seeds {
		if host, page, ok := w.locate(seed); ok {
			s.meet(link{host, page})
		}
	}
	var urls []string
	var links []link
	for len(s.queue) > 0 {
		l := s.queue[len(s.queue)-1]
		s.queue = s.queue[:len(s.queue)-1]
		urls = append(urls, string(w.appendURL(nil, l.host, l.page)))
		links = w.appendLinks(links[:0], l.host, l.page)
		if l.page == 0 && w.leadsAway(l.host) {
			links = append(links, link{w.nextHost(l.host).Index, 0})
		}
		for _, to := range links {
			s.meet(to)
		}
	}
	slices.Sort(urls)
	return urls
}

// leadsAway reports whether a host's front page leads to the next host through [TrapAway], the only
// trap that leads to pages which may have no other incoming links.
func (w *Web) leadsAway(host int) bool {
	return w.hosts[host].traits.Traps&TrapAway != 0 && w.allowed(host, []byte(trapDir+"away"))
}

// Links returns the URLs of the pages that a page links to; traps are left out.
func (w *Web) Links(page string) (urls []string) {
	host, number, ok := w.locate(page)
	if !ok {
		return nil
	}
	for _, to := range w.appendLinks(nil, host, number) {
		urls = append(urls, string(w.appendURL(nil, to.host, to.page)))
	}
	return urls
}

// search walks the graph of links without rendering pages.
type search struct {
	web   *Web
	met   map[link]bool
	queue []link
	path  []byte
}

// meet queues a page unless it was met before or may not be fetched.
func (s *search) meet(l link) {
	traits := &s.web.hosts[l.host].traits
	if s.met[l] || traits.Refuse || traits.Throttle.Every == 1 {
		return
	}
	s.met[l] = true
	s.path = s.web.appendPath(s.path[:0], l.host, l.page)
	if s.web.allowed(l.host, s.path) {
		s.queue = append(s.queue, l)
	}
}
