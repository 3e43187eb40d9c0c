package page

import (
	"iter"
	"net/http"
	"strings"

	"github.com/spinneret-go/spinneret/internal/httpfield"
)

// HeaderLinks returns an iterator over the links of a response's header: those of its Link fields
// (RFC 8288), with the same kinds as link elements with that rel, and that of a Refresh field. base
// is the URL of the response. Limits, errors and strings are as those of [Links].
//
// Links with an anchor, which are about another resource, are left out, and so are links without a
// rel.
func HeaderLinks(header http.Header, base string) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		w := newWalker(yield)
		err := w.begin(base)
		if err == nil {
			err = w.header(header)
		}
		w.end(err)
	}
}

func (w *walker) header(header http.Header) error {
	for _, value := range header["Link"] {
		for url, params := range httpfield.Links(value) {
			if err := w.field(url, params); err != nil {
				return err
			}
		}
	}
	// No standard has this field, but all browsers follow it like the meta element.
	if url := refreshURL([]byte(header.Get("Refresh"))); len(url) > 0 {
		return w.emit(Link{Kind: Redirect}, url)
	}
	return nil
}

// field yields one link of a Link field.
func (w *walker) field(url string, params map[string]string) error {
	l := Link{Rel: strings.ToLower(params["rel"])}
	// With an anchor, it is a link of another page.
	if l.Kind = relKind(l.Rel); l.Kind == 0 || params["anchor"] != "" {
		return nil
	}
	l.NoFollow = hasToken(l.Rel, "nofollow")
	l.Lang, l.Type = strings.ToLower(params["hreflang"]), strings.ToLower(params["type"])
	return w.emit(l, []byte(url))
}
