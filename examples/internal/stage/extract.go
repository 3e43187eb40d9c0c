package stage

import (
	"iter"
	"mime"
	"net/http"
	"strings"

	"github.com/spinneret-go/spinneret/fetch"
	webpage "github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/robots/robotstag"
)

// Extract passes the links of a page and of its header to yield. A link that the page asks not to
// follow has a reason. With resources, the resources of pages and style sheets count as links too.
// Directives in the page count if they are for agent or for all.
func Extract(resp *fetch.Response, agent string, resources bool, yield func(url string, why Reason)) {
	tag := robotstag.FromHeader(resp.Header, agent) // and the directives in the page so far
	pass := func(links iter.Seq2[webpage.Link, error]) {
		for link, err := range links {
			switch {
			case err != nil:
				return // the page has more links than any author writes; those so far are valid
			case link.Kind == webpage.Directive:
				tag = tag.Merge(robotstag.FromMeta(link.Name, link.Text, agent))
			case link.Kind == webpage.Resource && !resources:
			case link.Kind == webpage.Related && !leadsToPage(link.Rel):
			case tag.NoFollow:
				yield(link.URL, NoFollow)
			default:
				yield(link.URL, "")
			}
		}
	}
	// Few responses have one of the two fields, and parsing costs something.
	if resp.Header["Link"] != nil || resp.Header["Refresh"] != nil {
		pass(webpage.HeaderLinks(resp.Header, resp.URL))
	}
	switch kind := mediaType(resp); {
	case kind == "text/html", kind == "application/xhtml+xml":
		pass(webpage.Scan(resp.Body, resp.URL, resp.Header.Get("Content-Type"),
			webpage.Options{Styles: resources}))
	case kind == "text/css" && resources:
		pass(webpage.Styles(resp.Body, resp.URL, resp.Header.Get("Content-Type")))
	}
}

// leadsToPage reports whether the rel of a link element refers to another page, by the HTML
// standard or by the convention of generated manuals; all others are hints to browsers.
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

// mediaType returns the type that the server declares. If there is none, it detects HTML by the
// content.
func mediaType(resp *fetch.Response) string {
	declared := resp.Header.Get("Content-Type")
	if declared == "" {
		declared = http.DetectContentType(resp.Body)
	}
	kind, _, err := mime.ParseMediaType(declared)
	if err != nil {
		kind, _, _ = strings.Cut(declared, ";")
	}
	return strings.ToLower(strings.TrimSpace(kind))
}
