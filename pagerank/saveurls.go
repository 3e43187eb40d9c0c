package pagerank

import (
	"fmt"
	"io"
)

const (
	urlsMagic   = "SPRU"
	urlsVersion = 2
)

// WriteTo saves the URLs, and then the Frontier. FORMAT.md describes it. It changes nothing.
func (u *URLs) WriteTo(w io.Writer) (n int64, err error) {
	e := newEncoder(w, urlsMagic, urlsVersion)
	e.uvarint(uint64(u.urls.n))
	e.flush()
	last := []byte{}
	u.urls.all(func(url []byte) bool {
		shared := sharedPrefix(last, string(url))
		e.uvarint(uint64(shared))
		e.uvarint(uint64(len(url) - shared))
		e.row = append(e.row, url[shared:]...)
		e.flush()
		last = append(last[:0], url...)
		return e.err == nil
	})
	if n, err = e.end(); err != nil {
		return n, err
	}
	more, err := u.frontier.WriteTo(w)
	return n + more, err
}

// ReadURLs reads what [URLs.WriteTo] has written. See [Read].
func ReadURLs(r io.Reader, opts Options) (*URLs, error) {
	u := NewURLs(opts)
	d := newDecoder(r)
	d.form(urlsMagic, urlsVersion, "URLs")
	var url []byte
	count := d.uvarint(uint64(u.frontier.opts.Limit), "URLs")
	for i := uint64(0); i < count && d.err == nil; i++ {
		shared := d.uvarint(uint64(len(url)), "shared bytes")
		length := d.uvarint(longestURL-shared, "bytes")
		url = append(url[:shared], make([]byte, length)...)
		d.read(url[shared:])
		if d.err == nil {
			if u.id(string(url)); uint64(u.urls.n) != i+1 {
				d.fail("%q is there twice", url)
			}
		}
	}
	d.end()
	if d.err != nil {
		return nil, d.err
	}
	n, err := u.frontier.read(&decoder{in: d.in, at: d.at})
	if err == nil && n != count {
		err = fmt.Errorf("%w: %d URLs for %d ids", ErrCorrupt, count, n)
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}
