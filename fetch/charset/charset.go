// Package charset converts pages to UTF-8.
//
// [ToUTF8] finds out in which encoding a page is and converts it, so that what reads it next, such
// as a scanner for links or a hash of its text, needs to know of one encoding only:
//
//	body, name, err := charset.ToUTF8(resp.Body, resp.Header.Get("Content-Type"))
//
// # How the encoding is found
//
// In the order of the HTML standard: a byte order mark, the Content-Type field, a meta element
// within the first 1,024 bytes. Without any of them a page is taken for UTF-8 if those bytes are,
// with a letter beyond ASCII among them, or if all of the page is. All others are taken for
// windows-1252, as browsers do in most places.
//
// # What it does not do
//
// It does not guess an encoding by its letter frequencies: an undeclared page in Shift_JIS or
// KOI8-R comes out as windows-1252. It is a package of its own because its tables add a megabyte
// to a program.
package charset

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// ErrTooLong says that a page which must be converted is longer than MaxPage.
var ErrTooLong = errors.New("charset: page too long")

// MaxPage limits, in bytes, what is converted. In UTF-8 it is three times as long at most.
const MaxPage = 32 << 20

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
	if len(page) > MaxPage {
		return nil, name, ErrTooLong
	}
	if converted, err = e.NewDecoder().Bytes(page); err != nil {
		return nil, name, fmt.Errorf("charset: convert page: %w", err)
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
