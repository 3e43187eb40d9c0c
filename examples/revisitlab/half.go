package main

import (
	"hash/fnv"
	"strings"
)

// halfOf splits pages into two halves, 1 and 2, so that parameters can be chosen on one of them and
// evaluated on the other. All pages of a site, and all years of a page, are in the same half: they
// change together, so a choice made on some of them is not independent of the rest.
func halfOf(page string) int {
	hash := fnv.New32a()
	hash.Write([]byte(siteOf(page)))
	// This bit of the hash hardly depends on the last character. That helps if names are numbers:
	// neighbors fall into the same half, ten at a time.
	return 1 + int(hash.Sum32()>>16&1)
}

// siteOf returns the host of a page, if its name contains one: "http://host/path" or
// "host.name/path". With any other name, each page is its own site.
func siteOf(page string) string {
	_, rest, isURL := strings.Cut(page, "://")
	if !isURL {
		rest = page
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host := rest[:end]
	if !isURL && (end == len(rest) || !strings.Contains(host, ".")) {
		return page
	}
	return strings.ToLower(host)
}

// ofHalf returns the pages of one half, or all of them if half is 0.
func ofHalf(pages []page, half int) (own []page) {
	if half == 0 {
		return pages
	}
	for _, p := range pages {
		if p.half == half {
			own = append(own, p)
		}
	}
	return own
}
