package revisit

import "time"

// feeds is the prior of Feed: what publishes by the minute is as common as what publishes by the
// month. It has no data behind it, and five visits outweigh it.
var feeds = Prior{[cells]float32{
	.02, .05, .1, .2, .3, .5, .5, .5, .7, .8, 1, 1, 1, 1, 1, 1,
}}

// Feed returns the policy for what may change within the hour: feeds, sitemaps of news, front
// pages, prices. It differs from the zero [Bayes], which suits pages, in four fields: its Prior
// expects fast rates, Fair is a day, Min 15 minutes and Max a week. It is a starting point, so set
// what you know better; Price trades visits for versions as in any Bayes.
//
// Content that changes at a steady pace and has no LastModified is visited at these intervals:
//
//	changes     1st   2nd   3rd   4th   in 28 days              in a year
//	hourly      21h   8h    4h    3h    506 visits, 505 catch   6,928 visits
//	4-hourly    21h   8h    4h    3h    213 visits, 162 catch   2,889 visits
//	daily       21h   70h   47h   37h   25 visits, 20 catch     428 visits
//	weekly      21h   70h   95h   64h   10 visits, 3 catch      135 visits
//	never       21h   70h   95h   112h  7 visits                55 visits
//
// The numbers depend on when the first visit comes: of daily content, 24 to 37 visits catch 19 to 28
// versions. With the zero Bayes and a Max of a week, the hourly content gets 6 visits in the 28 days. The
// fastest rate that a History knows is 32 changes a day, so faster content is visited like hourly
// content. A LastModified saves visits where the pace is known from few of them: 145 instead of 213
// to 4-hourly content in 28 days.
func Feed() Bayes {
	return Bayes{
		Fair: 24 * time.Hour, Prior: feeds,
		Min: 15 * time.Minute, Max: 7 * 24 * time.Hour,
	}
}
