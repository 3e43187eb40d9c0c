package webtest

import (
	"bytes"
	"math"
	"strconv"
)

// privateDir is disallowed by every robots.txt that has rules.
const privateDir = "/private/"

// appendPath appends the path of a page, with its query. Its form is drawn per page, so that a
// host has all of them. No word holds a digit: the last run of digits is the page's number, and
// findPage counts on that.
func (w *Web) appendPath(b []byte, host, page int) []byte {
	if page == 0 {
		return append(b, '/')
	}
	r := w.stream(saltPath, host, page)
	number := func(prefix, suffix string) []byte {
		b = append(b, prefix...)
		return append(strconv.AppendInt(b, int64(page), 10), suffix...)
	}
	word := func() string { return w.prose.word(&r) }
	switch form := r.below(16); {
	case form < 6:
		b = append(append(b, '/'), word()...)
		b = append(append(b, '/'), word()...)
		return number("/", ".html")
	case form < 9:
		return number("/p", ".html")
	case form < 11:
		b = append(append(b, '/'), word()...)
		return number("/", "/")
	case form < 13:
		return number("/item?id=", "")
	case form < 14:
		return number(privateDir, ".html")
	case form < 15:
		b = number("/q", ".html?a=")
		b = append(append(b, word()...), "&b="...)
		return append(b, word()...)
	default:
		b = append(append(b, "/~"...), word()...)
		return number("/%E2%82%AC-", ".html")
	}
}

// findPage is the inverse of appendPath. Nothing is stored: it parses the number and checks whether
// that page really has this path.
func (w *Web) findPage(host int, target string) (page int, ok bool) {
	if target == "/" {
		return 0, true
	}
	page, ok = lastNumber(target)
	if !ok || page <= 0 || page >= w.hosts[host].pages {
		return 0, false
	}
	var room [96]byte
	return page, string(w.appendPath(room[:0], host, page)) == target
}

// lastNumber rejects impossible page numbers, so that a caller may use the result as an index.
func lastNumber(s string) (n int, ok bool) {
	end := len(s)
	for end > 0 && !isDigit(s[end-1]) {
		end--
	}
	start := end
	for start > 0 && isDigit(s[start-1]) {
		start--
	}
	n, err := strconv.Atoi(s[start:end])
	return n, err == nil && n <= math.MaxInt32
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// appendURL appends the absolute URL of a page.
func (w *Web) appendURL(b []byte, host, page int) []byte {
	b = append(append(b, w.scheme...), w.hosts[host].Name...)
	return w.appendPath(b, host, page)
}

// appendRelative appends target as a reference relative to the directory of the page from.
func appendRelative(b, from, target []byte) []byte {
	if q := bytes.IndexByte(from, '?'); q >= 0 {
		from = from[:q]
	}
	mark := len(b)
	for range bytes.Count(from, []byte("/")) - 1 {
		b = append(b, "../"...)
	}
	if b = append(b, target[1:]...); len(b) == mark {
		b = append(b, "./"...)
	}
	return b
}
