package stage

import (
	"mime"
	"net/http"
	"strings"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
)

// Extract passes the links of a page on to yield, each with the reason not to follow it, if it is
// the page that asks for that. With resources, what a page needs to be shown counts as links too.
// agent is whose directives in the page are heeded, besides those for all.
func Extract(resp *fetch.Response, agent string, resources bool, yield func(url string, why Reason)) {
	if !isHTML(resp) {
		return
	}
	tag := robots.FromHeader(resp.Header, agent)
	for link, err := range fetch.Links(resp.Body, resp.URL) {
		switch {
		case err != nil:
			return // the page has more links than anybody writes; those so far were good
		case link.Kind == fetch.Directive:
			tag = tag.Merge(robots.FromMeta(link.Name, link.Text, agent))
		case link.Kind == fetch.Resource && !resources:
		case link.Kind == fetch.Related && !leadsToPage(link.Rel):
		case tag.NoFollow:
			yield(link.URL, NoFollow)
		default:
			yield(link.URL, "")
		}
	}
}

// leadsToPage says whether a link element's rel names another page, by the HTML standard or by the
// habit of generated manuals; the rest are hints to browsers.
func leadsToPage(rel string) bool {
	for word := range strings.FieldsSeq(rel) {
		switch word {
		case "author", "help", "license", "search", "privacy-policy", "terms-of-service",
			"index", "contents", "start", "top", "up", "first", "last":
			return true
		}
	}
	return false
}

// isHTML goes by what the server declares, and by the look of the page where it declares nothing.
func isHTML(resp *fetch.Response) bool {
	declared := resp.Header.Get("Content-Type")
	if declared == "" {
		declared = http.DetectContentType(resp.Body)
	}
	kind, _, err := mime.ParseMediaType(declared)
	if err != nil {
		kind, _, _ = strings.Cut(declared, ";")
	}
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "text/html", "application/xhtml+xml":
		return true
	}
	return false
}
