package archive

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
)

// maxPrefix leaves room for the rest of the name in the 255 bytes of usual file systems.
const maxPrefix = 128

// Names are taken from few characters: they end up in shells, in URLs and on other systems.
const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	specURL      = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
)

// gzipLevel turns Options.Level into what gzip takes: there 0 is no compression, which cannot be
// the recommendation.
func gzipLevel(level int) (int, error) {
	switch {
	case level < 0:
		return gzip.NoCompression, nil
	case level == 0:
		return DefaultLevel, nil
	case level > gzip.BestCompression:
		return 0, fmt.Errorf("archive: open: Level %d is above %d", level, gzip.BestCompression)
	}
	return level, nil
}

// isFileName tells whether a prefix can begin a file name on every system, and not a hidden one.
func isFileName(prefix string) bool {
	return len(prefix) <= maxPrefix && !strings.HasPrefix(prefix, ".") &&
		strings.Trim(prefix, alphanumeric+"-._") == ""
}

// infoBlock encodes the block of the warcinfo records: the fields that are always wanted, with the
// caller's in place of or after them, sorted so that equal options give equal bytes.
func infoBlock(info map[string]string) ([]byte, error) {
	fields := map[string]string{
		"software":   "spinneret (https://github.com/spinneret-go/spinneret)",
		"format":     "WARC File Format 1.1",
		"conformsTo": specURL,
	}
	maps.Copy(fields, info)
	var block []byte
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fault := fieldFault(name, fields[name]); fault != "" {
			return nil, fmt.Errorf("archive: open: Info field %.100q %s", name, fault)
		}
		block = appendField(block, name, fields[name])
	}
	return block, nil
}

// fieldFault keeps a value from becoming a second field. It tells why a field cannot stand on a
// line of its own, or "" if it can.
func fieldFault(name, value string) string {
	switch {
	case name == "" || strings.Trim(name, alphanumeric+"-_.") != "":
		return "is not named by letters, digits, hyphens, dots and underscores"
	case !utf8.ValidString(value):
		return "is not UTF-8"
	case strings.ContainsFunc(value, func(r rune) bool { return r != ' ' && breaksLine(r) }):
		return "has a line break or another control character"
	}
	return ""
}
