//go:build unix

package spinneret_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/dedupe/simhash"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch/cookies"
	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/fetch/sitemap"
	"github.com/spinneret-go/spinneret/fetch/wall"
	"github.com/spinneret-go/spinneret/internal/httpfield"
	"github.com/spinneret-go/spinneret/robots/robotstag"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/robots/usage"
)

// A decoder is something that reads bytes which strangers wrote.
type decoder struct {
	name string
	run  func(input string)
	// Each input starts with the head. Then the atoms follow, in many combinations: as the pieces
	// of the format that open, close and hide other pieces, they provoke repeated searches.
	head  string
	atoms []string
}

var decoders = []decoder{
	{"page.Scan", func(in string) {
		all := page.Options{Styles: true, Meta: true, IDs: true, Text: func([]byte) {}}
		for range page.Scan([]byte(in), "http://a.test/", "text/html", all) {
		}
	}, "", []string{
		"<a", "<a href=x>", "</a>", "<svg>", "</svg>", "<g>", "</g>", "<math><mi>", "</p>", "<p>", "<desc>",
		"<table>", "<td>", "<b>", "</x>", "<x>", "<!--", "-->", "<![CDATA[", "<script>", "<!--<script", "<title>",
		"<style>", "<style>@import url(", "</", "\"", "<a b='", "&", "&am", "é", "\xff", "<noframes>", "<form>", "<frameset>",
		"<template>", "<select>", "<option>", "<font>", "<img srcset='a,(,'>", "x=\"\"",
	}},
	{"page.Links", func(in string) {
		for range page.Links([]byte(in), "http://a.test/", "text/html") {
		}
	}, "<p ", []string{"/", " a", " =", "=", "a", "'", "\"", " ", "='", ">", "<p", "</p", "<a", "href"}},
	{"page.Styles", func(in string) {
		for range page.Styles([]byte(in), "http://a.test/", "") {
		}
	}, "", []string{"url(", "url('", "@import", "/*", "*/", "\\", "'", "\n", ")", "a", "\\\r\n", "é", "\xff"}},
	{"page.HeaderLinks", func(in string) {
		for range page.HeaderLinks(map[string][]string{"Link": {in}}, "http://a.test/") {
		}
	}, "", []string{"<a>;rel=next,", "<", ">", ";", "=", "\"", "\\", ",", " ", "a", ";rel=\"a\""}},
	{"page.ToUTF8", func(in string) { page.ToUTF8([]byte(in), "") }, "", []string{
		"<meta charset", "<meta", "<", "charset=", "=", "'", "<?xml encoding", "é", "\xff", "<!--",
	}},
	{"sitemap.Entries", listSitemap, "<urlset><url><loc>", xmlAtoms},
	{"sitemap.Entries of Atom", listSitemap, "<feed><entry>", xmlAtoms},
	{"sitemap.Entries of RSS in Shift_JIS", listSitemap,
		"<?xml version='1.0' encoding='Shift_JIS'?><rss><item>", xmlAtoms},
	{"sitemap.Entries of text", listSitemap, "http://a.test/\n", []string{"\n", "\r", "x", "http://a.test/", "<", "\xff", " "}},
	{"wall.Of", func(in string) { wall.Of(200, http.Header{}, []byte(in)) }, "", []string{
		"_Incapsula_Resource", "id=\"anubis_version", "<", "a", "/.well-known/",
	}},
	{"cookies.Jar", fields(func(h http.Header) {
		var jar cookies.Jar
		u := &url.URL{Scheme: "https", Host: "a.b.test", Path: "/x/"}
		jar.SetCookies(u, (&http.Response{Header: h}).Cookies())
		jar.Cookies(u)
	}, "Set-Cookie"), "a=b;", append([]string{"Domain=.b.test;", "Path=/x;", "Expires=Wed, 1 Jan 2020;"}, fieldAtoms...)},
	{"the dates and ages of fetch", fields(func(h http.Header) {
		httpfield.RetryAfter(h, time.Now())
		httpfield.RateLimit(h)
		httpfield.FreshnessOf(h, time.Now())
	}, "Retry-After", "RateLimit", "Cache-Control", "Expires", "Date", "Age"), "", fieldAtoms},

	{"robotstxt.Parse and Match", func(in string) {
		f := robotstxt.Parse([]byte(in))
		for range f.SitemapURLs("http://a.test/robots.txt") {
		}
		rules := f.Rules("a")
		rules.Match("http://a.test/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")
		rules.Delay()
		for range rules.Records() {
		}
	}, "User-agent: *\n", []string{
		"User-agent: a\n", "User-agent: *\n", "Disallow: /a*a*b\n", "Allow: /*", "*", "a*", "$", "\n", "\r", ":", "#", " ",
		"Disallow: /", "Sitemap: x\n", "Crawl-delay: 1\n", "%41", "é", "\xff", "a",
	}},
	{"robotstag.FromHeader", fields(func(h http.Header) { robotstag.FromHeader(h, "a") }, "X-Robots-Tag"), "",
		append([]string{"noindex,", "a:", "unavailable_after:", "unavailable_after: 1 Jan 2020,"}, fieldAtoms...)},
	{"robotstag.FromMeta", func(in string) { robotstag.FromMeta("robots", in, "a") }, "", fieldAtoms},
	{"usage", fields(func(h http.Header) {
		usage.FromHeader(h)
		usage.ForSale(401, h)
	}, "Content-Usage", "WWW-Authenticate"), "", append([]string{"bots=n,"}, fieldAtoms...)},
	{"usage of robots.txt", func(in string) {
		f := robotstxt.Parse([]byte(in))
		usage.ContentUsage(f.Rules("a"), "http://a.test/")
		usage.ContentSignal(f.Rules("a"), "http://a.test/")
	}, "User-agent: *\n", []string{
		"Content-Usage: /a bots=n\n", "Content-Signal: search=yes\n", "bots=n,", ",", "=", "\n", "a", " ", "/",
	}},

	{"warc.Reader", readWARC(""), "WARC/1.1\r\nContent-Length: ", warcAtoms},
	{"warc.Reader, salvaging", readWARC("salvage"), "WARC/1.1\r\nContent-Length: ", warcAtoms},
	{"warc.Record.HTTP", func(in string) {
		readWARC("")(fmt.Sprintf("WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http;msgtype=response\r\n"+
			"Content-Length: %d\r\n\r\nHTTP/1.1 200 OK\r\n%s\r\n\r\n", len(in)+17, in))
	}, "", []string{"A: b\r\n", "\r\n", "\n", " ", "\t", ":", "Transfer-Encoding: chunked\r\n", "1\r\na\r\n", "0\r\n", "a", "\xff"}},

	{"weburl.Canonical", canonical, "http://a.test/", urlAtoms},
	{"weburl.Canonical of hosts", canonical, "http://", urlAtoms},
	{"weburl.Canonical of queries", canonical, "http://a.test/?", urlAtoms},
	{"weburl.Resolve", func(in string) { _, _ = weburl.Resolve("http://a.test/x/y", in) }, "", urlAtoms},
	{"simhash.Of", func(in string) { simhash.Of([]byte(in)) }, "", []string{"a", " ", "a ", "1", "日", "é", "\xff", "monday ", "."}},
}

// canonical makes all forms of a URL, of which none has more than MaxLength bytes.
func canonical(in string) {
	url, err := weburl.Canonical(in)
	if err == nil {
		weburl.SURT(url)
		weburl.Site(url)
	}
}

var urlAtoms = []string{
	"/", "//", "../", "./", "%", "%2e", "%2f", "%C3%A9", "é", "\xff", "?", "&", "a=b&", "#", ":", "@", ".", "a", "a.", "xn--", "1", "[", " ",
	"\t", "\\", ";", "utm_source=a&",
}

func readWARC(mode string) func(in string) {
	return func(in string) {
		r := warc.NewReader(strings.NewReader(in), warc.ReaderOptions{})
		defer r.Close()
		r.SetSalvage(mode == "salvage")
		for rec, err := range r.Records() {
			if err != nil {
				continue
			}
			if m, err := rec.HTTP(); err == nil {
				_, _ = io.Copy(io.Discard, m.Body)
			}
			_, _ = io.Copy(io.Discard, rec)
		}
	}
}

var warcAtoms = []string{
	"WARC/1.1\r\n", "\r\n", "\n", "Content-Length: 0\r\n", "Content-Length: 99999999999\r\n", ":", " ", "\t", "a", "A: b\r\n", "\x1f\x8b",
	"\x28\xb5\x2f\xfd", "0", "WARC-Type: response\r\n", "\xff",
}

var fieldAtoms = []string{",", ";", "=", "\"", "\\", " ", "a", "a=b", "max-age=1", "<", ">", "é", "\xff", ":", "*", "n", "?1", "(", ")"}

// fields returns a decoder of fields of a header.
func fields(run func(http.Header), names ...string) func(in string) {
	return func(in string) {
		h := http.Header{}
		for _, name := range names {
			h.Set(name, in)
		}
		run(h)
	}
}

func listSitemap(in string) {
	for range sitemap.Entries(strings.NewReader(in), "http://a.test/") {
	}
}

var xmlAtoms = []string{
	"<a", "<a>", "</a>", "<", ">", "</", "<!--", "-->", "<![CDATA[", "]]>", "<!x [", "]", "<?", "&", "&#x", ";",
	"<link a=''", "a=''", "a=", "'", "<loc>", "</loc>", "<url>", "</url>", "<entry>", "<link href=x>", "<item>", "<guid>", "x", " ",
}
