package stage

import (
	"context"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch"
)

// An Archived is a client that gets pages from an archive instead of servers, with the same limits
// and the same decoding. Its methods are safe for concurrent use.
type Archived struct {
	store   *archive.Archive
	client  *fetch.Client
	maxBody int64
}

// NewArchived returns a client with some of the options. A nil archive has no page.
func NewArchived(store *archive.Archive, o fetch.Options) (*Archived, error) {
	a := &Archived{store: store, maxBody: o.MaxBody}
	if o.MaxMemory > 0 {
		a.maxBody = min(a.maxBody, o.MaxMemory/4) // at which a client cuts it, too
	}
	var err error
	a.client, err = fetch.New(fetch.Options{
		UserAgent: o.UserAgent, Reach: o.Reach, MaxBody: o.MaxBody, MaxMemory: o.MaxMemory,
		Wrap: func(http.RoundTripper) http.RoundTripper { return archived{store} },
	})
	return a, err
}

// With passes the last version until now of a page to use, and reports whether there is one.
func (a *Archived) With(ctx context.Context, url string, use func(*fetch.Response)) bool {
	if a.store == nil {
		return false
	}
	resp, err := a.client.Get(context.WithValue(ctx, archivedURL{}, url), url)
	if err != nil {
		return false
	}
	defer a.client.Release(resp)
	use(resp)
	return true
}

// Has reports whether the archive, if there is one, has the content of a page, as far as the limits allow: it may
// have been cut at lower ones.
func (a *Archived) Has(ctx context.Context, url string) bool {
	if a.store == nil {
		return true
	}
	version, err := a.store.At(url, time.Now())
	switch {
	case err != nil || version.Content == (archive.Location{}):
		return false
	case !version.Truncated:
		return true
	}
	long := false
	a.With(ctx, url, func(resp *fetch.Response) { long = int64(len(resp.Raw)) >= a.maxBody })
	return long
}

// archived answers requests with the latest versions in an archive. Its methods are safe for
// concurrent use.
type archived struct{ store *archive.Archive }

// archivedURL is the context key of the original URL. The URL of a request is in its wire form.
type archivedURL struct{}

// RoundTrip returns the latest response in the archive.
func (a archived) RoundTrip(req *http.Request) (*http.Response, error) {
	url, _ := req.Context().Value(archivedURL{}).(string)
	version, err := a.store.At(url, time.Now()) // the clock may have been ahead
	if err != nil {
		return nil, err
	}
	resp, err := a.store.Response(version)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	return resp, nil
}
