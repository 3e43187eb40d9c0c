// Package fetch gets one URL within limits.
//
//	client, err := fetch.New(fetch.Options{UserAgent: "mybot/1.0 (+https://example.org/bot)"})
//	resp, err := client.Get(ctx, url)
//
// A [Client] makes one hop. A redirect is a result, so the caller can ask the scheduler and
// robots.txt about the next URL first. [Client.Transport] puts the same guards under any
// http.Client. The sub-package page finds the links of a page, and sitemap reads sitemaps and
// feeds.
//
// # Promise
//
// Whatever a server does, one Get costs a bounded number of bytes, seconds and bytes of memory, and
// at most three requests. The guards are on by default:
//
//   - Only public addresses are dialed. The address itself is checked, after it was resolved.
//   - Ports of other services are refused.
//   - Time, speed, headers, body and decompression ratio are limited.
//
// If a limit is reached before the head of the response is complete, Get returns an [Error]. If it
// is reached in the body, Get returns a [Response] with what has arrived, and Truncated says why the
// rest is missing. Options.MaxMemory bounds the memory of all bodies together.
//
// The client's own trouble is never recorded as the server's: see [Canceled], [Proxy] and
// [CutMemory].
//
// # Cost
//
// A Get of a 20 KB page takes about 1.2 times the CPU of net/http with a loop that discards the
// body. A Get in flight of which half the page has arrived takes 36 KiB of memory, its buffer
// included; net/http alone takes 30. The program internal/bench/fetch measures both.
//
// # Requests on the wire
//
// net/http repeats a request if a kept-alive connection turns out to be dead before the first byte
// of the response, or if an HTTP/2 server asks for it. Response.Attempts and Error.Attempts count
// these. Proxies of the environment and credentials in URLs are ignored. Cookies are kept only in
// Options.Jar.
//
// # What it does not do
//
// It does not retry, wait, read robots.txt or follow redirects. The sub-package botauth signs
// requests, and brotli decodes that coding. If a server sends bytes that nobody asked for, net/http
// reports it through the standard logger.
//
// # Reading the source
//
// Start with fetch.go: New, Do and Release. Then exchange.go, one request in flight, which is the
// heart of the package: net/http reports to it, and it decides whose fault a failure is. dial.go
// has the address guard, pace.go the time limits, body.go, buffers.go and memory.go the body and
// its memory, coding.go the decoders, wire.go the recorder of heads. transport.go is the
// RoundTripper, which streams.
package fetch
