package archive

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// The hex dumps in FORMAT.md are the bytes that the code writes.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	dumps := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```hexdump (\\w+)\n(.*?)```").FindAllStringSubmatch(
		string(page), -1) {
		dumps[m[1]] = m[2]
	}
	e, unchanged := someEntry(), someEntry()
	unchanged.kind, unchanged.status, unchanged.content = Unchanged, 304, e.address()
	unchanged.prior, unchanged.hasPrior = e.time-3_600_000_000, true
	key, long := urlkey.Of("http://a.test/")
	require.Empty(t, long)

	files := vfs.NewMem()
	x := openTestIndex(t, files)
	x.add("a.warc.gz", key, &e, "", 54321)
	require.NoError(t, x.close(true))
	e = someEntry()
	want := map[string][]byte{
		"key": appendKey(nil, key, &e), "value": e.appendValue(nil),
		"unchanged": unchanged.appendValue(nil),
		"body":      append(bodyKey(e.digest), e.address().append(nil)...),
		"manifest":  files.Data("index.manifest"), "run": files.Data("index-00000000.run"),
	}
	if os.Getenv("SPINNERET_REWRITE") != "" {
		text := string(page)
		for name, data := range want {
			old := "```hexdump " + name + "\n" + dumps[name] + "```"
			text = strings.Replace(text, old, "```hexdump "+name+"\n"+hex.Dump(data)+"```", 1)
		}
		require.NoError(t, os.WriteFile("FORMAT.md", []byte(text), 0o644))
		return
	}
	for name, data := range want {
		require.Equal(t, hex.Dump(data), dumps[name], name)
	}
	require.Len(t, dumps, len(want))
}

// An index of another version, or a damaged one, is refused. Repair makes a new one.
func TestOtherVersionsAreRefused(t *testing.T) {
	manifest := indexName + ".manifest"
	for name, change := range map[string]func(data []byte) []byte{
		"version 3": func(data []byte) []byte {
			return append([]byte("SPININX3"), data[8:]...)
		},
		"cut off":       func(data []byte) []byte { return data[:len(data)/2] },
		"empty":         func([]byte) []byte { return nil },
		"a flipped bit": func(data []byte) []byte { data[len(data)/2] ^= 1; return data },
	} {
		dir := t.TempDir()
		a := openDir(t, dir, Options{})
		_, err := a.Append(page("http://a.test/", "x"))
		require.NoError(t, err)
		require.NoError(t, a.Close())
		data, err := os.ReadFile(filepath.Join(dir, manifest))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, manifest), change(data), 0o644))
		_, err = Open(dir, Options{})
		require.ErrorIs(t, err, ErrIndex, name)
		require.ErrorContains(t, err, manifest)
		_, err = Repair(dir, Options{})
		require.NoError(t, err, "Repair does not need the old index")
		a = openDir(t, dir, Options{})
		_, err = a.At("http://a.test/", time.Time{})
		require.NoError(t, err)
		require.NoError(t, a.Close())
	}
}

// Archives of version 1 must open in all later versions.
func TestArchiveOfVersion1(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/version-1")))
	a := openDir(t, dir, Options{})
	versions, err := a.Versions("http://a.test/")
	require.NoError(t, err)
	var got []string
	for _, v := range versions {
		got = append(got, v.Kind.String()+" "+v.Time.Format("15:04")+" "+body(t, a, v))
	}
	require.Equal(t, []string{"changed 03:05 one", "unchanged 04:05 one", "changed 05:05 two"}, got)
	faults, _ := verify(t, a)
	require.Empty(t, faults)
	require.NoError(t, a.Close())
}

// Archives of version 2 must open in all later versions.
func TestArchiveOfVersion2(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/version-2")))
	a := openDir(t, dir, Options{Share: true})
	require.Empty(t, a.Recovered().Damage)
	require.Zero(t, a.Recovered().Versions, "the index was not rebuilt")
	shared := strings.Repeat("shared text ", 100)
	var got []string
	for v, err := range a.All() {
		require.NoError(t, err)
		text := strings.Replace(body(t, a, v), shared, "shared", 1)
		got = append(got, v.URL[7:]+" "+v.Kind.String()+" "+text)
	}
	require.Equal(t, []string{"a.test/ changed shared", "a.test/ unchanged shared",
		"a.test/ changed two", "b.test/ changed shared", "b.test/ failed no",
		"b.test/ unchanged shared"}, got)
	faults, _ := verify(t, a)
	require.Empty(t, faults)
	_, err := a.Append(visit{"http://c.test/", someTime.Add(time.Hour), 200, shared}.capture())
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Stats().Shared)
	require.NoError(t, a.Close())
}
