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

// Extract passes the links of a page and of its header on to yield, each with the reason not to
// follow it, if it is the page that asks for that. With resources, what a page needs to be shown
// counts as links too, and so does what a style sheet needs. Directives in the page
// count if they are for agent or for all.
func Extract(resp *fetch.Response, agent string, resources bool, yield func(url string, why Reason)) {
	x := extraction{
		agent: agent, resources: resources, yield: yield,
		tag: robotstag.FromHeader(resp.Header, agent),
	}
	// Few responses have one of the two fields, and to look at the others for them costs something.
	if resp.Header["Link"] != nil || resp.Header["Refresh"] != nil {
		x.pass(webpage.HeaderLinks(resp.Header, resp.URL))
	}
	switch kind := mediaType(resp); {
	case kind == "text/html", kind == "application/xhtml+xml":
		x.pass(webpage.Scan(resp.Body, resp.URL, resp.Header.Get("Content-Type"),
			webpage.Options{Styles: resources}))
	case kind == "text/css" && resources:
		x.pass(webpage.Styles(resp.Body, resp.URL, resp.Header.Get("Content-Type")))
	}
}

// An extraction is one call of Extract.
type extraction struct {
	agent     string
	resources bool
	yield     func(url string, why Reason)
	tag       robotstag.Directives // so far
}

func (x *extraction) pass(links iter.Seq2[webpage.Link, error]) {
	for link, err := range links {
		switch {
		case err != nil:
			return // the page has more links than anybody writes; those so far were good
		case link.Kind == webpage.Directive:
			x.tag = x.tag.Merge(robotstag.FromMeta(link.Name, link.Text, x.agent))
		case link.Kind == webpage.Resource && !x.resources:
		case link.Kind == webpage.Related && !leadsToPage(link.Rel):
		case x.tag.NoFollow:
			x.yield(link.URL, NoFollow)
		default:
			x.yield(link.URL, "")
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

// mediaType goes by what the server declares, and by the look of the page where it declares
// nothing.
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
