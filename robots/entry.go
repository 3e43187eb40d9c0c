package robots

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/httpfield"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// Entry is what a [Cache] knows about one host: what its robots.txt says, when it was fetched, and
// when it expires. It is a plain value that encoding/json and encoding/gob can encode, for
// [Cache.All] and [Cache.Restore].
type Entry struct {
	URL string // of the robots.txt, as robotstxt.Locate returns it

	// The last conclusive response.
	Fetched      time.Time `json:",omitzero"` // when it came: a file, a 304, or a status that means no file
	Source       string    `json:",omitzero"` // of the file, after redirects; empty without one
	Body         []byte    `json:",omitzero"` // of the file, as robotstxt.File.String returns it
	ETag         string    `json:",omitzero"` // of the file
	LastModified string    `json:",omitzero"` // of the file

	// The last attempt.
	Expires     time.Time `json:",omitzero"` // when to ask again
	Status      int       `json:",omitzero"` // of the response, 0 if there was none
	Failures    int       `json:",omitzero"` // consecutive failures to reach the host
	FailedSince time.Time `json:",omitzero"` // when the first of these was
	Reason      string    `json:",omitzero"` // of the last one, for people
}

// A state is an Entry whose body is parsed, together with the transitions that responses cause.
// Time is always an argument.
type state struct {
	Entry // its Body is nil
	file  *robotstxt.File
}

// maxHops is how many redirects are followed (RFC 9309, 2.3.1.2).
const maxHops = 5

// request sets the validators, but only for the URL that the copy came from.
func (s *state) request(url string, hop int) Request {
	req := Request{For: s.URL, URL: url, Hop: hop}
	if s.Source == url {
		req.ETag, req.LastModified = s.ETag, s.LastModified
	}
	return req
}

// take updates the state with a response and the file in it, or returns the request that a redirect
// leads to. It implements RFC 9309, 2.3.1.
func (s *state) take(
	req Request, resp Response, file *robotstxt.File, now time.Time, o *Options,
) (next Request, more bool) {
	target, redirected := redirectTarget(req, resp)
	switch {
	case redirected:
		return s.request(target, req.Hop+1), true
	case resp.Status == http.StatusNotModified:
		s.confirm(req, resp, now, o)
	case file == nil:
		s.fail(resp, now, o)
	case found(resp.Status):
		same := s.file != nil && s.file.String() == file.String()
		s.succeed(resp, now, o, same)
		s.prolong(file.Rules(o.Agent), o)
		s.Source, s.file = strings.Clone(req.URL), file
		s.ETag = validator(resp.Header, "ETag")
		s.LastModified = validator(resp.Header, "Last-Modified")
	default:
		s.succeed(resp, now, o, s.known() && s.file == nil && s.Failures == 0)
	}
	return Request{}, false
}

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
	if err != nil {
		return "", false
	}
	to.User, to.Fragment, to.RawFragment = nil, "", "" // which a client does not send, or should not
	target = asciiOnly(to.String())
	return target, isTarget(target)
}

// isTarget reports whether a redirect to a URL is followed.
func isTarget(target string) bool {
	to, err := url.Parse(target)
	return err == nil && to.Host != "" && (to.Scheme == "http" || to.Scheme == "https") &&
		len(target) <= maxTarget && asciiOnly(target) == target
}

// asciiOnly escapes the non-ASCII bytes that url.URL leaves in a query.
func asciiOnly(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] > ' ' && s[i] <= '~' {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}

// maxTarget bounds the length of the target of a redirect: what browsers used to accept as a URL.
const maxTarget = 2 << 10

// maxField bounds the length of a header field that is read. Real ones are much shorter, but
// net/http accepts 10 MiB, and they are read under the lock of the cache.
const maxField = 4 << 10

// shortFields returns the fields of a header that matter, but for those that are too long.
func shortFields(all http.Header) http.Header {
	h := http.Header{}
	for _, name := range [...]string{
		"Age", "Cache-Control", "Date", "Etag", "Expires", "Last-Modified", "Location", "Retry-After",
	} {
		size := len(all[name]) - 1 // a comma between each two
		for _, value := range all[name] {
			size += len(value)
		}
		if size <= maxField {
			h[name] = all[name]
		}
	}
	return h
}

// validator returns a header value to keep, as a copy. It drops values that JSON would alter.
func validator(h http.Header, name string) string {
	value := h.Get(name)
	if !canBeSent(value) {
		return ""
	}
	return strings.Clone(value)
}

// canBeSent reports whether a validator can be a header field of a request.
func canBeSent(value string) bool {
	isControl := func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
	return len(value) <= maxField && utf8.ValidString(value) && !strings.ContainsFunc(value, isControl)
}

// succeed records that the host gave a conclusive answer, and forgets the previous one. One that says
// the same as before is valid twice as long, within MaxTTL: where turns come less often than rules expire,
// each would be used up by robots.txt, and no page would ever be fetched.
func (s *state) succeed(resp Response, now time.Time, o *Options, same bool) {
	ttl := o.ttl(resp.Header, now)
	if before := s.Expires.Sub(s.Fetched); same && s.Failures == 0 && before < o.MaxTTL {
		ttl = max(ttl, min(2*before, o.MaxTTL))
	}
	*s = state{Entry: Entry{URL: s.URL, Status: resp.Status, Fetched: now}}
	s.Expires = now.Add(ttl)
}

// prolong lets rules outlive the Crawl-delay after them.
func (s *state) prolong(rules robotstxt.Rules, o *Options) {
	if delay, ok := rules.Delay(); ok {
		if turn := s.Fetched.Add(min(delay, longestWait) + o.MinTTL); turn.After(s.Expires) {
			s.Expires = turn
		}
	}
}

// confirm records that the copy is still valid. A 304 to a request that named no copy is nonsense. If
// it named another one, a newer one was restored meanwhile, of which it says nothing.
func (s *state) confirm(req Request, resp Response, now time.Time, o *Options) {
	named := req.URL == s.Source && req.ETag == s.ETag && req.LastModified == s.LastModified
	switch {
	case req.ETag == "" && req.LastModified == "" || !s.known():
		s.fail(resp, now, o)
		return
	case s.file == nil || !named:
		return
	}
	old := *s
	s.succeed(resp, now, o, true)
	s.prolong(old.file.Rules(o.Agent), o)
	s.Source, s.file, s.ETag, s.LastModified = old.Source, old.file, old.ETag, old.LastModified
	if etag := validator(resp.Header, "ETag"); etag != "" {
		s.ETag = etag
	}
	if modified := validator(resp.Header, "Last-Modified"); modified != "" {
		s.LastModified = modified
	}
}

// fail records that the host was unreachable. The copy stays as it is.
func (s *state) fail(resp Response, now time.Time, o *Options) {
	if s.Failures == 0 {
		s.FailedSince = now
	}
	s.Status, s.Reason = resp.Status, resp.reason()
	s.Failures = min(s.Failures+1, maxFailures)
	wait := max(0, min(o.Retry, o.MaxRetry))
	for i := 1; i < min(s.Failures, 64); i++ {
		wait += min(wait, o.MaxRetry-wait) // doubles, but cannot overflow
	}
	s.Expires = now.Add(max(wait, min(httpfield.RetryAfter(resp.Header, now), longestWait)))
}

// maxFailures is where the count of failures ends. By then they are a thousand years old.
const maxFailures = 10_000_000

// maxReason bounds the length of Entry.Reason in bytes. An error may quote a URL or more.
const maxReason = 512

// reason returns why a response has no complete file, in a form that JSON does not alter.
func (r *Response) reason() string {
	switch {
	case r.Reason != "":
		return strings.Clone(strings.ToValidUTF8(r.Reason[:min(len(r.Reason), maxReason)], ""))
	case r.Status == 0:
		return "no response"
	case found(r.Status):
		return "the file is incomplete"
	}
	return strings.TrimSpace(fmt.Sprint("status ", r.Status, " ", http.StatusText(r.Status)))
}

// current returns the file that is valid, or nil if nothing may be fetched: a host that was never
// reached, and has no copy. The RFC would allow everything there after 30 days; this package does
// not.
func (s *state) current() *robotstxt.File {
	if s.file == nil && s.Failures == 0 {
		return noFile
	}
	return s.file
}

// fresh reports whether the state may be used without another request. An expiry much further in the
// future than any response can set comes from a clock that was wrong.
func (s *state) fresh(now time.Time, o *Options) bool {
	left := s.Expires.Sub(now)
	return left > 0 && left-skew <= max(o.MaxTTL, o.MaxRetry, longestWait+o.MinTTL)
}

// skew is how much earlier a caller's now may be than that of a response which came while it waited
// for the lock, or which another machine saved.
const skew = time.Hour

// ttl returns how long a response is valid: as long as it says, within the bounds of the options,
// or MaxTTL if it says nothing.
func (o *Options) ttl(h http.Header, now time.Time) time.Duration {
	f := httpfield.FreshnessOf(h, now)
	if !f.Stated {
		return o.MaxTTL
	}
	return min(max(f.Left, o.MinTTL), o.MaxTTL)
}
