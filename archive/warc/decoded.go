package warc

import (
	"fmt"
	"io"
	"strings"

	"github.com/spinneret-go/spinneret/archive/internal/content"
)

// Decoded returns Body without its content codings: gzip, deflate, br and zstd. It ends
// with [ErrTooLarge] after limit bytes, or once it exceeds 1 MiB and 200 times the stored size. A
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

// Content returns the content of a record: the body of an HTTP message as [HTTP.Decoded] returns
// it, or the block of any other record. The size is -1 if it is unknown before the end.
func (rec *Record) Content(limit int64) (content io.Reader, size int64, err error) {
	if !strings.HasPrefix(strings.ToLower(rec.Get("Content-Type")), "application/http") {
		return rec, rec.Size, nil
	}
	message, err := rec.HTTP()
	if err != nil {
		return nil, 0, err
	}
	size = message.Size
	if message.Get("Content-Encoding") != "" {
		size = -1
	}
	content, err = message.Decoded(limit)
	return content, size, err
}
