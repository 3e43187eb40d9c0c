// Package scan spreads documents over workers, and survives what documents do to them.
//
//	results := scan.Run(ctx, documents, scan.Filter("wc", "-c"), scan.Options{})
//	for result, err := range results {
//		...
//	}
//
// It is the parallel scan of Tamura and Kitsuregawa's web archive: a dispatcher holds each document
// until its result is back, gives the next one to whichever worker has nothing left to be sent, and
// sends it before the last result has come, so that no worker waits. The documents of a worker that
// dies go to others. One that kills its worker a second time is skipped and reported. Workers are
// restarted after so many documents, before their leaks matter.
//
// # Workers
//
// [Filter] runs an ordinary program once for each document. [Command] runs a child process that
// reads one document after the other, which saves starting a program for each. Either may crash,
// leak, hang or be killed by the system. [Func] runs a function in this process; a panic counts as
// its death, and so does hanging, though the goroutine cannot be ended then. Workers share nothing,
// and each works on one document at a time.
//
// # Protocol
//
// A child of [Command] reads documents from its standard input and writes one reply for each, in
// their order, to its standard output. Numbers are decimal; what follows a line are bytes of that
// length:
//
//	document: DOC id metaLength dataLength LF meta data
//	reply:    OK id length LF result
//	      or: FAIL id length LF message
//
// At the end of its input it has to exit, once it has replied to all. A reply that is anything else
// is a death, as is an exit with replies missing. [Serve] is the child's side for programs in Go.
//
// # What it does not do
//
// It keeps no results and does not merge them. A document whose worker died may have been seen by
// two workers, so that what workers do beside replying may happen twice.
package scan
