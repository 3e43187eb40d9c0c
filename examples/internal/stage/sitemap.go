package stage

import (
	"bytes"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/sitemap"
)

// A Sitemap says of an item that it is one, which the robots.txt of a server named.
type Sitemap struct {
	Server string // the authority whose URLs it may list, besides those of its own
	Nested bool   // it was listed in an index, and may be none itself
}

// List passes what a sitemap lists on to yield, each with the reason not to follow it, if there is
// one. A page is one link further away than the sitemap. An error says why the list ends early, or
// that it is no list at all; what came before it is good.
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
