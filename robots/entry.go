package robots

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Entry is what a [Cache] knows of one host: what its robots.txt says, since when, and until when
// that is to be believed. It is a plain value, of which the cache has its own copy. It is not safe
// for concurrent use.
type Entry struct {
	URL     string    // of the robots.txt, as Locate returns it
	Status  int       // of the last answer, 0 if there was none
	File    *File     // the last one that was found; nil if none was, or if it is gone
	Fetched time.Time // when the host last said what holds: a file, a 304, or that there is none
	Expires time.Time // when to ask again

	// Since when, and how many times in a row, the file could not be had; zero if it could.
	FailedSince time.Time
	Failures    int

	Source       string // the URL that the File came from, after redirects
	ETag         string // of the File, for If-None-Match
	LastModified string // of the File, for If-Modified-Since
}

// Request is one request that has to be made to learn the rules of a host.
type Request struct {
	For          string // the robots.txt that it is about
	URL          string // what to ask for; another one than For after a redirect
	Hop          int    // how many redirects led there
	ETag         string // to be sent as If-None-Match, if not empty
	LastModified string // to be sent as If-Modified-Since, if not empty
}

// Response is the answer to a Request. The zero Response stands for none: the host could not be
// reached, or the body broke off.
type Response struct {
	Status int
	Header http.Header // of which Location, validators, ages and Retry-After are read
	Body   []byte      // decoded; of more than MaxSize bytes at least one more must be here
}

// maxHops is how many redirects are followed (RFC 9309, 2.3.1.2).
const maxHops = 5

// start returns the first request for what the entry is about.
func (e *Entry) start() Request { return e.request(e.URL, 0) }

// request adds the validators where they belong: to the URL that the copy came from.
func (e *Entry) request(url string, hop int) Request {
	req := Request{For: e.URL, URL: url, Hop: hop}
	if e.File != nil && url == e.Source {
		req.ETag, req.LastModified = e.ETag, e.LastModified
	}
	return req
}

// take brings the entry up to date with an answer, or returns the request that the answer leads
// to. The file is the parsed body, if the status says that there is one. It is all of RFC 9309,
// 2.3.1, and knows no clock but its argument.
func (e *Entry) take(
	req Request, resp Response, file *File, now time.Time, o *Options,
) (next Request, more bool) {
	target, redirected := redirectTarget(req, resp)
	switch status := resp.Status; {
	case redirected:
		return e.request(target, req.Hop+1), true
	case status == http.StatusNotModified:
		e.confirm(req, resp, now, o)
	case found(status), status >= 300 && status < 500 && status != http.StatusTooManyRequests:
		e.settle(file, req, resp, now, o)
	default:
		e.fail(resp, now, o)
	}
	return Request{}, false
}

// found reports whether the body of an answer is a robots.txt.
func found(status int) bool { return status >= 200 && status < 300 }

// redirectTarget returns where a redirect leads, if it may be followed.
func redirectTarget(req Request, resp Response) (target string, ok bool) {
	location := resp.Header.Get("Location")
	switch resp.Status {
	case 301, 302, 303, 307, 308:
	default:
		return "", false
	}
	base, err := url.Parse(req.URL)
	if err != nil || location == "" || req.Hop >= maxHops {
		return "", false
	}
	to, err := base.Parse(location)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return "", false
	}
	to.Fragment, to.RawFragment = "", ""
	target = to.String()
	return target, len(target) <= maxField
}

// maxField bounds what is kept of a header. An honest URL or validator is much shorter.
const maxField = 4 << 10

// validator returns a header field that is to be kept, apart from the header.
func validator(h http.Header, name string) string {
	value := h.Get(name)
	if len(value) > maxField {
		return ""
	}
	return strings.Clone(value)
}

// settle notes what the host said: a file, or with nil that it has none.
func (e *Entry) settle(file *File, req Request, resp Response, now time.Time, o *Options) {
	*e = Entry{URL: e.URL, Status: resp.Status, File: file, Fetched: now}
	e.Expires = now.Add(o.age(resp.Header, now))
	if file != nil {
		e.Source = req.URL
		e.ETag = validator(resp.Header, "ETag")
		e.LastModified = validator(resp.Header, "Last-Modified")
	}
}

// confirm notes that the copy still holds. A 304 to a request that named no copy is nonsense, from
// which nothing can be learned.
func (e *Entry) confirm(req Request, resp Response, now time.Time, o *Options) {
	if e.File == nil || req.ETag == "" && req.LastModified == "" {
		e.fail(resp, now, o)
		return
	}
	file, etag, modified := e.File, e.ETag, e.LastModified
	e.settle(file, req, resp, now, o)
	if e.ETag == "" {
		e.ETag = etag
	}
	if e.LastModified == "" {
		e.LastModified = modified
	}
}

// fail notes that the file could not be had, and leaves the copy as it is.
func (e *Entry) fail(resp Response, now time.Time, o *Options) {
	if e.Failures == 0 {
		e.FailedSince = now
	}
	e.Status = resp.Status
	e.Failures++
	wait := max(0, min(o.Retry, o.MaxRetry))
	for i := 1; i < min(e.Failures, 64); i++ {
		wait += min(wait, o.MaxRetry-wait) // doubles, but cannot overflow
	}
	e.Expires = now.Add(max(wait, retryAfter(resp.Header, now)))
}

// The files of hosts that have none, and of hosts of which nobody knows.
var (
	emptyFile  = &File{}
	deniedFile = &File{denyAll: true}
)

// file returns what holds at a time.
func (e *Entry) file(now time.Time, o *Options) *File {
	forbidden := e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	switch {
	case e.File != nil:
		return e.File
	case e.Failures == 0 && !(forbidden && o.DenyForbidden):
		return emptyFile
	case e.Failures > 0 && o.GiveUp > 0 && now.Sub(e.FailedSince) >= o.GiveUp:
		return emptyFile
	}
	return deniedFile
}

// age returns how long an answer may be believed: as long as it says, within the bounds of the
// options, and as long as possible if it says nothing.
func (o *Options) age(h http.Header, now time.Time) time.Duration {
	age, said := maxAge(h)
	if !said {
		age, said = untilDate(h.Get("Expires"), now)
	}
	if !said && h.Get("Expires") == "" {
		return o.MaxAge
	}
	return min(max(age, o.MinAge), o.MaxAge)
}

// maxAge reads Cache-Control (RFC 9111, 5.2.2). That a shared cache would have other rules does not
// matter here.
func maxAge(h http.Header) (age time.Duration, said bool) {
	for part := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			return 0, true
		case "max-age":
			if seconds, ok := parseSeconds(strings.Trim(value, `"`)); ok && !said {
				age, said = seconds, true
			}
		}
	}
	if old, ok := parseSeconds(h.Get("Age")); ok {
		age -= old
	}
	return age, said
}

// longest is the longest wait that a host may ask for.
const longest = 24 * time.Hour

// retryAfter reads the field of that name (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	wait, ok := parseSeconds(value)
	if !ok {
		wait, _ = untilDate(value, now)
	}
	return min(wait, longest)
}

func untilDate(value string, now time.Time) (wait time.Duration, ok bool) {
	date, err := http.ParseTime(value)
	return date.Sub(now), err == nil
}

// parseSeconds takes more than a year for a year, which is more than anybody here waits for.
func parseSeconds(s string) (d time.Duration, ok bool) {
	const most = 365 * 24 * 60 * 60
	s = strings.TrimSpace(s)
	if s == "" || leading(s, isDigit) != s {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > most {
		n = most
	}
	return time.Duration(n) * time.Second, true
}
