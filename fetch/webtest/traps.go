package webtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const trapDir = "/trap/"

// trapLinks has the links from "/" to each trap, below trapDir.
var trapLinks = slices.Concat([]trapLink{
	{TrapCalendar, "calendar/2026/1"},
	{TrapSession, "session/"},
	{TrapDuplicate, "dup/a"}, {TrapDuplicate, "dup/A/b/?print=1"}, {TrapDuplicate, "dup/a;v=2"},
	{TrapChain, "chain/20"},
	{TrapLoop, "loop/a"},
	{TrapAway, "away"}, {TrapAway, "away/private"},
	{TrapNoLocation, "noloc"},
	{TrapHuge, "huge"},
	{TrapEndless, "endless"},
	{TrapDrip, "drip"},
	{TrapBomb, "bomb"},
	{TrapShort, "short"},
	{TrapGarbage, "garbage"},
	{TrapHeaders, "headers"},
	{TrapHang, "hang"},
	{TrapTooMany, "429"},
	{TrapUnavailable, "503"},
	{TrapAddress, "address"},
}, numbered(TrapBroken, "broken/", len(brokenPages)),
	numbered(TrapCharset, "charset/", len(charsetPages)))

type trapLink struct {
	bit  Trap
	path string
}

func numbered(bit Trap, path string, n int) (links []trapLink) {
	for i := range n {
		links = append(links, trapLink{bit, path + strconv.Itoa(i)})
	}
	return links
}

// serveTrap answers each trap by the first segment of its path; rest is what follows.
var serveTrap = map[string]struct {
	bit   Trap
	serve func(x *exchange, rest string) int
}{
	"calendar": {TrapCalendar, (*exchange).calendar},
	"session":  {TrapSession, (*exchange).session},
	"dup":      {TrapDuplicate, (*exchange).duplicate},
	"chain":    {TrapChain, (*exchange).chain},
	"loop":     {TrapLoop, (*exchange).loop},
	"away":     {TrapAway, (*exchange).away},
	"noloc":    {TrapNoLocation, (*exchange).noLocation},
	"huge":     {TrapHuge, (*exchange).huge},
	"endless":  {TrapEndless, (*exchange).endless},
	"drip":     {TrapDrip, (*exchange).drip},
	"bomb":     {TrapBomb, (*exchange).bomb},
	"broken":   {TrapBroken, (*exchange).broken},
	"charset":  {TrapCharset, (*exchange).charset},
	"short":    {TrapShort, (*exchange).short},
	"garbage":  {TrapGarbage, (*exchange).garbage},
	"headers":  {TrapHeaders, (*exchange).endlessHeaders},
	"hang":     {TrapHang, func(x *exchange, _ string) int { return x.hang() }},
	"429":      {TrapTooMany, (*exchange).tooMany},
	"503":      {TrapUnavailable, (*exchange).unavailable},
	"address":  {TrapAddress, (*exchange).address},
}

// trap answers 404 for a disabled trap, exactly as for a path that never existed.
func (x *exchange) trap(path string) int {
	name, rest, _ := strings.Cut(path, "/")
	t, ok := serveTrap[name]
	if !ok || x.web.hosts[x.host].traits.Traps&t.bit == 0 {
		return x.fail(http.StatusNotFound)
	}
	return t.serve(x, rest)
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
