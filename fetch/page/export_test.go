package page

import "slices"

// SrcsetURLs calls srcsetURLs with a string.
func SrcsetURLs(s string) (urls []string) {
	for url := range srcsetURLs([]byte(s)) {
		urls = append(urls, string(url))
	}
	return slices.Clip(urls)
}

// RefreshURL calls refreshURL with a string.
func RefreshURL(s string) string { return string(refreshURL([]byte(s))) }
