// Package page finds the links of an HTML page, in whatever encoding it is.
//
//	for link, err := range page.Links(body, url, response.Header.Get("Content-Type")) {
//
// [Links] walks over the links without building a tree. [Scan] also reports forms, the URLs of
// styles, the title and the texts. [HeaderLinks] reads the Link fields of a response, and [Styles]
// a style sheet. [ToUTF8] converts a page for programs that read one encoding only.
package page
