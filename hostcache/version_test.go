package hostcache_test

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

// TestAnotherVersion: a file of another version is refused by name, and not taken for damage. A
// damaged version is damage.
func TestAnotherVersion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	text := hostcache.Forge("string", nil)
	text[7]++
	last := len(text) - 8 // an empty frame
	sum := crc32.Checksum(text[:last-4], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(text[last-4:], sum)
	for _, other := range []string{string(text), "SPHC\x02\x00 and so on"} {
		require.NoError(t, os.WriteFile(file, []byte(other), 0o600))
		c, err := hostcache.Open[string](file, hostcache.Options{})
		require.Nil(t, c)
		require.ErrorIs(t, err, hostcache.ErrVersion)
		require.NotErrorIs(t, err, hostcache.ErrCorrupt)
		require.ErrorContains(t, err, other[:4])
	}
	for bit := range 8 * last {
		text[bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(file, text, 0o600))
		_, err := hostcache.Open[string](file, hostcache.Options{})
		require.ErrorIs(t, err, hostcache.ErrCorrupt, bit)
		text[bit/8] ^= 1 << (bit % 8)
	}
}

// TestKilledSavesLeaveNothing: what a killed process has left is removed when the file is opened.
func TestKilledSavesLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		"ho[s]ts.00000001.new": time.Hour, "ho[s]ts.fffffffe.new": 2 * time.Minute, // left
		"ho[s]ts.12345678.new": 0,         // being written
		"ho[s]ts.new":          time.Hour, // not ours
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), then, then))
	}
	c, err := hostcache.Open[string](filepath.Join(dir, "ho[s]ts"), hostcache.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Save())
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	require.Equal(t, []string{"ho[s]ts", "ho[s]ts.12345678.new", "ho[s]ts.new"}, left)
}

// TestFieldsThatHaveChanged: a type is not recognized by its name and size alone.
func TestFieldsThatHaveChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	type inner struct{ A, B uint16 }
	{
		type host struct {
			Visits uint32
			Share  [2]float32
			Inner  inner
		}
		c, err := hostcache.Open[host](file, hostcache.Options{})
		require.NoError(t, err)
		c.Set("a.test", host{Visits: 7}, hostcache.Forever)
		require.NoError(t, c.Save())
		_, err = hostcache.Open[host](file, hostcache.Options{})
		require.NoError(t, err)
	}
	requireOther := func(c interface{ Len() int }, err error) {
		t.Helper()
		require.ErrorIs(t, err, hostcache.ErrCorrupt)
		require.Zero(t, c.Len())
	}
	{
		type host struct {
			Share  [2]float32
			Visits uint32
			Inner  inner
		}
		requireOther(hostcache.Open[host](file, hostcache.Options{}))
	}
	{
		type host struct {
			Visits uint32
			Share  [2]float32
			Inner  struct{ B, A uint16 }
		}
		requireOther(hostcache.Open[host](file, hostcache.Options{}))
	}
	{
		type host [4]uint32
		requireOther(hostcache.Open[host](file, hostcache.Options{}))
	}
}
