// Package archivehttp records the responses of any net/http client.
//
//	client := &http.Client{Transport: archivehttp.NewTransport(nil, web)}
//	resp, err := client.Get("https://example.org/")
//	err = resp.Body.Close() // the capture is in the archive
//
// The client sees no difference. Each redirect is a separate capture. Bodies are decompressed if
// net/http would decompress them; the archive stores them as sent.
//
// # What is recorded
//
// A response is appended when its body has been read to the end or is closed. A body that was
// closed early or interrupted is recorded as far as it was read, and marked as truncated; so is one
// that a layer below ends before the length in its head. If one follows redirects, as an http.Client
// does, the last request is recorded; other changes by layers, as of the URL or the body, are not. A
// request without a response is not recorded. Neither are interim responses (1xx), trailers, and
// responses that a layer below keeps from the client. Of a 101, only the head is recorded.
//
// For HTTP/1, the heads are the bytes on the wire if the connection can be observed: with a nil
// base, an [*http.Transport], and a fetch.Client below any layers, see [NewTransport]. Otherwise,
// always for HTTP/2, they are rebuilt from the parsed fields. The record then has the field
// Spinneret-Heads: rebuilt.
//
// Requests are recorded with all their fields, but Authorization, Cookie and other secrets without
// their values, see [archive.Options]. A password in a URL is not recorded.
//
// A [Player] answers requests from an archive, for tests of clients without their servers.
//
// # Failures
//
// If a capture cannot be written, Close of its body returns the error. So does the next RoundTrip,
// without sending its request: http.Client and many callers ignore the error of Close. If no record can
// hold a response, because its URL is over 64 KiB, or its head or its request's over 1 MiB or 1,000 lines, only
// Close returns an error, [archive.ErrInvalid], so that no server can stop the requests to others.
//
// # Costs
//
// A body of up to 1 MiB is held in memory until it ends, a larger one in a temporary file. Beyond
// [archive.Archive.Append], a request costs a copy of its body and 30 allocations of 3 KB in total.
package archivehttp
