package warc

import (
	"io"

	"github.com/spinneret-go/spinneret/internal/content"
	"github.com/spinneret-go/spinneret/internal/content/br"
)

// Bounds on decoded bodies: decoded bytes for each stored one, and those that need none. Real pages
// stay below 100.
const (
	maxDecodedRatio = 200
	freeDecoded     = 1 << 20
)

// Decoded returns Body without its content codings: gzip, deflate, br and zstd. It ends with
// [ErrTooLarge] after limit bytes, or after 1 MiB and 200 times the stored size. A limit of 0 or
// less means 256 MiB. A body without a content coding is returned as it is, and so is one whose coding
// is unknown, since many servers send "utf-8" or "none" there, that has more than three, or that does not
// begin like gzip or zstd: some writers decode the body and keep the field.
func (h *HTTP) Decoded(limit int64) io.Reader {
	codings := content.Of(h.Values("Content-Encoding"))
	o := content.Options{
		Brotli: br.Open, Max: limit, Ratio: maxDecodedRatio, Free: freeDecoded, Lenient: true,
	}
	if limit <= 0 {
		o.Max = defaultMaxDecoded
	}
	if !o.Known(codings) {
		return h.Body
	}
	return &throughout{content.NewReader(h.Body, codings, o), h.Body}
}

// throughout is a body that ends before its record does. At its end it reads the rest of the record,
// whose damage may be damage of the body. It is not safe for concurrent use.
type throughout struct {
	io.Reader
	rest io.Reader
}

// Read reads from the body.
func (t *throughout) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	if _, damage := io.Copy(io.Discard, t.rest); damage != nil {
		return n, damage
	}
	return n, io.EOF
}
