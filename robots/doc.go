// Package robots answers whether a URL may be fetched. It fetches and caches robots.txt files by
// RFC 9309.
//
//	rules := robots.NewCache(robots.Options{Agent: "examplebot"})
//	allowed, err := rules.Allowed(ctx, "https://example.com/page")
//
// [Cache.Allowed] and [Cache.Load] wait, and fetch what is missing. Package robotshttp does this
// for every request of a net/http client.
//
// A crawler that schedules its own requests for robots.txt calls [Cache.Lookup] and [Cache.Store],
// which never wait. [Pending] does the same, and also holds the URLs that wait for a robots.txt.
//
// # Promises
//
// There is at most one request in flight per host (a scheme, name and port) until Options.Patience
// ends; where several users share a Cache, one for each [Pending], until one of them stores or abandons
// it. Up to five redirects are followed, to any host; the file they lead to applies to the host where
// they began (RFC 9309, 2.3.1.2). So a site decides where they go, even to private addresses or what
// other sites disallow: give Options.Client a transport that guards, as package fetch's. A 4xx status
// other than 407 and 429, or a 3xx that is not followed (a sixth, or one to no URL of up to 2 KiB), means that
// there is no file: all is allowed. Any other response without a complete file means that the host is
// unreachable. Then the last copy stays valid; without a copy nothing is allowed.
//
// The unknown is forbidden: the zero [Answer], and rules returned with an error, forbid everything.
// No late response overwrites a newer one, and no local failure is recorded as the host's.
//
// # Cost
//
// A lookup takes 0.2 µs, and allocates nothing if the host is plain lower case. A host takes 0.8 KiB,
// 3 KiB with a typical file, and 2 KiB more during a request. Options.MaxBytes bounds the total.
//
// # What it does not do
//
// It keeps everything in memory: save it with [Cache.All] and load it with [Cache.Restore]. For
// directives in pages see package robotstag, for AI preferences package usage.
//
// # Reading the source
//
// response.go maps one response to a file (RFC 9309, 2.3.1). entry.go is the state of one host and
// how responses change it. cache.go keeps many hosts within a bound. load.go makes the requests.
package robots
