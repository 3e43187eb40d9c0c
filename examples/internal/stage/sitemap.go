package stage

import (
	"bytes"
	"net/http"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/sitemap"
)

// A Sitemap marks an item as a sitemap, listed in the robots.txt of a server.
type Sitemap struct {
	Server string // the authority whose URLs it may list, besides those of its own
	Nested bool   // it was listed in an index, and may not be an index itself
}

// AsPage returns the item of a sitemap as that of a page, which is one link further away.
func (it Item) AsPage() Item {
	it.Sitemap, it.Depth = nil, it.Depth+1
	return it
}

// IsPage reports whether a response to a request for a sitemap is a page instead.
func IsPage(resp *fetch.Response) bool {
	if kind := mediaType(resp); resp.Status != http.StatusOK || kind != "text/html" && kind != "application/xhtml+xml" {
		return false
	}
	for _, err := range sitemap.Entries(bytes.NewReader(resp.Body), resp.URL) {
		return err != nil
	}
	return false // it is empty
}

// List passes the entries of a sitemap to yield, each with the reason not to follow it, if there is
// one. A page is one link further away than the sitemap. An error says why the list ends early, or
// that it is not a list; earlier entries are valid.
func List(resp *fetch.Response, it Item, yield func(entry Item, why Reason)) error {
	own := Authority(resp.URL)
	for e, err := range sitemap.Entries(bytes.NewReader(resp.Body), resp.URL) {
		if err != nil {
			return err
		}
		entry := Item{URL: e.URL, Depth: it.Depth + 1}
		if !e.LastMod.IsZero() {
			entry.LastMod = e.LastMod.Unix()
		}
		var why Reason
		server, nested := Authority(e.URL), e.Kind == sitemap.Sitemap
		switch {
		case server != own && server != it.Sitemap.Server:
			why = OtherServer
		case nested && it.Sitemap.Nested:
			why = IndexInIndex
		case nested:
			entry.Depth, entry.Sitemap = it.Depth, &Sitemap{Server: it.Sitemap.Server, Nested: true}
		}
		yield(entry, why)
	}
	return nil
}
