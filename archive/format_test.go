package archive

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// The dumps on the page are what the code writes.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	dumps := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```hexdump (\\w+)\n(.*?)```").FindAllStringSubmatch(
		string(page), -1) {
		dumps[m[1]] = m[2]
	}
	e := someEntry()
	key, long := urlKey("http://a.test/")
	require.Empty(t, long)
	for name, data := range map[string][]byte{
		"key": appendKey(nil, key, &e), "value": e.appendValue(nil),
	} {
		require.Equal(t, hex.Dump(data), dumps[name], name)
	}
}

// An index of a later version is refused, as is one whose list of files has gaps.
func TestOtherVersionsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*bbolt.Tx) error{
		"version 2": func(tx *bbolt.Tx) error {
			return tx.Bucket(metaBucket).Put(versionKey, []byte("2"))
		},
		"broken list": func(tx *bbolt.Tx) error {
			return tx.Bucket(filesBucket).Put([]byte{0, 0, 0, 9}, []byte("12345678name"))
		},
	} {
		dir := t.TempDir()
		require.NoError(t, openDir(t, dir, Options{}).Close())
		x, err := openIndex(dir+"/"+indexName, lockWait)
		require.NoError(t, err)
		require.NoError(t, x.db.Update(change))
		require.NoError(t, x.close())
		_, err = Open(dir, Options{})
		require.ErrorIs(t, err, ErrIndex)
		require.ErrorContains(t, err, name)
		_, err = Repair(dir, Options{})
		require.NoError(t, err, "a new one can always be made")
	}
}

// An archive of the first version is opened for ever.
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
	require.Equal(t, "changed 03:05 one, unchanged 04:05 one, changed 05:05 two", strings.Join(got, ", "))
	faults, _ := verify(t, a)
	require.Empty(t, faults)
	require.NoError(t, a.Close())
}
