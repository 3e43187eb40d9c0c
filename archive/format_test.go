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
	"github.com/spinneret-go/spinneret/internal/durable"
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
		"manifest":  files.Data("index.manifest"), "run": files.Data("index-00000001"),
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

// A damaged index is rebuilt, and reported.
func TestDamagedIndexIsRebuiltByOpen(t *testing.T) {
	manifest := indexName + ".manifest"
	for name, change := range map[string]func(data []byte) []byte{
		"cut off":       func(data []byte) []byte { return data[:len(data)/2] },
		"empty":         func([]byte) []byte { return nil },
		"a flipped bit": func(data []byte) []byte { data[7] ^= 1; return data },
	} {
		dir := t.TempDir()
		a := openDir(t, dir, Options{})
		_, err := a.Append(page("http://a.test/", "x"))
		require.NoError(t, err)
		require.NoError(t, a.Close())
		data, err := os.ReadFile(filepath.Join(dir, manifest))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, manifest), change(data), 0o644))
		a = openDir(t, dir, Options{})
		require.ErrorIs(t, a.Stats().IndexDamage, ErrIndex, name)
		require.ErrorContains(t, a.Stats().IndexDamage, manifest)
		_, err = a.At("http://a.test/", time.Time{})
		require.NoError(t, err)
		require.NoError(t, a.Close())
		a = openDir(t, dir, Options{})
		require.NoError(t, a.Stats().IndexDamage)
		require.NoError(t, a.Close())
	}
}

// An index of another version is refused and not touched. A caller may ask for a new one.
func TestOtherVersionsAreRefused(t *testing.T) {
	later := durable.Seal("SPNINDX4", []byte("unknown"))
	for name, change := range map[string]func(dir string) error{
		"version 2": func(dir string) error { return os.CopyFS(dir, os.DirFS("testdata/version-2")) },
		"version 4": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, indexName+".manifest"), later, 0o644)
		},
	} {
		dir := t.TempDir()
		require.NoError(t, change(dir))
		before := readDir(t, dir)
		for _, opts := range []Options{{}, {ReadOnly: true}} {
			_, err := Open(dir, opts)
			require.ErrorIs(t, err, ErrVersion, name)
			require.NotErrorIs(t, err, ErrIndex, name)
		}
		after := readDir(t, dir)
		delete(after, lockName)
		delete(before, lockName)
		require.Equal(t, before, after)
		_, err := Repair(dir, Options{})
		require.NoError(t, err)
		require.NoError(t, openDir(t, dir, Options{}).Close())
		names, err := filepath.Glob(filepath.Join(dir, indexName+"*.run"))
		require.NoError(t, err)
		require.Empty(t, names, "the runs of the old index are removed at once")
	}
}
