// Package revisit decides when a page should be visited again.
//
// A [History] is what all visits to a page showed, in 40 bytes. A [Policy] turns it into the time
// to wait after the last visit:
//
//	h = h.Observe(revisit.Visit{At: now, Changed: changed, LastModified: lastModified})
//	due := now.Add(revisit.Bayes{}.Next(h))
//
// [Bayes] is the recommendation. It keeps a belief about the page's rate of change, starts from
// what is usual (or from a [Prior] learned from the host's other pages), forgets slowly, and has
// one dial, its price. [MLE] is the estimator of Tamura and Kitsuregawa (2008), [AIMD] what they
// compare it with; [Scale] has the rules of Apache Nutch and StormCrawler, [Every] a fixed
// interval. One history serves all of them, so a crawler can change its policy and keep its memory.
//
// # What hosts tell
//
// [Pulse] finds the rhythm of a host that publishes in bulk, and turns it into a clock on which
// policies work. [Hints] learns how reliable a host's sitemaps and feeds are, and [Bayes.Hinted]
// weighs a hint, or the lack of one. [Demand] stretches the intervals of an overloaded host, and
// [Bayes.Worth] orders what is due.
//
// # What it promises
//
// Policies and Observe are pure functions: no clock, no goroutine, no allocation. Next lies between
// the policy's Min and Max for every history that was ever observed, and is 0 for the zero History:
// a page that was never visited is due at once. What AppendBinary writes, UnmarshalBinary reads
// exactly; the same bytes go through JSON, gob and database/sql.
//
// # What it costs
//
// Observe and Next of Bayes take 0.5 µs together; a host takes 64 bytes for its Pulse.
//
// # What it does not do
//
// It does not decide whether a change is a real one; advertisements and counters make pages change
// at each visit. It has no queue. The sub-package optimal has yardsticks for laboratories.
package revisit
