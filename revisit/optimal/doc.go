// Package optimal has the classic estimators of a page's rate of change, for experiments that
// compare policies with them; a crawler needs only package revisit.
//
// [Rate] estimates a rate from all gaps between visits, and [CGM] is the policy built on the
// estimator of Cho and Garcia-Molina. Both are pure functions of their arguments.
package optimal
