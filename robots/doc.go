// Package robots answers whether a URL may be fetched. It fetches and caches robots.txt files by
// RFC 9309.
//
//	rules := robots.NewCache(robots.Options{Agent: "examplebot"})
//	allowed, err := rules.Allowed(ctx, "https://example.com/page")
//
// [Cache.Allowed] and [Cache.Load] wait, and fetch what is missing. Package robotshttp does this
// for every request of a net/http client.
//
// A crawler that schedules its own requests for robots.txt calls [Cache.Lookup], which never waits
// but returns the request to make, and passes the response to [Cache.Store]. [Pending] does the
// same, and also keeps the URLs that wait for a robots.txt.
//
// # Promises
//
// One request is in flight per host, that is per scheme, name and port. Up to five redirects are
// followed, to any host; what they lead to holds for the host where they began (RFC 9309,
// 2.3.1.2). A status of 4xx other than 429, or a sixth redirect, means that there is no file: all
// is allowed. Everything else that is not a whole file means that the host is unreachable: the
// last copy holds, for however long, and without a copy nothing is allowed.
//
// What is not known is not allowed: the zero [Answer], and the rules returned with an error, forbid
// everything. A late response never overwrites a newer one. Our own failure, such as a canceled
// context, is never recorded as the host's.
//
// # Cost
//
// A lookup takes 0.2 µs and allocates nothing if the URL has a plain lower-case host. A host takes
// about 0.8 KiB without a file, and 3 KiB with a file of usual size. Options.MaxBytes bounds the
// sum, requests in flight included. No goroutine is kept running.
//
// # What it does not do
//
// It keeps everything in memory: [Cache.All] and [Cache.Restore] carry it over a restart. For
// directives in pages see package robotstag, for AI preferences package usage.
//
// # Reading the source
//
// response.go maps one response to a file (RFC 9309, 2.3.1). entry.go is the state of one host and
// how responses change it. cache.go keeps many hosts within a bound. load.go makes the requests.
package robots
