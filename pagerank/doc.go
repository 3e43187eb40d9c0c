// Package pagerank ranks discovered pages while a crawl goes on, so that important pages come
// first.
//
// It is told of seeds and of the links of each fetched page, and returns the page to fetch next:
//
//	f := pagerank.NewURLs(pagerank.Options{})
//	f.Discover(seed)
//	for url, ok := f.Next(); ok; url, ok = f.Next() {
//		f.Fetched(url, fetchLinks(url))
//	}
//
// This is incremental PageRank (Yamada, Takahashi, Taura and Chikayama, 2004): a page gets 1 when
// it is fetched and passes on its score to its links; a [Cutoff] sets how far that travels.
// Options.Score adds an external worth, such as the verdict of a classifier. [URLs] keeps the URLs
// in a compact table. A [Frontier] does the ranking and knows pages by dense ids: use it alone if
// your crawler has ids. Package compare has other strategies, and the exact PageRank of a whole
// graph.
//
// # Promises
//
// Each page is returned once, unless Discover queues it again. Pages come in order of their keys,
// exact to a sixteenth; equals come in order of discovery, and a page's links to other hosts first.
// Stats bounds the error of the scores. The sum of scores is what was put in and passed on, also
// after pages were fetched again with other links. Saving and loading do not change the order.
//
// # Cost
//
// A page costs constant time per link, however far the crawl is; with Push, at most 1.5 score
// updates per link. An id takes 16 bytes and about 5 in the queue; 12 more where links are kept,
// which is all but DL1; and 4 more where Push knows hosts. A kept link takes 1.2 to 2.7 bytes, on
// disk with Options.Spill. The table of URLs takes 40 to 60 bytes a URL.
//
// It fetches nothing, and is polite only as far as [Frontier.NextReady] goes.
//
// # Reading the source
//
// Start with frontier.go; its heart is Frontier.give in share.go. wave.go passes on residuals,
// hosts.go has the keys; queue.go, newcomers.go and aside.go are the order; links.go and names.go
// the memory.
package pagerank
