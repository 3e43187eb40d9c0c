package botauth

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// RangesPath is where [Bot.Handler] serves the address ranges.
const RangesPath = "/ip-ranges.json"

// rangesAge is how long the address ranges may be cached: sites poll them once a day.
const rangesAge = 24 * time.Hour

// Bot is what site owners want to know about a crawler. Empty fields are left out.
type Bot struct {
	Name      string         // the name that it obeys in robots.txt, such as "examplebot"
	UserAgent string         // as sent
	Purpose   string         // what the pages are used for, in a sentence or two
	Contact   string         // an e-mail address or a URL
	Ranges    []netip.Prefix // from which it crawls; invalid ones are left out
	Signer    *Signer        // whose keys are published; nil means that requests are not signed
}

// Handler serves the page about the bot at "/", its address ranges at [RangesPath] and the key
// directory at [DirectoryPath]. It is the place for the URL in a User-Agent. Serve it on the host
// of Options.Agent, over TLS.
func (b Bot) Handler() http.Handler {
	mux := http.NewServeMux()
	page := []byte(b.page())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		serve(w, r, page, directoryAge)
	})
	if len(b.Ranges) > 0 {
		mux.HandleFunc("GET "+RangesPath, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/jafar+json")
			// Not to the second, so that the entity tag stays the same for a while.
			serve(w, r, b.ranges(time.Now().Truncate(time.Hour)), rangesAge)
		})
	}
	if b.Signer != nil {
		mux.Handle("GET "+DirectoryPath, b.Signer)
	}
	return mux
}

// ranges returns the address ranges as JSON.
func (b Bot) ranges(now time.Time) []byte {
	type prefix struct {
		V4       string   `json:"ipv4Prefix,omitempty"`
		V6       string   `json:"ipv6Prefix,omitempty"`
		Services []string `json:"services,omitempty"`
	}
	doc := struct {
		Created  string   `json:"creationTime"`
		Prefixes []prefix `json:"prefixes"`
	}{now.UTC().Format(time.RFC3339), []prefix{}}
	for _, r := range b.Ranges {
		if !r.IsValid() {
			continue
		}
		p := prefix{V6: r.Masked().String()}
		if r.Addr().Is4() {
			p = prefix{V4: p.V6}
		}
		if b.Name != "" {
			p.Services = []string{b.Name}
		}
		doc.Prefixes = append(doc.Prefixes, p)
	}
	text, _ := json.Marshal(doc) // strings can always be marshalled
	return text
}

// page returns the page for site owners.
func (b Bot) page() string {
	var out strings.Builder
	name := html.EscapeString(b.Name)
	if name == "" {
		name = "This crawler"
	}
	fmt.Fprintf(&out, "<!doctype html>\n<html lang=en><meta charset=utf-8>\n<title>%s</title>\n", name)
	if len(b.Ranges) > 0 {
		fmt.Fprintf(&out, "<link rel=help href=%q>\n", RangesPath)
	}
	fmt.Fprintf(&out, "<h1>%s</h1>\n", name)
	if b.Purpose != "" {
		fmt.Fprintf(&out, "<p>%s</p>\n", html.EscapeString(b.Purpose))
	}
	if b.Name != "" {
		out.WriteString("<h2>How to keep it out</h2>\n<p>It obeys <code>robots.txt</code>. " +
			"To keep it from all pages of a host:</p>\n")
		fmt.Fprintf(&out, "<pre>User-agent: %s\nDisallow: /</pre>\n", name)
	}
	if marks := b.marks(); marks != "" {
		out.WriteString("<h2>How to recognize it</h2>\n<ul>\n" + marks + "</ul>\n")
	}
	if b.Contact != "" {
		fmt.Fprintf(&out, "<h2>Whom to ask</h2>\n<p>%s</p>\n", contactLink(b.Contact))
	}
	return out.String()
}

// marks returns the items of a list by which the bot can be recognized.
func (b Bot) marks() string {
	var out strings.Builder
	if b.UserAgent != "" {
		agent := html.EscapeString(b.UserAgent)
		fmt.Fprintf(&out, "<li>It sends <code>User-Agent: %s</code></li>\n", agent)
	}
	if len(b.Ranges) > 0 {
		fmt.Fprintf(&out, "<li>It comes from <a href=%q>these addresses</a>.</li>\n", RangesPath)
	}
	if b.Signer != nil {
		const form = "<li>It signs its requests (RFC 9421) with one of <a href=%q>these keys</a>.</li>\n"
		fmt.Fprintf(&out, form, DirectoryPath)
	}
	return out.String()
}

// contactLink returns an e-mail address or a URL as a link.
func contactLink(contact string) string {
	href := html.EscapeString(contact)
	switch {
	case strings.HasPrefix(contact, "https://"), strings.HasPrefix(contact, "http://"):
		return fmt.Sprintf(`<a href="%s" rel=nofollow>%s</a>`, href, href)
	case strings.Contains(contact, "@"):
		return fmt.Sprintf(`<a href="mailto:%s">%s</a>`, href, href)
	}
	return href
}
