// Package optimal has the yardsticks of revisit policies: the best that anyone could do who knew the
// pages' rates of change, and the classic estimators of those rates. It is for laboratories; a
// crawler needs only package revisit.
//
// [Allocate] and [Freshen] share a budget of visits among pages of known rates. [Rate] estimates a
// rate from all gaps between visits, and [CGM] is the policy built on the estimator of Cho and
// Garcia-Molina. All are pure functions of their arguments.
package optimal
