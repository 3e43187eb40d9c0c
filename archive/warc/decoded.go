package warc

import (
	"fmt"
	"io"

	"github.com/spinneret-go/spinneret/archive/internal/content"
)

// Decoded returns Body without its content codings, which are gzip, deflate, br and zstd. It ends
// with [ErrTooLarge] after limit bytes, or where it exceeds 1 MiB and 200 times what was stored. A
// limit of 0 or less means 256 MiB. A body without a content coding is returned as it is.
func (h *HTTP) Decoded(limit int64) (io.Reader, error) {
	if limit <= 0 {
		limit = DefaultMaxDecoded
	}
	body, err := content.Decode(h.Body, h.Get("Content-Encoding"), limit)
	if err != nil {
		return nil, fmt.Errorf("warc: decode body: %w", err)
	}
	return body, nil
}
