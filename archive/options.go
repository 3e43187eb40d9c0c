package archive

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Names use a small alphabet: they end up in shells, in URLs and on other systems.
const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	specURL      = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
)

// Limits of memory in bytes, and [Version.Range] of a part that a server sent although the request named
// none. Such a part is not a version of the page.
const (
	MaxRaw  = 64 << 20 // of the record of a Document; larger ones have to be read from their file
	MaxBody = 64 << 20 // of a body that Archive.Body returns
	Unasked = "unasked"
)

// Defaults of [Options] and [Query].
const (
	defaultMaxFile   = 1 << 30
	defaultSyncEvery = 64 << 20
	defaultMemory    = 64 << 20 // of a Query
	maxCompressors   = 1 << 10
)

// Options configures an [Archive]. The zero Options is the recommendation.
type Options struct {
	// MaxFile is the size in bytes at which a file is finished and the next one created. A record
	// is never split. 0 means 1 GiB, as the standard recommends. Negative means one file without
	// limit.
	MaxFile int64

	// Compression is how records are compressed. 0 means warc.Gzip, which every tool reads;
	// warc.Zstd is faster. warc.None is refused: no checksum would protect the headers of records,
	// so damage could make a page that was never fetched of two. See Level instead.
	Compression warc.Compression

	// Level is the effort of the compressor: 1 to 9 for gzip, 1 to 4 for zstd. 0 means 6 for gzip
	// and 1 for zstd. With gzip, 4 takes four fifths of the time for 7 % more bytes, and 9 four
	// times as long for 4 % fewer. Negative means no compression, still as gzip.
	Level int

	// Info holds named fields for the warcinfo record of each file, such as operator, robots,
	// description or http-header-user-agent. nil means software, format and conformsTo alone. These
	// are always written, unless Info has another value, or "" to omit one.
	Info map[string]string

	// SyncEvery is the number of bytes of a file that a power failure may lose: before there are
	// more, they are forced to disk. A sync starts in the background at half of it, so Append does
	// not wait as long as the disk keeps up. 1 makes every Append wait for the disk. 0 means 64
	// MiB. Negative means to sync only finished files, before the index is written, and on Sync.
	SyncEvery int64

	// Compressors is the number of captures that may be compressed at a time. Further callers wait,
	// so it bounds the memory of the archive. Zero or negative means one per GOMAXPROCS; more than 1,024 are
	// as good as that many.
	Compressors int

	// NoBlockDigest omits WARC-Block-Digest, for which a page is hashed a second time. That saves a
	// tenth of the compression time. The checksums of gzip and zstd detect the same damage. false
	// means that each record has a digest.
	NoBlockDigest bool

	// Share searches for the body of a 200 of 1 KiB or more under all URLs of the archive,
	// including earlier crawls. If it is found, a revisit record is written that names the URL and
	// the date. The index grows by some 40 bytes for each distinct body, and by 2 bytes in memory.
	// false means that a body is searched for only under its own URL.
	Share bool

	// Redact reports whether the values of a header field are replaced by "redacted" in requests and
	// responses. The field is in canonical form, such as "Set-Cookie"; secret is true for
	// Authorization, Proxy-Authorization, Cookie and Set-Cookie. nil means that these are replaced.
	// To keep them, return false; to replace more, return secret || field == "X-Api-Key". Secrets in
	// URLs and bodies are never replaced.
	Redact func(field string, secret bool) bool

	// Finished is called with the path of each file that is finished, such as to upload it, from the
	// goroutine whose call of Append, Close, Erase or Open finished it. It may call Append, AppendMetadata
	// and Sync, but not Close, Erase, Import or Verify. A file that Erase has rewritten is finished
	// again. After a crash the call may be missing: compare the files of [Archive.Files] with what was
	// uploaded. nil means no calls.
	Finished func(path string)

	// Reindex makes a new index from the files in the directory and those that were imported. The
	// old one stays valid until the first part of the new one is written. [Archive.Recovered] then
	// lists all files and all damage, and, this once, what the old index knew and the files lack.
	// false means that the existing index is updated.
	Reindex bool

	// ReadOnly opens an archive for reading only, also while another one writes it, in this process
	// or elsewhere. What was appended is found within a second; the end of a capture that takes
	// long to read, within some eight times as long. Neither waits for the other, and
	// nothing is written or locked, so access for reading is enough. Entries that the index on disk
	// lacks take some 200 bytes of memory each. Of imported files it has what the index on disk has: the
	// writer reads them. A damaged index is an error, see [ErrIndex]; without any, all files are read.
	// Append and Import fail with [ErrReadOnly]. false
	// means that the directory is written to, and created if it is missing.
	ReadOnly bool
}

// settings are validated options.
type settings struct {
	info        []byte
	encoder     warc.EncoderOptions
	maxFile     int64
	syncEvery   int64
	compressors int
}

// validate checks the options and applies defaults, before the disk is touched.
func (o Options) validate() (s settings, err error) {
	s = settings{
		encoder: warc.EncoderOptions{Compression: o.Compression, Level: o.Level,
			NoBlockDigest: o.NoBlockDigest},
		maxFile:     cmp.Or(o.MaxFile, defaultMaxFile),
		syncEvery:   cmp.Or(o.SyncEvery, defaultSyncEvery),
		compressors: o.Compressors,
	}
	if s.compressors <= 0 {
		s.compressors = runtime.GOMAXPROCS(0)
	}
	s.compressors = min(s.compressors, maxCompressors)
	if _, err := warc.NewEncoder(s.encoder); err != nil {
		return s, fmt.Errorf("archive: open: Compression or Level %d: %w", o.Level, err)
	}
	if o.Compression == warc.None {
		return s, errors.New("archive: open: Compression: headers of records would have no checksum: " +
			"set Level to -1, which compresses nothing")
	}
	s.info, err = infoBlock(o.Info)
	return s, err
}

// infoBlock encodes the block of the warcinfo records: the default fields, replaced or followed by
// the caller's, sorted so that equal options give equal bytes.
func infoBlock(info map[string]string) ([]byte, error) {
	fields := map[string]string{
		"software":   "spinneret (https://github.com/spinneret-go/spinneret)",
		"format":     "WARC File Format 1.1",
		"conformsTo": specURL,
	}
	maps.Copy(fields, info)
	var list []warc.Field
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fault := fieldFault(name, fields[name]); fault != "" {
			return nil, fmt.Errorf("archive: open: Info field %.100q %s", name, fault)
		}
		list = append(list, warc.Field{Name: name, Value: fields[name]})
	}
	return warc.Fields(list).Block(), nil
}

// fieldFault returns why a field would not be one line, or "" if it is valid. It keeps a value from
// becoming a second field.
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
