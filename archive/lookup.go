package archive

import (
	"bytes"
	"iter"
	"math"
	"sync"

	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
)

// lookup holds the reusable buffers of a lookup.
type lookup struct {
	around lsm.Neighbors
	key    []byte
}

var lookups = sync.Pool{New: func() any { return new(lookup) }}

// never is the end of the validity of the last version of a URL.
const never = math.MaxInt64

// floor returns the last entry of a URL not later than t, which is before never, and the time of the next one, or
// never.
func (x *index) floor(url string, t int64) (e entry, found bool, until int64, err error) {
	l := lookups.Get().(*lookup)
	defer lookups.Put(l)
	l.key = append(append(l.key[:0], url...), 0)
	prefix := len(l.key)
	l.key = appendTime(l.key, t+1)
	return x.before(l, prefix)
}

// before returns the entry before l.key, and the time of the first one not before it.
func (x *index) before(l *lookup, prefix int) (e entry, found bool, until int64, err error) {
	if err := x.around(&l.around, l.key, prefix); err != nil {
		return e, false, 0, err
	}
	until = never
	var next entry
	if len(l.around.Next) == prefix+tailSize {
		if _, err := next.cutKey(l.around.Next); err != nil {
			return e, false, 0, err
		}
		until = next.time
	}
	if found = len(l.around.Below.Key) == prefix+tailSize; !found {
		return e, false, until, nil
	}
	if _, err = e.cutKey(l.around.Below.Key); err == nil {
		err = e.cutValue(l.around.Below.Value)
	}
	return e, true, until, err
}

// maxBack bounds the versions searched for content whose address is unknown. Few real pages change
// so often, but a hostile one could.
const maxBack = 1000

// back visits the entries of a URL before at, newest first, until visit returns false or maxBack
// entries were visited.
func (x *index) back(url string, at entry, visit func(*entry) bool) error {
	l := lookups.Get().(*lookup)
	defer lookups.Put(l)
	for range maxBack {
		l.key = appendKey(l.key[:0], url, &at)
		e, found, _, err := x.before(l, len(url)+1)
		if err != nil || !found || !visit(&e) {
			return err
		}
		at = e
	}
	return nil
}

// maxSought bounds the versions without a body that a search for one passes. It is found within few: each
// version that repeats it has its address. If the body is missing, as in a deduplicated crawl without its
// first part, each version of the URL costs such a search. Failures and other bodies do not count: a 304
// after a long outage has the body from before that.
const maxSought = 30

// lastBody returns the last entry of a URL before at that has a body and fits.
func (x *index) lastBody(url string, at entry, fits func(*entry) bool) (content entry, found bool, err error) {
	left := maxSought
	err = x.back(url, at, func(before *entry) bool {
		if before.body().length == 0 {
			left--
		}
		content, found = *before, before.body().length > 0 && fits(before)
		return !found && left > 0
	})
	return content, found, err
}

// changed returns the last changed version of a URL not later than t. It takes two lookups for any
// number of versions.
func (x *index) changed(url string, t int64) (e entry, found bool, err error) {
	e, found, _, err = x.floor(url, t)
	if err != nil || !found {
		return e, false, err
	}
	return x.changeOf(url, e)
}

// changedBefore returns the last changed version before an entry.
func (x *index) changedBefore(url string, at *entry) (e entry, found bool, err error) {
	l := lookups.Get().(*lookup)
	defer lookups.Put(l)
	l.key = appendKey(l.key[:0], url, at)
	e, found, _, err = x.before(l, len(url)+1)
	if err != nil || !found {
		return e, false, err
	}
	return x.changeOf(url, e)
}

// changeOf returns the last changed version as of an entry.
func (x *index) changeOf(url string, e entry) (_ entry, found bool, err error) {
	if e.kind == Changed || !e.hasPrior {
		return e, e.kind == Changed, nil
	}
	at := entry{time: e.prior, file: math.MaxUint32, offset: maxOffset}
	err = x.back(url, at, func(before *entry) bool {
		found = before.kind == Changed
		e = *before
		return !found && before.time == at.time // several visits at the same time
	})
	return e, found, err
}

// value returns the entry of a URL with the time and address of e, if there is one.
func (x *index) value(url string, e *entry) (stored entry, found bool, err error) {
	l := lookups.Get().(*lookup)
	defer lookups.Put(l)
	l.key = append(appendKey(l.key[:0], url, e), 0)
	stored, found, _, err = x.before(l, len(url)+1)
	return stored, found && stored.time == e.time && stored.file == e.file &&
		stored.offset == e.offset, err
}

// answer is value for an entry of any key of a URL, and returns that key. It looks the entry up under each
// key, and not at all entries: a URL may have answered many requests, but of few kinds.
func (x *index) answer(url string, e *entry) (key string, stored entry, found bool, err error) {
	for key = url; ; {
		if stored, found, err = x.value(key, e); found || err != nil {
			return key, stored, found, err
		}
		next := ""
		for l, err := range x.scan(urlkey.Span{Low: key + askedMark, High: url + "\x02"}) {
			if err != nil {
				return url, stored, false, err
			}
			next = l.url
			break
		}
		if next == "" {
			return url, stored, false, nil
		}
		key = next
	}
}

// located is an entry with the key of its URL.
type located struct {
	url   string
	entry entry
}

// scan returns a single-use iterator over the entries in a range of keys, in their order. An entry
// is valid until the next one.
func (x *index) scan(s urlkey.Span) iter.Seq2[*located, error] {
	return func(yield func(*located, error) bool) {
		if err := x.complete(); err != nil {
			yield(nil, err)
			return
		}
		var l located
		for p, err := range x.pairs([]byte(s.Low), []byte(s.High)) {
			var url []byte
			if err == nil {
				if url, err = l.entry.cutKey(p.Key); err == nil {
					err = l.entry.cutValue(p.Value)
				}
			}
			if err != nil {
				yield(nil, x.notice(err))
				return
			}
			if string(url) != l.url { // does not allocate
				l.url = string(url)
			}
			if !yield(&l, nil) {
				return
			}
		}
	}
}

// valid visits the entries in a range of keys, in their order, with the end of their validity. A version is
// valid until the next one, so each is held back for one step.
func (x *index) valid(s urlkey.Span, visit func(l *located, until int64) error) error {
	var held located
	some := false
	for l, err := range x.scan(s) {
		if err != nil {
			return err
		}
		until := int64(never)
		if l.url == held.url {
			until = l.entry.time
		}
		if some {
			if err := visit(&held, until); err != nil {
				return err
			}
		}
		held, some = *l, true
	}
	if !some {
		return nil
	}
	return visit(&held, never)
}

// bodyMark begins the keys of bodies. No URL begins with it: it is not UTF-8.
const bodyMark = 0xff

// bodyKey is the key under which a content is found by its digest.
func bodyKey(d digest) []byte { return append([]byte{bodyMark}, d...) }

// body returns the address of a record that has a body of that digest, if one is known.
func (x *index) body(d digest) (at address, found bool, err error) {
	l := lookups.Get().(*lookup)
	defer lookups.Put(l)
	l.key = append(append(append(l.key[:0], bodyMark), d...), 0)
	prefix := len(l.key) - 1
	if err := x.around(&l.around, l.key, prefix); err != nil {
		return at, false, err
	}
	if !bytes.Equal(l.around.Below.Key, l.key[:prefix]) {
		return at, false, nil
	}
	c := cutter{l.around.Below.Value, true}
	at = c.address()
	if !c.ok || len(c.rest) > 0 {
		return at, false, errEntry
	}
	return at, true, nil
}
