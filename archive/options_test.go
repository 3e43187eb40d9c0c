package archive

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

func TestOpenRefusesOptions(t *testing.T) {
	tests := []struct {
		name string
		opts Options
		want string // in the error
	}{
		{"a level beyond gzip's", Options{Level: 10}, "Level 10"},
		{"no compression", Options{Compression: warc.None}, "Level"},
		{"a field without name", Options{Info: map[string]string{"": "x"}}, "Info field"},
		{"a name with a colon", Options{Info: map[string]string{"a: b": "x"}}, "Info field"},
		{"a name with a line break", Options{Info: map[string]string{"a\r\nb": "x"}}, "Info field"},
		{"a value with CR LF", Options{Info: map[string]string{"a": "x\r\ny: z"}}, "control"},
		{"a value with a bare CR", Options{Info: map[string]string{"a": "x\ry"}}, "control"},
		{"a value with a tab", Options{Info: map[string]string{"a": "x\ty"}}, "control"},
		{"a value that is not UTF-8", Options{Info: map[string]string{"a": "\xff"}}, "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory()
			_, err := open(m, tt.opts)
			require.ErrorContains(t, err, "archive: open: ")
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, m.log, "no file was touched")
		})
	}
}

func TestInfoBlock(t *testing.T) {
	const conforms = "conformsTo: http://iipc.github.io/warc-specifications/" +
		"specifications/warc-format/warc-1.1/\r\n"
	tests := []struct {
		name string
		info map[string]string
		want string
	}{
		{"nil means the defaults alone", nil, conforms + "format: WARC File Format 1.1\r\n" +
			"software: spinneret (https://github.com/spinneret-go/spinneret)\r\n"},
		{"a default can be replaced or omitted, other fields are added",
			map[string]string{"software": "crawler/1.2 (spinneret)", "robots": "obey", "format": "",
				"operator": "Zoë Ä, +49 30 1234"},
			conforms + "operator: Zoë Ä, +49 30 1234\r\nrobots: obey\r\n" +
				"software: crawler/1.2 (spinneret)\r\n"},
		{"all can be omitted",
			map[string]string{"software": "", "format": "", "conformsTo": ""}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, m := openMemory(t, Options{Info: tt.info})
			clear(tt.info) // the archive must not use it after Open
			loc, err := a.Append(page("http://a.test/", ""))
			require.NoError(t, err)
			records, err := readFile(m.contents()[loc.File+unfinished])
			require.NoError(t, err)
			require.Equal(t, tt.want, string(records[0].block))
		})
	}
}

// Without block digests, payload digests are still written, and damage is still found.
func TestNoBlockDigest(t *testing.T) {
	for _, compression := range []warc.Compression{warc.Gzip, warc.Zstd} {
		dir := t.TempDir()
		a := openDir(t, dir, Options{NoBlockDigest: true, Compression: compression})
		loc, err := a.Append(page("http://a.test/", strings.Repeat("text ", 100)))
		require.NoError(t, err)
		rec, err := a.Read(loc)
		require.NoError(t, err)
		require.Empty(t, rec.Get("WARC-Block-Digest"))
		require.NotEmpty(t, rec.Get("WARC-Payload-Digest"))
		require.NoError(t, rec.Close())
		require.NoError(t, a.Close())
		name := filepath.Join(dir, loc.File)
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		data[loc.Offset+loc.Length/2] ^= 1
		require.NoError(t, os.WriteFile(name, data, 0o644))
		a = openDir(t, dir, Options{})
		faults, _ := verify(t, a)
		require.NotEmpty(t, faults)
		require.Equal(t, loc.Offset, faults[0].Offset)
		require.NoError(t, a.Close())
	}
}

func TestZeroOptions(t *testing.T) {
	a, err := open(newMemory(), Options{})
	require.NoError(t, err)
	require.EqualValues(t, 1<<30, a.out().maxFile)
	require.EqualValues(t, 64<<20, a.out().syncEvery)
	require.Positive(t, len(a.encoders))

	b, err := open(newMemory(), Options{Compressors: -1})
	require.NoError(t, err)
	require.Len(t, b.encoders, len(a.encoders))
	c, err := open(newMemory(), Options{Compressors: 3})
	require.NoError(t, err)
	require.Len(t, c.encoders, 3)
}

// Whoever wants no limit asks for all that an int can say.
func TestAnyNumberOfCompressors(t *testing.T) {
	a, err := Open(t.TempDir(), Options{Compressors: math.MaxInt})
	require.NoError(t, err)
	_, err = a.Append(page("http://a.test/", "text"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
}
