// Package pagerank ranks discovered pages while a crawl goes on, so that important pages come first.
//
// It is told of seeds and of the links of each fetched page, and returns the page to fetch next:
//
//	f := pagerank.NewURLs(pagerank.Options{})
//	f.Discover(seed)
//	for url, ok := f.Next(); ok; url, ok = f.Next() {
//		f.Fetched(url, fetchLinks(url))
//	}
//
// [URLs] keeps the URLs in a compact table. A [Frontier], which does the ranking, knows pages by
// dense ids: use it alone if your crawler has ids of its own.
//
// # Ranking
//
// This is incremental PageRank (Yamada, Takahashi, Taura and Chikayama, 2004): a page gets 1 when it
// is fetched and passes on its score to its links; a [Cutoff] sets how far that travels. The default,
// [Push], tracks residuals, which bounds the error, and considers page age and host. Options.Score
// adds an external worth, such as the verdict of a classifier. Package compare has the strategies
// of others and the exact PageRank of a whole graph.
//
// # Promises
//
// Each id is returned once, unless Discover queues it again. Ids come in order of their keys, exact to
// a sixteenth; equals come in order of discovery, and a page's links to other hosts first. The sum of
// scores is what was put in and passed on, also after pages were fetched again with other links. The
// same calls give the same order, with or without saving and loading in between.
//
// # Cost
//
// A page costs constant time per link, however far the crawl is; with Push, at most 1.5 score
// updates per link. An id takes 16 bytes and about 5 in the queue; 12 more where links are kept, which
// is all but DL1; and 4 more where Push knows hosts. A kept link takes 1.2 to 2.7 bytes, on disk with
// Options.Spill. The table of URLs takes 40 to 60 bytes a URL.
//
// # What it does not do
//
// It fetches nothing, and is polite only as far as [Frontier.NextReady] goes.
package pagerank
