package robots

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampleEntries are those that FORMAT.md shows.
func sampleEntries() map[string]Entry {
	found := Entry{
		URL: where, Status: 200, Fetched: noon, Expires: noon.Add(24 * time.Hour),
		Source: where, ETag: `"v1"`,
		File: Parse([]byte("Sitemap: /s.xml\nUser-agent: foo\nUser-agent: MJ12bot\n" +
			"Crawl-delay: 2\nDisallow: /caf\u00e9$\nAllow: /a*b\n")),
	}
	failed := Entry{
		URL: "http://h.test:81/robots.txt", Status: 503, Expires: noon, FailedSince: noon, Failures: 3,
	}
	return map[string]Entry{"found": found, "failed": failed}
}

// The page must not rot: its dumps are compared with what the code writes.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	entries := sampleEntries()
	blocks := regexp.MustCompile("(?s)```hexdump (\\w+)\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, blocks, len(entries))
	for _, block := range blocks {
		entry := entries[string(block[1])]
		data, err := entry.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, string(block[2]), hex.Dump(data), string(block[1]))
	}
}

// The dumps are also the files of version 1, which every later version has to read.
func TestFormatVersion1IsRead(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	entries := sampleEntries()
	for _, block := range regexp.MustCompile("(?s)```hexdump (\\w+)\n(.*?)```").
		FindAllSubmatch(page, -1) {
		var data []byte
		for line := range strings.Lines(string(block[2])) {
			digits := strings.ReplaceAll(line[min(10, len(line)-1):min(58, len(line)-1)], " ", "")
			octets, err := hex.DecodeString(digits)
			require.NoError(t, err)
			data = append(data, octets...)
		}
		var got Entry
		require.NoError(t, got.UnmarshalBinary(data))
		requireSameEntry(t, entries[string(block[1])], got)
	}
}

// requireSameEntry compares files by what can be asked of them, not by where their text lies.
func requireSameEntry(t *testing.T, want, got Entry) {
	t.Helper()
	wantFile, gotFile := want.File, got.File
	want.File, got.File = nil, nil
	require.Equal(t, want, got)
	require.Equal(t, wantFile == nil, gotFile == nil)
	if wantFile != nil {
		requireSameFile(t, wantFile, gotFile)
	}
}

func requireSameFile(t *testing.T, want, got *File) {
	t.Helper()
	require.Equal(t, want.denyAll, got.denyAll)
	require.Equal(t, want.Skipped(), got.Skipped())
	require.Equal(t, slices.Collect(want.Records()), slices.Collect(got.Records()))
	require.Equal(t, tokens(want), tokens(got))
	for _, agent := range append(tokens(want), "somebody-else") {
		a, b := want.Rules(agent), got.Rules(agent)
		require.Equal(t, slices.Collect(a.Records()), slices.Collect(b.Records()))
		wantDelay, wantOK := a.Delay()
		gotDelay, gotOK := b.Delay()
		require.Equal(t, wantDelay, gotDelay)
		require.Equal(t, wantOK, gotOK)
		for i := range want.rules {
			path := "/" + strings.TrimLeft(want.rules[i].written(want.text), "/*")
			require.Equal(t, a.Match(path), b.Match(path), path)
		}
	}
}

func TestEntriesRoundTrip(t *testing.T) {
	entries := []Entry{
		{},
		{URL: where, File: FromResponse(503, nil)},
		{URL: where, File: Parse(nil)},
		{URL: where, File: Parse([]byte(manyRecords + typicalFile))},
		{URL: where, File: Parse([]byte("a: 1\nuser-agent:\nallow: /\nx: y\nuser-agent: foo\n" +
			"disallow:\nuser-agent: bar\ndisallow: /b\nuser-agent: 12\nallow: /c"))},
	}
	for _, v := range allVectors(t) {
		entries = append(entries, Entry{URL: where, Status: 200, File: Parse(v.body)})
	}
	for _, entry := range entries {
		data, err := entry.AppendBinary([]byte("kept"))
		require.NoError(t, err)
		data, found := bytes.CutPrefix(data, []byte("kept"))
		require.True(t, found)
		var got Entry
		require.NoError(t, got.UnmarshalBinary(data))
		requireSameEntry(t, entry, got)
		again, err := got.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, data, again)
	}
}

// The form must stay below the body that it stands for.
func TestEntriesAreCompact(t *testing.T) {
	entry := Entry{URL: where, File: Parse([]byte(typicalFile))}
	data, err := entry.MarshalBinary()
	require.NoError(t, err)
	require.Less(t, len(data), len(typicalFile)*3/4)
}

// Whatever happens to a byte, the entry is refused and the variable keeps its value.
func TestCorruptEntries(t *testing.T) {
	entry := sampleEntries()["found"]
	data, err := entry.MarshalBinary()
	require.NoError(t, err)
	kept := Entry{URL: "kept"}
	for i := range data {
		broken := slices.Clone(data)
		broken[i] ^= 0x10
		require.ErrorIs(t, kept.UnmarshalBinary(broken), ErrCorrupt, "byte %d", i)
		require.ErrorIs(t, kept.UnmarshalBinary(data[:i]), ErrCorrupt, "the first %d bytes", i)
		// With a sum that fits, only the content can tell. It may be an entry, but no more.
		_ = new(Entry).UnmarshalBinary(sealed(broken[:len(broken)-crc32.Size]))
	}
	require.ErrorIs(t, kept.UnmarshalBinary(append(data, 0)), ErrCorrupt)
	require.ErrorIs(t, kept.UnmarshalBinary(make([]byte, maxEntry+1)), ErrCorrupt)
	endless := sealed(append([]byte("RBTE\x01"), make([]byte, maxEntry)...))
	require.ErrorContains(t, kept.UnmarshalBinary(endless), "8388617 bytes")
	require.Equal(t, Entry{URL: "kept"}, kept)
}

// What no parser could have made must not come in by the back door.
func TestImpossibleEntries(t *testing.T) {
	head := func() []byte {
		e := Entry{URL: where}
		data, err := e.MarshalBinary()
		require.NoError(t, err)
		return data[:len(data)-crc32.Size-1]
	}
	file := func(records ...string) []byte {
		b := append(head(), someFile, 0, 1, 0, 0, 1) // one group
		b = appendString(b, "foo")
		b = append(b, 0, byte(len(records)/2))
		for i := 0; i < len(records); i += 2 {
			b = appendString(appendString(append(b, 1), records[i]), records[i+1])
		}
		return sealed(b)
	}
	require.NoError(t, new(Entry).UnmarshalBinary(file("key", "value")))
	for name, data := range map[string][]byte{
		"line end in a value": file("key", "a\nb"),
		"colon in a key":      file("k:y", "value"),
		"no key":              file("", "value"),
		"blank around":        file("key", " value"),
		"comment":             file("key", "a#b"),
		"NUL":                 file("key", "a\x00b"),
		"rule as a note":      file("disallow", "/"),
		"agent as a note":     file("user-agent", "foo"),
		"endless line":        file("key", strings.Repeat("a", maxLine)),
		"no kind of file":     sealed(append(head(), 3)),
		"no count":            sealed(append(head(), someFile, 0)),
		"endless name": sealed(appendString(append(head(), someFile, 0, 1, 0, 0, 1),
			strings.Repeat("a", maxLine+1))),
	} {
		require.ErrorIs(t, new(Entry).UnmarshalBinary(data), ErrCorrupt, name)
	}
}

// An entry may come from a machine with longer numbers.
func TestEntryOfALongerBody(t *testing.T) {
	e := Entry{URL: where}
	data, err := e.MarshalBinary()
	require.NoError(t, err)
	data = append(data[:len(data)-crc32.Size-1], someFile)
	data = append(binary.AppendUvarint(data, 1<<40), 0, 0, 0)
	require.NoError(t, e.UnmarshalBinary(sealed(data)))
	require.EqualValues(t, min(1<<40, math.MaxInt), e.File.Skipped())
}

// sealed appends the sum.
func sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, castagnoli))
}

// FuzzEntry asserts that what is read is written and read again as the same. The input is a body
// to be sealed, or a robots.txt.
func FuzzEntry(f *testing.F) {
	for _, entry := range sampleEntries() {
		data, _ := entry.MarshalBinary()
		f.Add(data[:len(data)-crc32.Size])
	}
	f.Add([]byte("user-agent: foo9\ncrawl-delay 2\nallow: /%7e*$\nuser-agent: *\nx: y\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var e Entry
		if err := e.UnmarshalBinary(sealed(in)); err != nil {
			e = Entry{URL: where, File: Parse(in)}
		}
		once, _ := e.MarshalBinary()
		var again Entry
		if err := again.UnmarshalBinary(once); err != nil {
			t.Fatalf("%v in %q of %q", err, once, in)
		}
		if twice, _ := again.MarshalBinary(); string(twice) != string(once) {
			t.Errorf("%q is written as %q, then %q", in, once, twice)
		}
	})
}
