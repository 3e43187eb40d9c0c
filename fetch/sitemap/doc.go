// Package sitemap reads what a site says that it has: sitemaps, sitemap indexes and feeds.
package sitemap
