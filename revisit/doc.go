// Package revisit decides when a page should be visited again.
//
// What is known of a page is a [History]: 32 bytes, however often the page was visited. A [Policy]
// turns it into the time to wait from the last visit on:
//
//	h = h.Observe(revisit.Visit{At: now, Changed: changed, LastModified: lastModified})
//	due := now.Add(revisit.Bayes{}.Next(h))
//
// # Which policy
//
// [Bayes] is the recommendation. It keeps a belief about the page's rate of change, starts from
// what is usual (or from a [Prior] learned from the host's other pages), forgets slowly, and has
// one dial, its price. [MLE] is the estimator of Tamura and Kitsuregawa (2008), [AIMD] what they
// compare it with; [Scale] has the rules of Apache Nutch and StormCrawler, [CGM] the estimator of
// Cho and Garcia-Molina (2003), [Every] a fixed interval. One history serves all of them, so that
// a crawler can change its policy and keep its memory.
//
// # When there is more to do than time
//
// [Load] stretches the intervals of a crowded host by one factor, [Bayes.Worth] orders what is
// due, and [Allocate] and [Freshen] compute the best shares of a budget when the rates are known.
//
// # Invariants
//
// Policies and Observe are pure functions: no clock, no goroutine, no allocation. Next lies between
// the policy's Min and Max for every history that was ever observed, and is 0 for the zero History:
// a page never visited is due at once. What AppendBinary writes, UnmarshalBinary reads to the bit.
//
// # What it does not do
//
// It does not decide whether a change is a real one; advertisements and counters make pages change
// at each visit. It keeps no queue: that is the work of whoever calls it.
package revisit
