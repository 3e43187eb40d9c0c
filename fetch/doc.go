// Package fetch gets one URL within limits.
//
// A [Client] does one hop: a redirect is a result, not something it follows, so that the caller
// can ask the scheduler and robots.txt about the next URL first. The sub-package page finds the
// links of what was fetched, and sitemap reads sitemaps and feeds.
//
// # Limits
//
// Whatever a server does, one Get costs a bounded number of bytes and seconds, and memory. The
// guards are on by default: only public addresses are dialled (checked on the address itself,
// after resolving), and time, speed, header, body and decompression ratio are limited. A limit
// that is reached before the head of the response is complete is an [Error]; one that is reached
// in the body leaves a [Response] with what had come, and its Truncated field says why there is no
// more. Bodies are held in memory, or from some size on in files, if Options.Spool names a
// directory.
//
// # Requests on the wire
//
// One Get is one request, with one exception: when a kept-alive connection turns out to be dead
// before a byte of the response has come, net/http sends the request again on another one, and up
// to seven times, further and further apart, where an HTTP/2 server asks for it. Response.Attempts
// counts. No proxy is used, no credentials of a URL are sent, and cookies are kept only in a jar
// that Options names.
//
// # What it does not do
//
// It does not retry, wait, read robots.txt or follow redirects. Requests are signed by the
// sub-package botauth. Content codings beyond gzip, deflate and
// zstd are left to the decoders that Options names, such as that of the sub-package brotli. When a
// server sends bytes that nobody asked for, net/http says so in the standard logger.
package fetch
