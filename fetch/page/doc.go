// Package page finds the links of an HTML page, in whatever encoding it is.
//
//	for link, err := range page.Links(body, url, response.Header.Get("Content-Type")) {
//
// [Scan] also reports forms, the URLs of styles, the title and the texts. [HeaderLinks] reads the
// Link fields of a response, and [Styles] a style sheet. [ToUTF8] converts a page for programs
// that read one encoding only.
//
// # Promise
//
// The links are those of the elements that golang.org/x/net/html would put into a tree, with
// scripting disabled: markup in comments, scripts and attributes is not markup, and what an SVG
// image contains is read by the rules for SVG. The exceptions are few. The content of noframes and
// noembed elements is read too, since it is written for clients such as crawlers. Links before a
// frameset that replaces the body of the page are reported. The rules for a template that begins
// with a col element are left out, and so is the list of active formatting elements: misnested HTML
// around or within SVG can leave it open for too long.
//
// # Cost
//
// There is no tree. The page is read in place, five times as fast as the tokenizer of
// golang.org/x/net/html reads it, with less than ten allocations. Only what is of interest is
// converted to UTF-8, except for pages in UTF-16 and ISO-2022-JP, which are converted as a whole
// and so take up to three times their size. Misnested SVG takes a second pass over the page. The
// limits [MaxLinks], [MaxLinkBytes] and [MaxURL] bound what a hostile page can produce.
//
// # What it does not do
//
// It runs no scripts. It does not guess an encoding by the frequencies of letters: an undeclared
// page in Shift_JIS or KOI8-R is taken for windows-1252, as browsers do in most places.
package page
