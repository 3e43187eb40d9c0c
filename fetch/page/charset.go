package page

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// utf8BOM tells that a page is UTF-8, and is no part of its text.
var utf8BOM = []byte("\xef\xbb\xbf")

// ToUTF8 returns page in UTF-8, without a byte order mark, and the name of the encoding that it was
// in. contentType is the value of the field of that name; "" if there was none. Bytes that are
// wrong in the page's encoding come out as U+FFFD.
//
// A page that is correct UTF-8 already is returned as it is, without a copy.
func ToUTF8(page []byte, contentType string) (converted []byte, name string, err error) {
	e, name, certain := charset.DetermineEncoding(page, contentType)
	// The package looks at the first kilobyte only, in which many pages have no letter beyond ASCII.
	fallback := !certain && name == "windows-1252"
	if name == "utf-8" || fallback && utf8.Valid(page) {
		return plain(page), "utf-8", nil
	}
	if converted, err = e.NewDecoder().Bytes(page); err != nil {
		return nil, name, fmt.Errorf("page: convert page: %w", err)
	}
	return bytes.TrimPrefix(converted, utf8BOM), name, nil
}

// plain returns page, which is in UTF-8, without its mark and with its errors replaced.
func plain(page []byte) []byte {
	page = bytes.TrimPrefix(page, utf8BOM)
	if utf8.Valid(page) {
		return page
	}
	return bytes.ToValidUTF8(page, []byte("\uFFFD"))
}
