package pagerank

import (
	"io"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// WriteTo saves the URLs and the Frontier, as [Frontier.WriteTo] does. FORMAT.md describes it.
func (u *URLs) WriteTo(w io.Writer) (n int64, err error) {
	out := durable.NewStreamWriter(w, urlsMagic)
	out.Uvarint(uint64(u.urls.n))
	last := []byte{}
	u.urls.all(func(url []byte) bool {
		shared := sharedPrefix(last, string(url))
		out.Uvarint(uint64(shared))
		out.Uvarint(uint64(len(url) - shared))
		out.Buf = append(out.Buf, url[shared:]...)
		last = append(last[:0], url...)
		return out.Err == nil
	})
	u.frontier.write(out)
	return out.Close()
}

// WriteFile replaces a file by what WriteTo writes, as [Frontier.WriteFile] does.
func (u *URLs) WriteFile(name string) error { return writeFile(name, u) }

// ReadURLs reads what [URLs.WriteTo] has written. See [Read].
func ReadURLs(r io.Reader, opts Options) (*URLs, error) {
	u := NewURLs(opts)
	d := &decoder{durable.NewStreamReader(r, urlsMagic, oldURLsMagic)}
	var url []byte
	count := d.count(u.frontier.opts.Limit)
	for i := uint64(0); i < count && d.Err == nil; i++ {
		shared := d.Uvarint(uint64(len(url)), "shared bytes")
		length := d.Uvarint(longestURL-shared, "bytes")
		url = append(url[:shared], make([]byte, length)...)
		d.Fill(url[shared:])
		if d.Err != nil {
			break
		}
		if name := string(url); isForgotten(name) && name != forgotten(uint32(i)) {
			d.Fail("%q stands for the URL of id %d, which was forgotten", url, i)
		} else if u.assign(name); uint64(u.urls.n) != i+1 {
			d.Fail("%q is there twice", url)
		}
	}
	if n := u.frontier.read(d); n != count {
		d.Fail("%d URLs for %d ids", count, n)
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return u, nil
}
