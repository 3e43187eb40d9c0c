// Package revisit decides when a page should be visited again.
//
// A [History] summarizes all visits to a page in 40 bytes. A [Policy] turns it into the time to
// wait after the last visit:
//
//	h = h.Observe(revisit.Visit{At: now, Changed: changed, LastModified: lastModified})
//	due := now.Add(revisit.Bayes{}.Next(h))
//
// [Bayes] is the recommendation. It keeps a belief about the page's rate of change. It starts from
// a typical [Prior], or from one learned from the host's other pages, forgets slowly, and has one
// setting, its price. [MLE] is the estimator of Tamura and Kitsuregawa (2008), and [AIMD] what they
// compare it with. [Scale] has the rules of Apache Nutch and StormCrawler, [Every] a fixed
// interval. All of them use the same history, so a crawler can change its policy and keep its data.
//
// # What hosts tell
//
// [Pulse] finds the rhythm of a host that publishes in bulk, and turns it into a clock for the
// policies. [Hints] learns how reliable a host's sitemaps and feeds are, and [Bayes.Hinted] weighs
// a hint, or the lack of one. [Demand] stretches the intervals of an overloaded host, and
// [Bayes.Worth] orders what is due.
//
// # What it promises
//
// Policies and Observe are pure functions: no clock, no goroutine, no allocation. Next lies between
// the policy's Min and Max for every history, and is 0 for the zero History: a page that was never
// visited is due immediately. UnmarshalBinary restores exactly what AppendBinary wrote; JSON, gob
// and database/sql use the same bytes.
//
// # What it costs
//
// Observe and Next of Bayes take 0.3 µs together. A host takes 64 bytes for its Pulse.
//
// # What it does not do
//
// It does not decide whether a change is significant; advertisements and counters change pages at
// every visit. It has no queue. The sub-package optimal has upper bounds for experiments.
package revisit
