// Package fetch fetches one URL within limits.
//
//	client, err := fetch.New(fetch.Options{UserAgent: "mybot/1.0 (+https://example.org/bot)"})
//	resp, err := client.Get(ctx, url)
//
// A [Client] makes one hop. A redirect is a result, so the caller can ask the scheduler and
// robots.txt about the next URL first. [Client.Transport] puts the same guards under any
// http.Client. The sub-package page finds the links of a page, sitemap reads sitemaps and feeds,
// botauth signs requests, cookies keeps them within bounds and brotli decodes that coding.
//
// # Promise
//
// Whatever a server does, one Get costs a bounded amount of traffic, time and memory, and at most
// three requests. Only public addresses are dialed, which is checked on the resolved address. Ports
// of other services are refused. Time, speed, headers, body and decompression ratio are limited,
// and Options.MaxMemory bounds the memory of all bodies together. If a limit is reached in the
// head, the result is an [Error]. If one is reached in the body, it is a [Response] with what has
// arrived, and Truncated says why the rest is missing. A local failure is never recorded as the
// server's: see [Canceled], [Proxy] and [CutMemory].
//
// net/http repeats a request if a kept-alive connection turns out to be dead before the first byte
// of the response, or if an HTTP/2 server asks for it; Attempts counts. Proxies of the environment
// and credentials in URLs are ignored.
//
// # Cost
//
// A Get of a 20 KB page takes about 1.2 times the CPU of net/http with a loop that discards the
// body. Half way through that page it holds 36 KiB of memory; net/http alone holds 30.
//
// # What it does not do
//
// It does not retry, wait, read robots.txt or follow redirects. Of bytes on an idle connection and of
// each odd frame of HTTP/2, net/http tells the standard logger, which a hostile server can use for 4 MB
// before a response, and during one for 25 MB and 40 times its body. A program should discard that.
//
// # Reading the source
//
// Start with fetch.go. Its heart is exchange.go, one request in flight, which decides whose fault a
// failure is. dial.go guards addresses, pace.go time and body.go memory. Package httpwire records
// heads, and content decodes bodies.
package fetch
