package page

import "slices"

// SrcsetURLs is srcsetURLs for strings.
func SrcsetURLs(s string) (urls []string) {
	for url := range srcsetURLs([]byte(s)) {
		urls = append(urls, string(url))
	}
	return slices.Clip(urls)
}

// RefreshURL is refreshURL for strings.
func RefreshURL(s string) string { return string(refreshURL([]byte(s))) }
