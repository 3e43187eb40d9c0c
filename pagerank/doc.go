// Package pagerank ranks discovered pages during a crawl, so that important pages are fetched
// first.
//
// Pass it seeds and the links of each fetched page. It returns the page to fetch next:
//
//	f := pagerank.NewURLs(pagerank.Options{})
//	f.Discover(seed)
//	for url, ok := f.Next(); ok; url, ok = f.Next() {
//		f.Fetched(url, fetchLinks(url))
//	}
//
// This is incremental PageRank (Yamada, Takahashi, Taura and Chikayama, 2004): a page gets 1 when
// it is fetched and passes on its score to its links; a [Cutoff] limits how far that travels.
// Options.Score adds an external score, such as the result of a classifier. [URLs] keeps the URLs
// in a compact table. A [Frontier] does the ranking and identifies pages by dense ids: use it
// directly if your crawler has ids. Package compare has other strategies, and the exact PageRank of
// a whole graph.
//
// # Promises
//
// Each page is returned once, also if the crawl goes on from a file, unless Discover queues it again, and
// never after Drop. Pages are returned in the order of their keys, with a precision of one sixteenth from
// 2^-48 to 2^48. Equal keys come in the order in which the pages got them, at first or again, with a page's links
// to other hosts first, and by id if their host was not ready. Stats bounds the error of the scores. No score is
// lost or invented, even if pages are fetched again with other links. Saving and reading change neither scores
// nor order, but no host is busy, and an id whose key fell and rose, or that was queued again, may change places.
//
// # Cost
//
// A page costs constant time per link, however far the crawl is; with Push, at most 1.5 score updates
// per link, one more if the link is taken back, and one more for each link of one page. An id takes 16
// bytes and about 5 in the queue. It takes 12 more if links are kept (all cutoffs but DL1), and 4 more if
// Push knows hosts. A kept link takes 1.2 to 2.7 bytes. The table of URLs takes 40 to 60 bytes per URL.
//
// It fetches nothing, and supports politeness only by [Frontier.NextReady].
//
// # Reading the source
//
// Start with frontier.go; its heart is Frontier.give in share.go. wave.go passes on residuals, hosts.go
// computes the keys. queue.go, newcomers.go and aside.go are the queue, links.go and names.go the memory.
package pagerank
