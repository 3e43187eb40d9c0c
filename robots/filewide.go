package robots

import (
	"net/url"
	"slices"
	"strings"
)

// Sitemaps returns the sitemaps that the file names, each once, as written, in its order. They
// hold for all agents, and nothing says that they lie on the same host or are valid URLs.
func (f *File) Sitemaps() []string { return f.distinct(sitemapKind) }

// SitemapURLs returns the same as absolute URLs. The standard of sitemaps wants them absolute, but
// many files write a path: that is resolved against where the file was found, as a browser would
// resolve a link. What is no URL of http, https or ftp then is left out.
func (f *File) SitemapURLs(fileURL string) []string { return f.absolute(sitemapKind, fileURL) }

// Licenses returns the URLs of the License lines, which lead to the terms of use in the form of
// Really Simple Licensing 1.0. They are resolved and filtered like sitemaps.
func (f *File) Licenses(fileURL string) []string { return f.absolute(licenseKind, fileURL) }

// Host returns the value of the first Host line that has one, as written: the host that a site
// with several names prefers, as Yandex once read it.
func (f *File) Host() string {
	for host := range values(f.notes, f.text, hostKind) {
		if host != "" {
			return host
		}
	}
	return ""
}

// CleanParam is a Clean-param line, as Yandex reads it: query parameters that do not change the
// page.
type CleanParam struct {
	Names []string // of parameters; their case matters
	Path  string   // where that holds, a prefix with * as wildcard; empty means everywhere
}

// CleanParams returns the parameters that one may drop from URLs of the site. Lines that name no
// parameter are left out.
func (f *File) CleanParams() (all []CleanParam) {
	for value := range values(f.notes, f.text, cleanParamKind) {
		names, path := cutBlank(value)
		list := slices.DeleteFunc(strings.Split(names, "&"), func(s string) bool { return s == "" })
		if len(list) > 0 {
			all = append(all, CleanParam{list, path})
		}
	}
	return all
}

// cutBlank splits at the first run of blanks.
func cutBlank(s string) (before, after string) {
	i := strings.IndexAny(s, blanks)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], blanks)
}

// distinct returns the values of a kind that are not empty, each once.
func (f *File) distinct(of kind) (list []string) {
	seen := make(map[string]bool)
	for value := range values(f.notes, f.text, of) {
		if value != "" && !seen[value] {
			seen[value] = true
			list = append(list, value)
		}
	}
	return list
}

// absolute returns the values of a kind as URLs that one could ask for, each once.
func (f *File) absolute(of kind, fileURL string) (list []string) {
	base, err := url.Parse(fileURL)
	if err != nil {
		base = &url.URL{}
	}
	seen := make(map[string]bool)
	for _, value := range f.distinct(of) {
		found, err := base.Parse(value)
		if err != nil || found.Host == "" || defaultPorts[found.Scheme] == "" {
			continue
		}
		if text := found.String(); !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	return list
}
