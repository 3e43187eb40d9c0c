package webtest

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// page answers with a page, or with 304 to a client that has this version.
func (x *exchange) page(number int) int {
	zip := x.web.hosts[x.host].traits.Gzip
	h := x.w.Header()
	if zip {
		h["Vary"] = varying
		zip = acceptsGzip(x.r.Header)
	}
	v := x.web.version(x.host, number)
	x.version = v.number
	etag := x.web.etag(x.host, number, v, zip)
	h["Etag"] = []string{etag}
	h["Last-Modified"] = []string{v.modified.UTC().Format(http.TimeFormat)}
	if fresh(x.r.Header, etag, v.modified) {
		return x.begin(http.StatusNotModified)
	}
	p := pages.Get().(*page)
	defer pages.Put(p)
	p.render(x.web, x.host, number, v.number)
	if !zip {
		return x.send(typeHTML, p.body)
	}
	z := zippers.Get().(*zipper)
	defer zippers.Put(z)
	h["Content-Encoding"] = gzipped
	return x.send(typeHTML, z.pack(p.body))
}

// fresh evaluates the conditions of RFC 9110, section 13.2.2: If-None-Match alone decides if it is
// present; If-Modified-Since has a resolution of seconds.
func fresh(h http.Header, etag string, modified time.Time) bool {
	if match := h.Get("If-None-Match"); match != "" {
		for tag := range strings.SplitSeq(match, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == etag || tag == "*" {
				return true
			}
		}
		return false
	}
	given := h.Get("If-Modified-Since")
	if given == "" {
		return false // the usual case; parsing nothing would cost an error value
	}
	since, err := http.ParseTime(given)
	return err == nil && !modified.Truncate(time.Second).After(since)
}

// acceptsGzip parses only the forms of Accept-Encoding that crawlers send.
func acceptsGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.TrimRight(strings.TrimSpace(weight), ".0") != "q="
		}
	}
	return false
}

// zipper is a compressor with its output, pooled because it weighs a megabyte.
type zipper struct {
	out bytes.Buffer
	w   *gzip.Writer
}

var zippers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return &zipper{w: w}
}}

// pack returns body compressed, until the next call.
func (z *zipper) pack(body []byte) []byte {
	z.out.Reset()
	z.w.Reset(&z.out)
	z.w.Write(body) // a buffer does not fail
	z.w.Close()
	return z.out.Bytes()
}

// latency draws the wait before the answer to one URL.
func (w *Web) latency(h *host, target string) time.Duration {
	l := h.traits.Latency
	if l == (Latency{}) {
		return 0
	}
	r := w.stream(saltLatency, h.Index, 0) ^ rng(hashString(target))
	if r.unit() < l.SlowShare {
		return l.Slow
	}
	if l.Sigma <= 0 {
		return l.Median
	}
	wait := float64(l.Median) * math.Exp(l.Sigma*r.norm())
	return time.Duration(min(wait, math.MaxInt64/2))
}

// throttled counts a request and reports whether to reject it.
func (h *host) throttled() bool {
	every := int64(h.traits.Throttle.Every)
	return every > 0 && h.asked.Add(1)%every == 0
}

// retryLater rejects a request. The header is allowed with any status: RFC 6585 wants it with 429,
// RFC 9110 with 503.
func (x *exchange) retryLater(t Throttle) int {
	if t.RetryAfter > 0 {
		x.w.Header()["Retry-After"] = []string{strconv.Itoa(wholeSeconds(t.RetryAfter))}
	}
	if t.Status == 0 {
		return x.fail(http.StatusTooManyRequests)
	}
	return x.fail(t.Status)
}

// wholeSeconds rounds up: a client that waits that long has waited long enough.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
