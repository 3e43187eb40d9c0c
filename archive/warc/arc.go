package warc

import (
	"bufio"
	"bytes"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// ARC is the predecessor of WARC, used from 1996 to 2009. A record has a header of one line:
//
//	URL IP-address Archive-date Content-type Archive-length
//
// in version 1. Version 2 adds the code, the checksum, the Location, the offset and the file name
// before the length. A file begins with a record of "filedesc://". Records are read with the
// corresponding WARC fields: that of a file becomes a warcinfo, an HTTP response a response, and
// anything else a resource.

// maxARCLine bounds the header of a record: the longest URL of an archive plus the other fields.
const maxARCLine = 70 << 10

const schemeBytes = "abcdefghijklmnopqrstuvwxyz+-.0123456789"

var errARC = errors.New("no version line, and no ARC header")

// arcHeader returns the WARC fields for an ARC header. URLs may have spaces: the address and the
// date mark their end. http reports whether the block is an HTTP message.
func arcHeader(line string, fields Fields, http bool) (version string, _ Fields, err error) {
	words := strings.Split(strings.TrimRight(line, "\r\n"), " ")
	at := len(words) - 4 // of the address in version 1
	if version = "ARC/1"; !arcAddress(words, at) {
		at, version = len(words)-9, "ARC/2"
	}
	if !arcAddress(words, at) {
		return "", fields, errARC
	}
	url := strings.Join(words[:at], "%20")
	scheme, _, found := strings.Cut(url, ":")
	length, err := strconv.ParseUint(words[len(words)-1], 10, 62)
	if !found || scheme == "" || strings.Trim(strings.ToLower(scheme), schemeBytes) != "" {
		return "", fields, errARC
	}
	if err != nil {
		return "", fields, errors.New("the length in an ARC header is not a number")
	}
	kind, media := "resource", words[at+2]
	switch {
	case strings.HasPrefix(url, "filedesc:"):
		kind = "warcinfo"
	case http && (strings.HasPrefix(url, "http:") || strings.HasPrefix(url, "https:")):
		kind, media = "response", "application/http;msgtype=response"
	}
	fields = append(fields, Field{"WARC-Type", kind})
	if kind != "warcinfo" {
		fields = append(fields, Field{"WARC-Target-URI", url})
	}
	if date, ok := arcDate(words[at+1]); ok {
		fields = append(fields, Field{"WARC-Date", date})
	}
	if addr, err := netip.ParseAddr(words[at]); err == nil && !addr.IsUnspecified() {
		fields = append(fields, Field{"WARC-IP-Address", words[at]})
	}
	return version, append(fields, Field{"Content-Type", media},
		Field{"Content-Length", strconv.FormatUint(length, 10)}), nil
}

// arcAddress reports whether an address followed by a date is where it should be.
func arcAddress(words []string, at int) bool {
	if at < 1 || at+3 >= len(words) {
		return false
	}
	date := words[at+1]
	if len(date) < len("20060102") || strings.Trim(date, "0123456789") != "" {
		return false
	}
	_, err := netip.ParseAddr(words[at])
	return err == nil
}

// arcDate converts a date to WARC's format. Some programs wrote fewer digits, or more.
func arcDate(digits string) (string, bool) {
	const layout = "20060102150405"
	digits = digits[:min(len(digits), len(layout))]
	t, err := time.Parse(layout[:len(digits)], digits)
	return t.Format("2006-01-02T15:04:05Z"), err == nil
}

// beginsARC reports whether an ARC record comes next.
func beginsARC(r *bufio.Reader) bool {
	for n := 256; ; n *= 4 {
		buf, err := r.Peek(min(n, r.Size()))
		if line, _, found := bytes.Cut(buf, []byte("\n")); found {
			_, _, failed := arcHeader(string(line), nil, false)
			return failed != errARC
		}
		if err != nil || n >= min(r.Size(), maxARCLine) {
			return false
		}
	}
}

// isARC reports whether a record was read from an ARC file.
func (rec *Record) isARC() bool { return strings.HasPrefix(rec.Version, "ARC/") }
