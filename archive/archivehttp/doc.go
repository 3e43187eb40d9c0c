// Package archivehttp records what any net/http client gets.
//
//	client := &http.Client{Transport: archivehttp.NewTransport(nil, web)}
//	resp, err := client.Get("https://example.org/")
//	...
//	err = resp.Body.Close() // the capture is in the archive
//
// The client sees what it would see without: redirects are captures of their own, bodies come
// decompressed where net/http would decompress them, and the archive gets them as they were sent.
//
// # What is recorded
//
// A response is appended when its body has been read to the end or is closed. A body that was
// closed early or broke off is recorded as far as it was read, and is marked as truncated. A
// request that got no response is not recorded. Neither are interim responses (1xx) and trailers.
//
// The heads are the bytes of the wire for HTTP/1 where the connection can be observed: with a nil
// base, an [*http.Transport], and any base whose connections have the method Heads, see
// [NewTransport]. Otherwise, and always for HTTP/2, they are put together from the parsed fields.
// The record then has the field Spinneret-Heads: rebuilt.
//
// Requests are recorded with all their fields, Authorization and Cookie included. A password in a
// URL is not.
//
// # Failures
//
// A capture that cannot be written is reported by Close of its body, and again by the next
// RoundTrip, which sends nothing then: http.Client and many callers ignore the error of Close.
//
// # Costs
//
// A body of up to 1 MiB is held in memory until it ends, a larger one in a temporary file. On top
// of [archive.Archive.Append] come a copy of the body and some 3 KB in 30 allocations per request.
package archivehttp
