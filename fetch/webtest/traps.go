package webtest

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const trapDir = "/trap/"

// traps has each trap: the first segment of its path below trapDir, the rest of the paths there to which
// "/" links, and what answers.
var traps = []struct {
	bit   Trap
	name  string
	links []string
	serve func(x *exchange, rest string) int
}{
	{TrapCalendar, "calendar", []string{"/2026/1"}, (*exchange).calendar},
	{TrapSession, "session", []string{"/"}, (*exchange).session},
	{TrapDuplicate, "dup", []string{"/a", "/A/b/?print=1", "/a;v=2"}, (*exchange).duplicate},
	{TrapChain, "chain", []string{"/20"}, (*exchange).chain},
	{TrapLoop, "loop", []string{"/a"}, (*exchange).loop},
	{TrapAway, "away", []string{"", "/private"}, (*exchange).away},
	{TrapNoLocation, "noloc", []string{""}, (*exchange).noLocation},
	{TrapHuge, "huge", []string{""}, (*exchange).huge},
	{TrapEndless, "endless", []string{""}, (*exchange).endless},
	{TrapDrip, "drip", []string{""}, (*exchange).drip},
	{TrapBomb, "bomb", []string{""}, (*exchange).bomb},
	{TrapShort, "short", []string{""}, (*exchange).short},
	{TrapGarbage, "garbage", []string{""}, (*exchange).garbage},
	{TrapHeaders, "headers", []string{""}, (*exchange).endlessHeaders},
	{TrapHang, "hang", []string{""}, func(x *exchange, _ string) int { return x.hang() }},
	{TrapTooMany, "429", []string{""}, (*exchange).tooMany},
	{TrapUnavailable, "503", []string{""}, (*exchange).unavailable},
	{TrapAddress, "address", []string{""}, (*exchange).address},
	{TrapBroken, "broken", numbers(len(brokenPages)), (*exchange).broken},
	{TrapCharset, "charset", numbers(len(charsetPages)), (*exchange).charset},
}

// numbers returns the paths of n cases.
func numbers(n int) (paths []string) {
	for i := range n {
		paths = append(paths, "/"+strconv.Itoa(i))
	}
	return paths
}

// trap answers 404 for a disabled trap, exactly as for a path that never existed.
func (x *exchange) trap(path string) int {
	name, rest, _ := strings.Cut(path, "/")
	for _, t := range traps {
		if t.name == name && x.web.hosts[x.host].traits.Traps&t.bit != 0 {
			return t.serve(x, rest)
		}
	}
	return x.fail(http.StatusNotFound)
}

// calendar shows a month with a link to the next; the years never end.
func (x *exchange) calendar(rest string) int {
	y, m, _ := strings.Cut(rest, "/")
	year, err := strconv.Atoi(y)
	month, err2 := strconv.Atoi(m)
	if err != nil || err2 != nil || month < 1 || month > 12 || year < 0 || year > 1e9 {
		return x.fail(http.StatusNotFound)
	}
	next := strconv.Itoa(year+month/12) + "/" + strconv.Itoa(month%12+1)
	title := time.Month(month).String() + " " + y
	return x.sendSmall(title, "<a href=\""+trapDir+"calendar/"+next+"\">next month</a>")
}

// session puts a new session id into the links of every response, derived from the requested URL:
// the same three pages under new URLs forever.
func (x *exchange) session(string) int {
	sid := strconv.FormatUint(mix(hashString(x.target)), 36)
	var b strings.Builder
	for _, name := range []string{"", "cart", "help"} {
		b.WriteString("<a href=\"" + trapDir + "session/" + name + "?sid=" + sid + "\">go</a>\n")
	}
	return x.sendSmall("shop", b.String())
}

// duplicate ignores the request, so that every URL has exactly the same bytes.
func (x *exchange) duplicate(string) int {
	return x.sendSmall("the same everywhere", "<a href=\""+trapDir+"dup/b\">again</a>")
}

// sendSmall answers with a page around a piece of HTML.
func (x *exchange) sendSmall(title, body string) int {
	return x.send(typeHTML, []byte("<!doctype html><title>"+title+"</title>\n"+body+"\n"))
}

// chain counts down to "/".
func (x *exchange) chain(rest string) int {
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil || n < 1 || n > 1000:
		return x.fail(http.StatusNotFound)
	case n == 1:
		return x.redirect(http.StatusFound, "/")
	}
	return x.redirect(http.StatusFound, trapDir+"chain/"+strconv.Itoa(n-1))
}

// loop has two URLs, since some clients only compare a redirect with its own URL.
func (x *exchange) loop(rest string) int {
	if rest == "a" {
		return x.redirect(http.StatusFound, trapDir+"loop/b")
	}
	return x.redirect(http.StatusFound, trapDir+"loop/a")
}

func (x *exchange) away(rest string) int {
	to := x.web.nextHost(x.host).URL()
	if rest == "private" {
		to += privateDir[1:] + "away.html"
	}
	return x.redirect(http.StatusFound, to)
}

// address leads to addresses that no crawler of the public web has any business with. They are
// private ones of RFC 1918 that few networks use, should a crawler really try.
func (x *exchange) address(rest string) int {
	if rest == "redirect" {
		return x.redirect(http.StatusFound, "http://10.255.255.1/private-address")
	}
	return x.sendSmall("addresses", `<a href="http://192.168.255.254/private-address">a router</a> `+
		`<a href="`+trapDir+`address/redirect">another</a>`)
}

func (x *exchange) noLocation(string) int { return x.fail(http.StatusFound) }

// retrySeconds is the Retry-After of the two rejecting traps.
const retrySeconds = 3600

func (x *exchange) tooMany(string) int {
	return x.retryLater(Throttle{RetryAfter: retrySeconds * time.Second})
}

// unavailable uses the other form of Retry-After, which clients forget more often.
func (x *exchange) unavailable(string) int {
	at := time.Now().Add(retrySeconds * time.Second)
	x.w.Header()["Retry-After"] = []string{at.UTC().Format(http.TimeFormat)}
	return x.fail(http.StatusServiceUnavailable)
}

// numberedPage picks one of the cases of a trap.
func numberedPage[T any](cases []T, rest string) (t T, ok bool) {
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 || n >= len(cases) {
		return t, false
	}
	return cases[n], true
}
