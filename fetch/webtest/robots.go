package webtest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const robotsPath = "/robots.txt"

// robotsCopy always has the rules, even if /robots.txt does not: redirects of robots.txt lead
// there.
const robotsCopy = "/robots-rules.txt"

// hugeRobots is the size of RobotsHuge, padded with irrelevant rules. Parsers must read 500 KiB
// (RFC 9309, section 2.5) and may stop there.
const hugeRobots = 2 << 20

// robots answers /robots.txt.
func (x *exchange) robots(rb Robots) int {
	switch rb.Mode {
	case RobotsMissing:
		return x.fail(http.StatusNotFound)
	case RobotsForbidden:
		return x.fail(http.StatusForbidden)
	case RobotsError:
		return x.fail(http.StatusInternalServerError)
	case RobotsRedirect:
		return x.redirect(http.StatusFound, robotsCopy)
	case RobotsRedirectHost:
		return x.redirect(http.StatusFound, x.web.scheme+x.web.nextHost(x.host).Name+robotsCopy)
	case RobotsLoop:
		return x.redirect(http.StatusFound, robotsPath)
	case RobotsTimeout:
		return x.hang()
	case RobotsEmpty:
		return x.send(typePlain, nil)
	case RobotsHuge:
		return x.rules(hugeRobots)
	default:
		return x.rules(0)
	}
}

// rules answers with the host's rules, padded to a size.
func (x *exchange) rules(size int) int {
	rb := x.web.hosts[x.host].traits.Robots
	b := []byte("User-agent: *\nDisallow: " + privateDir + "\n")
	for _, prefix := range rb.Disallow {
		b = append(b, "Disallow: "+prefix+"\n"...)
	}
	if rb.CrawlDelay > 0 {
		seconds := strconv.FormatFloat(rb.CrawlDelay.Seconds(), 'f', -1, 64)
		b = append(b, "Crawl-delay: "+seconds+"\n"...)
	}
	if host := &x.web.hosts[x.host]; host.traits.Sitemap.Orphans > 0 {
		b = append(b, "Sitemap: "+x.web.scheme+host.Name+sitemapPath+"\n"...)
	}
	for i := 0; len(b) < size; i++ {
		b = append(appendInt(append(b, "Disallow: /ghost/rule-"...), i), '\n')
	}
	return x.send(typePlain, b)
}

// hang holds the connection without sending a byte, until the client leaves or the web is closed.
func (x *exchange) hang() int {
	x.sleep(forever)
	return 0
}

const forever = time.Duration(1<<63 - 1)

// nextHost is the host that cross-host redirects lead to.
func (w *Web) nextHost(host int) *host { return &w.hosts[(host+1)%w.generated] }

// rulesFor returns the rules that hold for a host by RFC 9309. nil means that there are none, and that
// everything is allowed, or nothing.
func (w *Web) rulesFor(host int) (rules *Robots, everything bool) {
	rb := &w.hosts[host].traits.Robots
	switch {
	case w.hosts[host].traits.Refuse, rb.Mode == RobotsError, rb.Mode == RobotsTimeout:
		return nil, false
	case rb.Mode == RobotsMissing, rb.Mode == RobotsForbidden, rb.Mode == RobotsLoop, rb.Mode == RobotsEmpty:
		return nil, true
	case rb.Mode == RobotsRedirectHost:
		next := w.nextHost(host)
		if next.traits.Refuse {
			return nil, false
		}
		return &next.traits.Robots, false
	}
	return rb, false
}

// allowed says whether a crawler that follows RFC 9309 may fetch a path of the host.
func (w *Web) allowed(host int, path []byte) bool {
	rules, everything := w.rulesFor(host)
	if rules == nil {
		return everything
	}
	closed := strings.HasPrefix(string(path), privateDir)
	for _, prefix := range rules.Disallow {
		closed = closed || strings.HasPrefix(string(path), prefix)
	}
	return !closed
}

// Allows reports whether robots.txt allows a URL, as the constants of [RobotsMode] say; that of a host
// that refuses cannot be reached. It is true for hosts that are not generated, whose rules are their own.
func (w *Web) Allows(page string) bool {
	u, err := url.Parse(page)
	if err != nil {
		return true
	}
	host, ok := w.byName[u.Host]
	return !ok || host >= w.generated || w.allowed(host, []byte(u.RequestURI()))
}

// CrawlDelay returns the Crawl-delay of the rules that hold for a generated host; 0 if there is none.
func (w *Web) CrawlDelay(host string) time.Duration {
	i, ok := w.byName[host]
	if !ok || i >= w.generated {
		return 0
	}
	if rules, _ := w.rulesFor(i); rules != nil {
		return rules.CrawlDelay
	}
	return 0
}
