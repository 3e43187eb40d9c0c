// Package pagerank ranks discovered pages while a crawl goes on, so that those that matter come first.
//
// A [Frontier] knows pages by dense numbers that the caller gives them. It is told of seeds and of
// the links of each page, and says what to fetch next:
//
//	f := pagerank.New(pagerank.Options{})
//	f.Discover(seed)
//	for id, ok := f.Next(); ok; id, ok = f.Next() {
//		f.Fetched(id, linksOf(id))
//	}
//
// # What it computes
//
// Incremental PageRank (Yamada, Takahashi, Taura and Chikayama, 2004): a page gets 1 when it is
// fetched and passes on its score to its links; a [Cutoff] says how far that goes on. DL1, PL, VR and
// AR are the paper's. The default, [Push], keeps book of what was not passed on, which bounds the
// error, and heeds age and hosts. A page costs constant time per link, however far the crawl is.
//
// [BreadthFirst], [BackLinks], [Batch], [OPIC] and [RankMass] are there to compare with, and [Exact]
// computes the PageRank of a whole [Graph].
//
// # Invariants
//
// Each id is handed out once, unless Discover asks for it again. Ids come out by score (with Push,
// by more than that), exact to a sixteenth; those alike in the order in which they were found, on
// each page links to other hosts first. The sum of scores is what was put in and what was passed on,
// also after pages were fetched again with other links. The same calls give the same order. A
// frontier that was saved and loaded goes on as the one that was saved.
//
// # Memory
//
// 16 bytes per id and about 5 in the queue, 12 more per id where links are kept, which is all but
// DL1, 4 more where Push knows hosts, and 8 more from the first host on that was not ready; 1.2 to
// 2.7 bytes per kept link. A GiB holds 50 million ids with DL1 and 30 million with links on disk
// (Options.Spill). On Linux, big pages are asked for.
//
// # What it does not do
//
// It knows no URLs, fetches nothing, and is not polite by itself: see [Frontier.NextReady].
package pagerank
