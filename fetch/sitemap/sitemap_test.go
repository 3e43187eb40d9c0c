package sitemap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spinneret-go/spinneret/fetch/sitemap"
	"github.com/spinneret-go/spinneret/internal/weburl"
	"github.com/stretchr/testify/require"
)

const sitemapURL = "https://a.test/maps/sitemap.xml"

// entries returns the entries that Sitemap yields, one string for each, and its error.
func entries(r io.Reader) (found []string, err error) {
	for e, err := range sitemap.Entries(r, sitemapURL) {
		if err != nil {
			return found, err
		}
		kind := map[sitemap.Kind]string{
			sitemap.Page: "page", sitemap.Sitemap: "sitemap", sitemap.Item: "feed",
		}[e.Kind]
		text := kind + " " + e.URL
		if !e.LastMod.IsZero() {
			text += " " + e.LastMod.UTC().Format("2006-01-02T15:04:05Z")
		}
		found = append(found, text)
	}
	return found, nil
}

// TestItemsHaveTitlesAndIDs reads what a feed says about an item besides its URL.
func TestItemsHaveTitlesAndIDs(t *testing.T) {
	for name, tt := range map[string]struct{ doc, title, id string }{
		"RSS": {`<rss><channel><title>no</title><item><title>A &amp;amp; <![CDATA[<b>B</b>]]>
			c</title><link>/x</link><guid isPermaLink="false">tag:1</guid><media:title>no</media:title></item>`,
			"A &amp; <b>B</b> c", "tag:1"},
		"RSS with a permalink": {`<rss><channel><item><guid>http://a.test/1</guid></item>`, "", "http://a.test/1"},
		"RSS 1.0":              {`<rdf:RDF xmlns:rdf="r"><item><title>A</title><link>/x</link></item>`, "A", ""},
		"Atom": {`<feed><id>no</id><entry><id> urn:1 </id><title type="xhtml"><div>A <i>B</i></div></title>
			<link href="/x"/><source><id>no</id><title>no</title></source></entry></feed>`, "A B", "urn:1"},
		"Latin-1":       {"<?xml version='1.0' encoding='latin1'?><feed><entry><title>\xe9</title><link href='/x'/></entry>", "é", ""},
		"invalid UTF-8": {"<feed><entry><title>éééé\xe9</title><id>\xff</id><link href='/x'/></entry>", "éééé\uFFFD", "\uFFFD"},
		"a sitemap":     {`<urlset><url><title>no</title><id>no</id><loc>/x</loc></url>`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			for e, err := range sitemap.Entries(strings.NewReader(tt.doc), sitemapURL) {
				require.NoError(t, err)
				require.Equal(t, tt.title, e.Title)
				require.Equal(t, tt.id, e.ID)
				n++
			}
			require.Equal(t, 1, n)
		})
	}
}

func TestSitemap(t *testing.T) {
	const ns = ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`
	tests := []struct {
		name, doc string
		want      string // lines
	}{
		{"empty", `<urlset` + ns + `></urlset>`, ``},
		{"all fields", `<?xml version="1.0" encoding="UTF-8"?>
			<urlset` + ns + `><url><loc>https://a.test/?a=1&amp;b=2</loc>
			<lastmod>2005-01-01</lastmod><changefreq>Monthly</changefreq><priority>0.8</priority>
			</url></urlset>`, `page https://a.test/?a=1&b=2 2005-01-01T00:00:00Z`},
		{"fields in another order", `<urlset><url><priority>1.0</priority><loc> x </loc></url></urlset>`,
			`page https://a.test/maps/x`},
		{"invalid fields", `<urlset><url><loc>x</loc><priority>high</priority>
			<lastmod>yesterday</lastmod><changefreq>often</changefreq></url><url><loc>y</loc>
			<priority>7</priority></url></urlset>`,
			"page https://a.test/maps/x\npage https://a.test/maps/y"},
		{"an entry without a URL", `<urlset><url><lastmod>2005</lastmod></url><url><loc>x</loc></url>
			</urlset>`,
			`page https://a.test/maps/x`},
		{"RSS 1.0 with a prefix", `<rdf:RDF xmlns:s="s"><s:channel><s:link>no</s:link></s:channel><s:item><s:link>x</s:link>
			<link>no</link></s:item><item><link>no</link></item></rdf:RDF>`, `feed https://a.test/maps/x`},
		{"a relation in full", `<feed><entry><link rel="self" href="no"/><link
			rel="http://www.iana.org/assignments/relation/alternate" href="x"/></entry></feed>`, `feed https://a.test/maps/x`},
		{"a declaration without its end", `<?xml version="1.0"><urlset><url><loc>x</loc></url><?y?><url><loc>z</loc></url>`,
			"page https://a.test/maps/x\npage https://a.test/maps/z"},
		{"unusable URLs", `<urlset><url><loc>ftp://a.test/</loc></url><url><loc>http://[/</loc>
			</url><url><loc>http://u:p@b.test/#f</loc></url></urlset>`, `page http://b.test/`},
		{"CDATA", `<urlset><url><loc><![CDATA[https://a.test/?a&b]]></loc></url></urlset>`,
			`page https://a.test/?a&b`},
		{"extensions", `<urlset xmlns:image="i"><url><loc>x</loc><image:image><image:loc>i.png</image:loc>
			</image:image><xhtml:link rel="alternate" href="de"/><loc>no</loc></url></urlset>`,
			`page https://a.test/maps/x`},
		{"a prefix for everything", `<s:urlset xmlns:s="x"><s:url><s:loc>x</s:loc><loc>no</loc></s:url>
			</s:urlset>`, `page https://a.test/maps/x`},
		{"an index", `<sitemapindex` + ns + `><sitemap><loc>one.xml.gz</loc><lastmod>
			2004-10-01T18:23:17+00:00</lastmod></sitemap></sitemapindex>`,
			`sitemap https://a.test/maps/one.xml.gz 2004-10-01T18:23:17Z`},
		{"a byte order mark and white space", "\xef\xbb\xbf \n<urlset><url><loc>x</loc></url></urlset>",
			`page https://a.test/maps/x`},
		{"Latin-1", "<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>\xe9</loc></url>" +
			"</urlset>",
			`page https://a.test/maps/%C3%A9`},
		{"an encoding that is declared twice",
			strings.Repeat("<?xml version='1.0' encoding='latin1'?>", 2) + "<urlset><url><loc>\xe9</loc></url></urlset>",
			`page https://a.test/maps/%C3%A9`},
		{"a URL that is too long, in two pieces", "<urlset><url><loc>" +
			strings.Repeat("x", 8<<10+1) + "<![CDATA[no]]></loc></url><url><loc>x</loc></url>",
			`page https://a.test/maps/x`},
		{"unescaped brackets", `<rss><item><title>1 < 2 <b <3</title><link>/1</link><description>a <b c="<"
			> & <br> <p>text</description></item><item><title><</title><link>/2</link></item></rss><<`,
			"feed https://a.test/1\nfeed https://a.test/2"},
		{"unescaped ampersands", `<urlset><url><loc>/?a=1&b=2&copy=3&amp;d&#38;e&#x26;&;&#0;&#xfffffff;</loc></url>
			</urlset>`, `page https://a.test/?a=1&b=2&copy=3&d&e&&;&`},
		{"a URL in an index without a loc", `<sitemapindex><sitemap> /1.xml </sitemap><sitemap><lastmod>2005-01-01</lastmod>
			/2.xml</sitemap><sitemap><loc>/3.xml</loc>junk</sitemap></sitemapindex>`,
			"sitemap https://a.test/1.xml\nsitemap https://a.test/2.xml 2005-01-01T00:00:00Z\nsitemap https://a.test/3.xml"},
		{"wrong namespaces", `<urlset xmlns="http://www.google.com/schemas/sitemap/0.84"><x:url xmlns:x="y"><x:loc>/1</x:loc>
			</x:url><url><y:loc>/2</y:loc><image:loc>/no</image:loc></url></urlset>`,
			"page https://a.test/1\npage https://a.test/2"},
		{"capitals", `<URLSET><Url><LOC>/1</LOC><LastMod>2005-01-01</LastMod></Url></URLSET>`,
			"page https://a.test/1 2005-01-01T00:00:00Z"},
		{"elements that are not closed", `<urlset><url><loc>/1<url><loc>/2</loc><url><loc>/3</loc></url><url>
			<loc>/4</url></urlset>`,
			"page https://a.test/1\npage https://a.test/2\npage https://a.test/3\npage https://a.test/4"},
		{"HTML in a description", `<rss><channel><item><description><p>one<br><img src=x><b>two</description>
			<link>/1</link></item></channel></rss>`, "feed https://a.test/1"},
		{"a comment with a bracket, a doctype with more", `<?xml version="1.0"?><!DOCTYPE urlset [ <!ELEMENT url (loc)> ]>
			<!-- > <url><loc>no</loc></url> --><urlset><url><loc>/1</loc></url></urlset>`, "page https://a.test/1"},
		{"an unknown encoding", "<?xml version='1.0' encoding='klingon'?><urlset><url><loc>/1</loc></url></urlset>",
			"page https://a.test/1"},
		{"windows-1251", "<?xml version='1.0' encoding='windows-1251'?><urlset><url><loc>/\xef</loc></url></urlset>",
			"page https://a.test/%D0%BF"},
		{"Shift_JIS", "<?xml version='1.0' encoding='Shift_JIS'?><rss><item><title>\x83\x5c</title><link>/\x94\x5c</link>" +
			"</item></rss>", "feed https://a.test/%E8%83%BD"},
		{"EUC-JP", "<?xml version='1.0' encoding='EUC-JP'?><urlset><url><loc>/\xc7\xad</loc></url></urlset>",
			"page https://a.test/%E7%8C%AB"},
		{"ISO-2022-JP", "<?xml version='1.0' encoding='ISO-2022-JP'?><rss><item><title>\x1b$B<a>b\x1b(B</title>" +
			"<link>/\x1b$BG-\x1b(B</link></item></rss>", "feed https://a.test/%E7%8C%AB"},
		{"UTF-16 with a BOM", utf16("\uFEFF<?xml version='1.0' encoding='UTF-16'?><urlset><url><loc>/п</loc></url></urlset>"),
			"page https://a.test/%D0%BF"},
		{"UTF-16 without a BOM", utf16("<?xml version='1.0'?><urlset><url><loc>/п</loc></url></urlset>"),
			"page https://a.test/%D0%BF"},
		{"a list in UTF-16", utf16("\uFEFFhttps://a.test/1\r\nhttps://a.test/п\r\n"),
			"page https://a.test/1\npage https://a.test/%D0%BF"},
		{"wrongly declared as UTF-16", "<?xml version='1.0' encoding='UTF-16'?><urlset><url><loc>/п</loc></url></urlset>",
			"page https://a.test/%D0%BF"},
		{"wrongly declared as Latin-1", "<?xml version='1.0' encoding='iso-8859-1'?><!-- привет --><urlset><url><loc>/п</loc></url></urlset>",
			"page https://a.test/%D0%BF"},
		{"wrongly declared as UTF-8", "<?xml version='1.0' encoding='utf-8'?><urlset><url><loc>/1\xe9</loc></url></urlset>",
			"page https://a.test/1%EF%BF%BD"},
		{"an entry within a loc", `<urlset><url><loc><url><![CDATA[/?a=1&b]]></url></loc><lastmod>2005-01-01</lastmod></url>
			<url><loc>/2</loc></url></urlset>`, "page https://a.test/?a=1&b\npage https://a.test/2"},
		{"a surplus end tag", `<urlset><url><!-- nothing --></url><url><loc> /1</loc></url></url></urlset>`,
			"page https://a.test/1"},
		{"a loc in two pieces", `<sitemapindex><sitemap><loc>/dyn<![CDATA[?date=last&all=no]]></loc></sitemap></sitemapindex>`,
			"sitemap https://a.test/dyn?date=last&all=no"},
		{"cut after a loc", `<urlset><url><loc>/1</loc>`, `page https://a.test/1`},
		{"cut in a loc", `<urlset><url><loc>/1</loc></url><url><loc>/cut`, `page https://a.test/1`},
		{"cut between entries", `<urlset><url><loc>x</loc></url><url>`, `page https://a.test/maps/x`},
		{"too many end tags", `<urlset><url><loc>x</loc></url></a></b></c></d><url><loc>y</loc></url>`,
			"page https://a.test/maps/x\npage https://a.test/maps/y"},
		{"brackets in values", `<urlset x:a='"a>b"'><url><x:y label="a > b"/><loc x:a = '>'>/1</loc><x:y t=">">no</x:y></url></urlset>`,
			"page https://a.test/1"},
		{"brackets in the values of links", `<feed><entry><link title="a > b" href='/?q=a>b'/></entry><entry>
			<link title=">" rel="enclosure" href="/no"/><link href="/2"/></entry></feed>`,
			"feed https://a.test/?q=a%3Eb\nfeed https://a.test/2"},
		{"quotes that are not closed", `<rss><channel a="><item b='><link>/1</link><x y=">"</x></item><item><link a="b'>/2</link></item>`,
			"feed https://a.test/1\nfeed https://a.test/2"},
		{"processing instructions", `<?x <urlset a="> ?><urlset><url><loc><?x a > <b> ?>/1<?x?><?>></loc></url></urlset>`,
			"page https://a.test/1%3E"},
		{"processing instructions without an end", `<?x ><urlset><?y ><url><loc>/1</loc></url><?z ></urlset>`, "page https://a.test/1"},
		{"attributes with a prefix", `<feed><entry><link x:rel="edit" x:href="/no" href="/1"/></entry></feed>`, "feed https://a.test/1"},
		{"a base", `<feed xml:base="/dir/"><entry xml:base="/no/"><link href="x"/></entry></feed>`, "feed https://a.test/dir/x"},
		{"an unusable base", `<feed xml:base="urn:x"><entry><link href="x"/></entry></feed>`, "feed https://a.test/maps/x"},

		{"RSS 2.0", `<rss version="2.0"><channel><title>t</title><link>https://a.test/</link>
			<atom:link href="self" rel="self"/><image><link>no</link></image><item><title>one</title>
			<link>/1</link><guid>https://a.test/no</guid><pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate>
			<source><link>no</link></source></item><item><guid>https://a.test/2</guid>
			<pubDate>Sun, 8 Sep 02 00:00:01 +0100</pubDate></item><item><guid isPermaLink="false">7</guid>
			</item><item><guid isPermaLink="false">https://a.test/3</guid></item></channel></rss>`,
			"feed https://a.test/1 2002-09-07T00:00:01Z\nfeed https://a.test/2 2002-09-07T23:00:01Z\nfeed https://a.test/3"},
		{"RSS 1.0", `<rdf:RDF xmlns="http://purl.org/rss/1.0/"><channel rdf:about="x"><link>no</link>
			</channel><item rdf:about="1"><link>1</link><dc:date>2003-12-13</dc:date></item></rdf:RDF>`,
			`feed https://a.test/maps/1 2003-12-13T00:00:00Z`},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom"><link href="/"/><updated>2003-12-13T18:30:02Z
			</updated><entry><title>x</title><link rel="edit" href="no"/><link href="/1"/><link
			rel="alternate" href="no"/><published>2003-01-01T00:00:00Z</published><updated>
			2003-12-13T18:30:02.25Z</updated><source><updated>2009-01-01</updated></source></entry><entry>
			<link rel="alternate" href="/2"/><updated>2004-01-01</updated><published>2003-01-01</published>
			</entry></feed>`,
			"feed https://a.test/1 2003-12-13T18:30:02Z\nfeed https://a.test/2 2004-01-01T00:00:00Z"},

		{"text", "https://a.test/1\r\n\nnot a URL\n  https://a.test/2  \nhttps://a.test/3",
			"page https://a.test/1\npage https://a.test/2\npage https://a.test/3"},
		{"text with the line breaks of old Macs", "https://a.test/1\rhttps://a.test/2\r\rhttps://a.test/3",
			"page https://a.test/1\npage https://a.test/2\npage https://a.test/3"},
		{"text with a line that is too long", "https://a.test/1\nhttps://a.test/" +
			strings.Repeat("x", 2*8<<10) + "\nhttps://a.test/3",
			"page https://a.test/1\npage https://a.test/3"},
		{"text with a line as long as a URL may be",
			"  https://a.test/" + strings.Repeat("x", 8<<10-len("https://a.test/")) + "  \r\n",
			"page https://a.test/" + strings.Repeat("x", 8<<10-len("https://a.test/"))},
		{"no text", "", ""},
		{"white space", " \n\t", ""},
	}
	for _, tt := range tests {
		for name, read := range map[string]io.Reader{
			"plain":    strings.NewReader(tt.doc),
			"gzip":     strings.NewReader(zipped(t, tt.doc)),
			"bytewise": iotest.OneByteReader(strings.NewReader(tt.doc)),
		} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				got, err := entries(read)
				require.NoError(t, err)
				require.Equal(t, tt.want, strings.Join(got, "\n"))
			})
		}
	}
}

// hostile is an endless document: head, and then text repeatedly. It counts the bytes that were
// read.
type hostile struct {
	head, text string
	read       int
	rest       string
}

func (h *hostile) Read(p []byte) (n int, err error) {
	if h.read == 0 {
		h.rest = h.head
		h.text = strings.Repeat(h.text, 1+len(p)/len(h.text))
	}
	for n < len(p) {
		if h.rest == "" {
			h.rest = h.text
		}
		k := copy(p[n:], h.rest)
		h.rest = h.rest[k:]
		n += k
	}
	h.read += n
	return n, nil
}

func TestSitemapLimits(t *testing.T) {
	t.Parallel()
	const buffer = 8192
	url := "<url><loc>x</loc></url>"
	tests := []struct {
		name, head, text string
		read             int // at most
		entries          int
		want             error
	}{
		{"too many entries", "<urlset>", url, 50_001 * len(url), 50_000, sitemap.ErrTooLarge},
		{"too many lines", "http://a.test/", "\nhttp://a.test/", 50_001 * 15, 50_000,
			sitemap.ErrTooLarge},
		{"an endless tag", "<urlset ", "many-attributes=x ", sitemap.MaxToken, 0,
			sitemap.ErrTooLarge},
		{"an endless text", "<urlset><url><loc>", "x", sitemap.MaxToken, 0,
			sitemap.ErrTooLarge},
		{"an endless comment", "<urlset><!--", "- ", sitemap.MaxToken, 0, sitemap.ErrTooLarge},
		{"an endless line", "http://a.test/", strings.Repeat("x", 4096), sitemap.MaxBytes, 0,
			sitemap.ErrTooLarge},
		{"a page", "<!doctype html><html>", "<p>", buffer, 0, sitemap.ErrFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &hostile{head: tt.head, text: tt.text}
			got, err := entries(h)
			require.ErrorIs(t, err, tt.want)
			require.Len(t, got, tt.entries)
			require.LessOrEqual(t, h.read, tt.read+buffer)
		})
	}
}

// A base makes each of 50,000 URLs as long as itself. What the document says itself may be long.
func TestALongBase(t *testing.T) {
	t.Parallel()
	total := func(text string) (entries, bytes int, err error) {
		for e, err := range sitemap.Entries(strings.NewReader(text), sitemapURL) {
			if err != nil {
				return entries, bytes, err
			}
			entries, bytes = entries+1, bytes+len(e.URL)
		}
		return entries, bytes, nil
	}
	base := "https://a.test/" + strings.Repeat("d/", 4000)
	_, bytes, err := total(`<urlset xml:base="` + base + `">` + strings.Repeat("<url><loc>x</loc></url>", 5000))
	require.ErrorIs(t, err, sitemap.ErrTooLarge)
	require.LessOrEqual(t, bytes, 9<<20)

	for _, path := range []string{strings.Repeat("d/", 4000), strings.Repeat("é", 1000)} {
		n := 16<<20/len(path) + 1
		entries, bytes, err := total("<urlset>" + strings.Repeat("<url><loc>https://a.test/"+path+"</loc></url>", n))
		require.NoError(t, err)
		require.Equal(t, n, entries)
		require.Greater(t, bytes, 16<<20)
	}
}

// The limit on a whole document is lowered, because parsing 50 MiB takes long.
func TestSitemapOfManyBytes(t *testing.T) {
	for _, h := range []*hostile{
		{head: "<urlset>", text: "<a>"},
		{head: "<urlset>", text: "<url><loc>x</loc>"},
		{head: " ", text: " "},
		{head: "http://a.test/", text: strings.Repeat("\n", 4096)},
		{head: zipped(t, "<urlset>"), text: zipped(t, "")}, // empty members
	} {
		require.ErrorIs(t, sitemap.SitemapWithin(h, sitemapURL, 100_000), sitemap.ErrTooLarge)
		require.LessOrEqual(t, h.read, 100_000+8192, "%+v", h)
	}
}

func TestSitemapErrors(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name    string
		in      io.Reader
		entries int
		want    error // nil: any
	}{
		{"no sitemap", strings.NewReader("just text\n"), 0, sitemap.ErrFormat},
		{"one long line", strings.NewReader(strings.Repeat("{json},", 5000)), 0, sitemap.ErrFormat},
		{"another document", strings.NewReader("<svg/>"), 0, sitemap.ErrFormat},
		{"a document without elements", strings.NewReader("<!-- -->"), 0, sitemap.ErrFormat},
		{"cut in a tag", strings.NewReader("<urlset><url><loc>x</loc></url><url><lo"), 1, io.ErrUnexpectedEOF},
		{"cut in the end tag of a loc", strings.NewReader("<urlset><url><loc>x</lo"), 1, io.ErrUnexpectedEOF},
		{"cut in a tag after a loc", strings.NewReader("<urlset><url><loc>x</loc><las"), 1, io.ErrUnexpectedEOF},
		{"cut in a section of a loc", strings.NewReader("<urlset><url><loc>x<![CDATA[?"), 0, io.ErrUnexpectedEOF},
		{"cut in a tag within a loc", strings.NewReader("<urlset><url><loc>x<b"), 0, io.ErrUnexpectedEOF},
		{"cut in a comment", strings.NewReader("<urlset><url><loc>x</loc></url><!-- "), 1, io.ErrUnexpectedEOF},
		{"bad gzip", strings.NewReader("\x1f\x8bxxxxxxxxxxxxxxxxxxxxx"), 0, nil},
		{"gzip cut short", strings.NewReader(zipped(t, "http://a.test/\n"+noise(9000))[:5000]), 1,
			io.ErrUnexpectedEOF},
		{"a reader that fails", io.MultiReader(strings.NewReader("<urlset><url><loc>x</loc></url>"),
			iotest.ErrReader(broken)), 1, broken},
		{"a reader that fails at once", iotest.ErrReader(broken), 0, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := entries(tt.in)
			require.Error(t, err)
			require.Len(t, got, tt.entries)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
		})
	}
	for _, err := range sitemap.Entries(strings.NewReader("http://a.test/"), "no base") {
		require.ErrorIs(t, err, weburl.ErrNoBase)
	}
}

// A gzip file of a few kilobytes can hold megabytes of text in which no entry is found.
func TestMembersOfAGzipFile(t *testing.T) {
	doc := zipped(t, `<urlset><url><loc>x</loc>`) + zipped(t, `</url></urlset>`) + "\x00padding"
	found, err := entries(strings.NewReader(doc))
	require.NoError(t, err)
	require.Equal(t, []string{"page https://a.test/maps/x"}, found)
}

// A site in many languages lists them all with each URL, which gzip packs better than 100 to 1. A bomb
// is no more than a plain document of its size.
func TestAGzipFileMayBePackedWell(t *testing.T) {
	var all strings.Builder
	for group := range 50 {
		var alternates strings.Builder
		for lang := range 40 {
			fmt.Fprintf(&alternates, "<xhtml:link rel='alternate' hreflang='l%d' href='https://a.test/l%d/item-%d'/>\n", lang, lang, group)
		}
		for lang := range 40 {
			fmt.Fprintf(&all, "<url><loc>https://a.test/l%d/item-%d</loc>\n%s</url>\n", lang, group, &alternates)
		}
	}
	text := "<urlset>" + all.String() + "</urlset>"
	packed := zipped(t, text)
	require.Greater(t, len(text), 100*len(packed))
	got, err := entries(strings.NewReader(packed))
	require.NoError(t, err)
	require.Len(t, got, 50*40)

	bomb := zipped(t, "<urlset><url><loc>x</loc></url>"+strings.Repeat(" ", 1_000_000))
	require.ErrorIs(t, sitemap.SitemapWithin(strings.NewReader(bomb), sitemapURL, 900_000), sitemap.ErrTooLarge)
}

// What a document declares about its encoding costs nothing if it is wrong.
func TestWrongDeclarations(t *testing.T) {
	far := strings.Repeat("<url><loc>x</loc></url>", 1000)
	for _, tt := range []struct{ encoding, text, want string }{
		{"iso-2022-kr", "<url><loc>/a</loc></url>", "https://a.test/a"},
		{"iso-2022-jp", "<url><loc>/éèçà</loc></url>", "https://a.test/%C3%A9%C3%A8%C3%A7%C3%A0"},
		{"hz-gb-2312", "<url><loc>/é</loc></url>", "https://a.test/%C3%A9"},
		{"iso-8859-1", far + "<url><loc>/éèçà</loc></url>", "https://a.test/%C3%A9%C3%A8%C3%A7%C3%A0"},
		{"iso-8859-1", far + "<url><loc>/\xe9\xe8</loc></url>", "https://a.test/%C3%A9%C3%A8"},
		{"windows-1251", far + "<url><loc>/\xcf\xb8\xf2\xf0</loc></url>", "https://a.test/%D0%9F%D1%91%D1%82%D1%80"},
		{"shift_jis", far + "<url><loc>/\x93\x8c\x8b\x9e</loc></url>", "https://a.test/%E6%9D%B1%E4%BA%AC"},
		{"iso-2022-jp", far + "<url><loc>/\x1b$BEl5~\x1b(B</loc></url>", "https://a.test/%E6%9D%B1%E4%BA%AC"},
	} {
		var last string
		for e, err := range sitemap.Entries(iotest.OneByteReader(strings.NewReader(
			"<?xml version='1.0' encoding='"+tt.encoding+"'?><urlset>"+tt.text+"</urlset>")), sitemapURL) {
			require.NoError(t, err, tt.encoding)
			last = e.URL
		}
		require.Equal(t, tt.want, last, tt.encoding)
	}
}

// A loop that waits for an entry is stopped by the reader, even if no entry comes.
func TestEntriesEndWhenTheReaderFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &hostile{head: "<urlset>", text: "<a<a>"}
	read := readerFunc(func(p []byte) (int, error) {
		if h.read > 100_000 {
			cancel()
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return h.Read(p)
	})
	_, err := entries(read)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, h.read, 110_000)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Entities must not read files, contact other hosts, or grow without bound.
func TestSitemapResolvesNoEntities(t *testing.T) {
	doc := `<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/hostname"><!ENTITY a "aaaaaaaaaa">
		<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><urlset><url><loc>/&x;</loc></url>
		<url><loc>/&b;</loc></url></urlset>`
	got, err := entries(strings.NewReader(doc))
	require.NoError(t, err)
	require.Equal(t, []string{"page https://a.test/&x;", "page https://a.test/&b;"}, got)
}

func TestSitemapCanStopEarly(t *testing.T) {
	h := &hostile{head: "<urlset>", text: "<url><loc>x</loc></url>"}
	for _, err := range sitemap.Entries(h, sitemapURL) {
		require.NoError(t, err)
		break
	}
	require.Less(t, h.read, 20_000)
}

// FuzzSitemap checks that each entry is lawful, that their number is within the limit, and that
// nothing follows an error.
func FuzzSitemap(f *testing.F) {
	f.Add([]byte(`<urlset><url><loc>http://a.test/</loc><lastmod>2005</lastmod></url></urlset>`))
	f.Add([]byte(`<feed><entry><link href="x"/><updated>2003-12-13</updated></entry></feed>`))
	f.Add([]byte("<?xml version='1.0' encoding='latin1'?><rss><item><guid>\xe9</guid></item></rss>"))
	f.Add([]byte("http://a.test/\nhttp://b.test/"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		errs := 0
		for e, err := range sitemap.Entries(strings.NewReader(string(doc)), sitemapURL) {
			if errs > 0 {
				t.Fatalf("%q: continues after its error", doc)
			}
			if err != nil {
				errs++
				continue
			}
			if err := lawful(e.URL); err != nil || e.Kind == 0 {
				t.Errorf("%q: %+v, %v", doc, e, err)
			}
		}
	})
}

// FuzzBrokenTexts checks that any text, well-formed or not, costs at most the entry that contains
// it.
func FuzzBrokenTexts(f *testing.F) {
	f.Add([]byte("1 < 2 & <b <c d='<' e=\"> <p></q> <!x [ <?y"))
	f.Add([]byte("</title></x></channel><br/><"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, begin := range []string{"<!--", "<![CDATA["} { // they may swallow what follows
			for bytes.Contains(text, []byte(begin)) {
				text = bytes.ReplaceAll(text, []byte(begin), nil)
			}
		}
		doc := "<rss><channel><item><title>" + string(text) + "</title><link>/1</link></item>" +
			"<item><link>/last</link></item></channel></rss>"
		got, err := entries(strings.NewReader(doc))
		if err != nil || len(got) == 0 || got[len(got)-1] != "feed https://a.test/last" {
			t.Errorf("%q: %q, %v", doc, got, err)
		}
	})
}

func BenchmarkSitemap(b *testing.B) {
	doc := "<urlset>" + strings.Repeat("<url>\n  <loc>https://a.test/dir/page.html?id=1</loc>\n"+
		"  <lastmod>2005-01-01</lastmod>\n  <priority>0.8</priority>\n</url>\n", 1000) + "</urlset>"
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		for _, err := range sitemap.Entries(strings.NewReader(doc), sitemapURL) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// A URL whose end tag is missing ends where the next field starts: no text of that is added to it.
func TestUnclosedURLsEnd(t *testing.T) {
	for document, want := range map[string]string{
		"<urlset><url><loc>http://a.test/x<lastmod>2020-01-01</lastmod></url></urlset>":    "http://a.test/x",
		"<rss><channel><item><link>http://a.test/x<title>T</title></item></channel></rss>": "http://a.test/x",
		"<urlset><url><loc>http://a.test/x<b>y</b></loc></url></urlset>":                   "http://a.test/xy",
	} {
		found, err := entries(strings.NewReader(document))
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Contains(t, strings.Fields(found[0]), want)
	}
}
