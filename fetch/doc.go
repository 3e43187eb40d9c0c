// Package fetch gets one URL within limits.
//
//	client, err := fetch.New(fetch.Options{UserAgent: "mybot/1.0 (+https://example.org/bot)"})
//	resp, err := client.Get(ctx, url)
//
// A [Client] does one hop: a redirect is a result, not something it follows, so that the caller
// can ask the scheduler and robots.txt about the next URL first. [Client.Transport] gives the same
// guards to any http.Client. The sub-package page finds the links of what was fetched, and sitemap
// reads sitemaps and feeds.
//
// # Promise
//
// Whatever a server does, one Get costs a bounded number of bytes, of seconds and of memory, and
// at most three requests. The guards are on by default: only public addresses are dialled (checked
// on the address itself, after resolving), ports of other services are refused, and time, speed,
// header, body and decompression ratio are limited. A limit that is reached before the head of the
// response is complete is an [Error]. One that is reached in the body leaves a [Response] with
// what had come, and its Truncated field says why there is no more. What all bodies take together
// is bounded by Options.MaxMemory.
//
// The caller's own trouble is told apart from the server's: see Canceled, Proxy and CutMemory.
//
// # Requests on the wire
//
// net/http sends a request again if a kept-alive connection turns out to be dead before a byte of
// the response has come, or if an HTTP/2 server asks for that. Response.Attempts and
// Error.Attempts count. No proxy of the environment is used, no credentials of a URL are sent, and
// cookies are kept only in a jar that the Options name.
//
// # What it does not do
//
// It does not retry, wait, read robots.txt or follow redirects. Requests are signed by the
// sub-package botauth. Content codings beyond gzip, deflate and zstd are left to the decoders that
// the Options name, such as that of the sub-package brotli. When a server sends bytes that nobody
// asked for, net/http says so in the standard logger.
package fetch
