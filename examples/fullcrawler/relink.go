package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/brotli"
)

// relink looks at the links of a page once more, since the filters let more pass than before. It
// takes the page as the archive has it, so that no server is asked. It returns false if the archive
// does not have it.
func (c *crawler) relink(ctx context.Context, it stage.Item) bool {
	if c.Store == nil {
		return false
	}
	ctx = context.WithValue(ctx, archivedURL{}, it.URL)
	resp, err := c.archived.Get(ctx, it.URL)
	if err != nil {
		return false
	}
	defer c.archived.Release(resp)
	c.links(it, resp)
	return true
}

// openArchived makes a client that reads from the archive what others get from servers.
func (c *crawler) openArchived() (err error) {
	c.archived, err = fetch.New(fetch.Options{
		UserAgent: c.Cfg.UserAgent(), Reach: c.Cfg.Bounds, MaxBody: c.Cfg.MaxBody, Brotli: brotli.New,
		Wrap: func(http.RoundTripper) http.RoundTripper { return archived{c.Store} },
	})
	return err
}

// archived answers requests with the last versions of an archive. Its methods are safe for
// concurrent use.
type archived struct{ store *archive.Archive }

// archivedURL is the key of the URL in a context. That of a request is made for the wire.
type archivedURL struct{}

// RoundTrip returns the answer that was kept last.
func (a archived) RoundTrip(req *http.Request) (*http.Response, error) {
	url, _ := req.Context().Value(archivedURL{}).(string)
	version, err := a.store.At(url, time.Time{})
	if err != nil {
		return nil, err
	}
	record, err := a.store.Read(version.Content)
	if err != nil {
		return nil, err
	}
	message, err := record.HTTP()
	if err != nil {
		_ = record.Close() // the first error says more
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(message.Head)), req)
	if err != nil {
		_ = record.Close()
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{message.Body, record}
	return resp, nil
}
