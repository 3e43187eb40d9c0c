package fetch

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/netip"
	"time"
)

// Decode is a Client's decoder without a connection, for fuzzing.
func Decode(raw []byte, coding string, opts Options) ([]byte, Kind) {
	c := &Client{opts: opts.withDefaults()}
	c.codecs, _ = newCodecs(opts.Brotli)
	b := bodyReader{c: c, limit: c.opts.MaxBody, coding: codingOf([]string{coding})}
	return b.decode(raw, Whole)
}

// CodingOf is codingOf.
var CodingOf = codingOf

// RequestURI returns the request target that a Get of raw sends.
func RequestURI(raw string) (string, error) {
	u, _, err := parseTarget(raw)
	if err != nil {
		return "", err
	}
	return wireURL(&u).RequestURI(), nil
}

// Record passes the pieces through a recorder and returns the head that it finds.
func Record(pieces ...[]byte) (head []byte, done bool) {
	w := newWire(nil, netip.AddrPort{}, math.MaxInt)
	h := w.begin()
	for _, p := range pieces {
		w.record(p, nil)
	}
	done = h.done
	_, head, _ = w.take(h, 0)
	return head, done
}

// Trusted reports whether a recorder that has read b accepts it as the head of a response with that
// status.
func Trusted(status int, b string) bool {
	w := newWire(nil, netip.AddrPort{}, math.MaxInt)
	w.record([]byte(b), nil)
	_, _, ok := w.take(w.begin(), status)
	return ok
}

// LateCheck ends a watch while the check of its timer is pending. cancel is called if the check
// sets the timer again.
func LateCheck(cancel context.CancelCauseFunc) {
	var w watch
	w.begin(&Options{Timeout: time.Minute, HeadTimeout: time.Second}, time.Now(), cancel)
	w.end()
	w.check()
}

// Refer returns the Referer that a policy permits in a request to url.
func Refer(policy, from, url string) string {
	c := &Client{opts: Options{Referrer: policy}.withDefaults()}
	header := http.Header{"Referer": {from}}
	c.refer(header, url)
	return header.Get("Referer")
}

// Freshness is freshness.
var Freshness = freshness

// Grow reads at most most bytes of r into a buffer of the expected size, as Get reads a body.
func Grow(r io.Reader, limit, most int64) ([]byte, bool, error) {
	g := growth{new(buffers), limit, most}
	return g.read(nil, r, nil)
}

// RoundUp is roundUp.
var RoundUp = roundUp
