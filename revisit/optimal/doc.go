// Package optimal has the upper bounds for revisit policies: the best result possible if the pages'
// rates of change were known, and the classic estimators of those rates. It is for experiments; a
// crawler needs only package revisit.
//
// [Allocate] and [Freshen] share a budget of visits among pages of known rates. [Rate] estimates a
// rate from all gaps between visits, and [CGM] is the policy built on the estimator of Cho and
// Garcia-Molina. All are pure functions of their arguments.
package optimal
