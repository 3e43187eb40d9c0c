// Package scan distributes documents to workers, and survives crashes of workers.
//
//	results := scan.Run(ctx, documents, scan.Filter("wc", "-c"), scan.Options{})
//	for result, err := range results {
//		...
//	}
//
// It is the parallel scan of Tamura and Kitsuregawa's web archive. A dispatcher keeps each document
// until its result arrives. It sends a worker with an empty queue the next document before the
// current result arrives, so that no worker is idle. The documents of a worker that dies go to
// others. A document that kills its worker twice is skipped and reported. Workers can be restarted
// after a number of documents, before their leaks matter.
//
// # Workers
//
// [Filter] runs an ordinary program once for each document. [Command] runs a child process that
// reads one document after the other, which saves starting a program for each. Either may crash,
// leak, hang or be killed by the system. [Func] runs a function in this process. A panic or a
// timeout counts as its death, but after a timeout its goroutine cannot be stopped. Workers share
// nothing, and each works on one document at a time.
//
// # Protocol
//
// A child of [Command] reads documents from its standard input and writes one reply for each, in
// order, to its standard output. Numbers are decimal; after each line come as many bytes as its
// lengths say:
//
//	document: DOC id metaLength dataLength LF meta data
//	reply:    OK id length LF result
//	      or: FAIL id length LF message
//
// At the end of its input it must send all replies and exit. An invalid reply counts as a death, as
// does an exit with missing replies.
//
// # What it does not do
//
// It neither stores nor merges results. A document whose worker died may be processed by two
// workers, so side effects of workers may happen twice.
package scan
