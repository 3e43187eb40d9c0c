package archive

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// asked is what a request asked of a URL, besides its content: another method than GET, or a part.
// The zero asked is a plain GET.
//
// It is part of a version's identity. The answer to a HEAD has no body, the answer to a POST is
// another document, and a part is not the page: none of them may follow the page as its next
// version. So the key of such a version has it after that of the URL, and the versions that answer
// plain GETs have keys of their own.
type asked struct{ method, part string }

// Bounds of what is kept in a key, in bytes. Real values are far shorter.
const maxMethod, maxPart = 32, 128

// askedMark separates the key of a URL from what was asked of it. It sorts such versions after
// those of the URL, and before those of any other: no URL contains it, except for the hashed end of
// a long one, which extends to the NUL.
const askedMark = "\x01"

// askedOf returns what a request asked, from the request, which may be missing, and from the status
// and the Content-Range of the response. A range counts only if the response is about it: servers
// may ignore ranges, and then send the page.
func askedOf(request []byte, status int, contentRange string) (q asked) {
	request = request[:max(headLen(request), 0)]
	method, _, _ := bytes.Cut(request, []byte(" "))
	if name := string(method[:min(len(method), maxMethod)]); name != http.MethodGet {
		q.method = keyText(name)
	}
	if status != http.StatusPartialContent && status != http.StatusRequestedRangeNotSatisfiable {
		return q
	}
	q.part = (&warc.HTTP{Head: request}).Get("Range")
	if q.part == "" && len(request) > 0 {
		q.part = Unasked
	}
	if q.part == "" {
		part, _, _ := strings.Cut(contentRange, "/")
		q.part = strings.Replace(part, " ", "=", 1)
	}
	q.part = keyText(cmp.Or(q.part, "unknown"))
	q.part = q.part[:min(len(q.part), maxPart)]
	return q
}

// keyText drops what separates the parts of a key.
func keyText(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return -1
		}
		return r
	}, s)
}

// keyOf returns the key of the versions of a URL that answer such requests. It returns the URL as
// long if the key does not determine it.
func keyOf(url string, q asked) (key, long string) {
	key, long = urlkey.Of(url)
	return q.key(key), long
}

// key returns the key of the versions that answer such requests, from that of the URL.
func (q asked) key(url string) string {
	if q == (asked{}) {
		return url
	}
	return url + askedMark + q.method + " " + q.part
}

// cutAsked returns the key of the URL, and what was asked of it.
func cutAsked(key string) (url string, q asked) {
	at := strings.LastIndex(key, askedMark)
	if at < 0 {
		return key, q
	}
	method, part, found := strings.Cut(key[at+1:], " ")
	if !found {
		return key, q // the hash of a long URL, which has no space
	}
	return key[:at], asked{method, part}
}

// isPlain reports whether the versions of a key answer plain GETs.
func isPlain(key string) bool {
	_, q := cutAsked(key)
	return q == asked{}
}

// Answers returns all versions of a URL that answer requests with a method and a range, from the
// first to the last. The range is the value of the field Range, such as "bytes=0-99", and "" for a
// whole answer. The answers to plain GETs are those of [Archive.Versions].
func (a *Archive) Answers(url, method, byteRange string) ([]Version, error) {
	q := asked{part: keyText(byteRange)}
	q.part = q.part[:min(len(q.part), maxPart)]
	if method = method[:min(len(method), maxMethod)]; method != http.MethodGet {
		q.method = keyText(method)
	}
	key, _ := keyOf(url, q)
	return a.versionsOf(key)
}
