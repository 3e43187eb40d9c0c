package hostcache_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// sample returns a file with all kinds of entries.
func sample(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hosts")
	c := open[string](t, file)
	c.Set("hour.test", "value", time.Hour)
	c.Set("", "empty", hostcache.Forever)
	c.SetNegative("absent.test", time.Hour)
	c.Set(strings.Repeat("long.", 20)+"test", "", time.Hour)
	require.NoError(t, c.Save())
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return b
}

// refused reads a file, and returns why that fails.
func refused(t *testing.T, b []byte) *hostcache.CorruptError {
	t.Helper()
	_, err := hostcache.Read[string](bytes.NewReader(b), hostcache.Options{MaxBytes: 1})
	var corrupt *hostcache.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.ErrorIs(t, err, hostcache.ErrCorrupt)
	require.LessOrEqual(t, corrupt.Offset, int64(len(b)))
	return corrupt
}

// TestEveryDamageIsFound flips each bit of a file, cuts it at each byte, and adds one.
func TestEveryDamageIsFound(t *testing.T) {
	t.Parallel()
	whole := sample(t)
	for bit := range 8 * len(whole) {
		altered := bytes.Clone(whole)
		altered[bit/8] ^= 1 << (bit % 8)
		refused(t, altered)
	}
	for n := range whole {
		require.LessOrEqual(t, refused(t, whole[:n]).Offset, int64(n))
	}
	require.EqualValues(t, len(whole), refused(t, append(bytes.Clone(whole), 0)).Offset)

	file := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(file, whole[:len(whole)-1], 0o644))
	_, err := hostcache.Open[string](file, hostcache.Options{})
	require.ErrorContains(t, err, fmt.Sprintf("%s: byte %d: ", file, len(whole)-8))
}

// TestADamagedFileIsSavedOver continues with the entries before the damage.
func TestADamagedFileIsSavedOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	whole := sample(t)
	require.NoError(t, os.WriteFile(file, whole[:len(whole)-1], 0o644))
	c, err := hostcache.Open[string](file, hostcache.Options{})
	require.ErrorIs(t, err, hostcache.ErrCorrupt)
	require.Equal(t, 4, c.Len(), "the last frame is damaged, which has no entries")
	require.NoError(t, c.Save())
	require.Equal(t, 4, open[string](t, file).Len())

	other, err := hostcache.Open[int32](file, hostcache.Options{})
	require.ErrorIs(t, err, hostcache.ErrCorrupt)
	require.Zero(t, other.Len())
}

// TestPowerFailures cuts the power at each step of a Save. Then the old or the new file is there,
// and the new one if Save had returned.
func TestPowerFailures(t *testing.T) {
	fill := func(entries int) *hostcache.Cache[string] {
		c := hostcache.New[string](hostcache.Options{})
		for i := range entries {
			c.Set(fmt.Sprintf("%d.test", i), strings.Repeat("v", 100), hostcache.Forever)
		}
		return c
	}
	before, after := fill(10), fill(2000)
	for step := 1; ; step++ {
		saved := false
		for seed := range uint64(5) {
			disk := vfs.NewMem()
			require.NoError(t, before.SaveIn(disk, "hosts"))
			disk.FailAt(disk.Steps()+step, vfs.ErrPower)
			saved = after.SaveIn(disk, "hosts") == nil
			crashed := disk.Crash(rand.New(rand.NewPCG(uint64(step), seed)))
			c, err := hostcache.Read[string](bytes.NewReader(crashed.Data("hosts")), hostcache.Options{})
			require.NoError(t, err, "step %d, seed %d", step, seed)
			require.True(t, c.Len() == 2000 || !saved && c.Len() == 10, "step %d: %d entries", step, c.Len())
		}
		if saved {
			require.Greater(t, step, 5)
			return
		}
	}
}

// TestFullDisks fails each step of a Save, which must return an error and leave a complete file.
func TestFullDisks(t *testing.T) {
	c := hostcache.New[string](hostcache.Options{})
	c.Set("a.test", "v", hostcache.Forever)
	for step := 1; ; step++ {
		disk := vfs.NewMem()
		require.NoError(t, c.SaveIn(disk, "hosts"))
		disk.FailAt(disk.Steps()+step, errFull)
		err := c.SaveIn(disk, "hosts")
		_, readErr := hostcache.Read[string](bytes.NewReader(disk.Data("hosts")), hostcache.Options{})
		require.NoError(t, readErr)
		names, listErr := disk.List()
		require.NoError(t, listErr)
		require.Equal(t, []string{"hosts"}, names, "step %d", step)
		if err == nil {
			require.Greater(t, step, 5)
			return
		}
		require.ErrorIs(t, err, errFull)
	}
}

var errFull = errors.New("no space left on device")

// TestFramesCannotBeLostOrMoved removes a frame, duplicates one, and swaps two.
func TestFramesCannotBeLostOrMoved(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "hosts")
	c := open[string](t, file)
	for i := range 3000 {
		c.Set(fmt.Sprintf("%d.test", i), strings.Repeat("v", 110), time.Hour)
	}
	require.NoError(t, c.Save())
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	const magic, around = 8, 8
	ends := []int{magic}
	for at := magic; at < len(whole); {
		at += around + int(binary.LittleEndian.Uint32(whole[at:]))
		ends = append(ends, at)
	}
	count := len(ends) - 1
	require.Greater(t, count, 5)
	with := func(order ...int) []byte {
		b := bytes.Clone(whole[:magic])
		for _, i := range order {
			b = append(b, whole[ends[i]:ends[i+1]]...)
		}
		return b
	}
	all := make([]int, count)
	for i := range all {
		all[i] = i
	}
	require.Equal(t, whole, with(all...))
	for i := range count - 1 {
		require.EqualValues(t, ends[i], refused(t, with(all[:i]...)).Offset, "cut off")
		lost := append(append([]int(nil), all[:i]...), all[i+1:]...)
		require.EqualValues(t, ends[i], refused(t, with(lost...)).Offset)
		doubled := append(append([]int(nil), all[:i+1]...), all[i:]...)
		require.EqualValues(t, ends[i+1], refused(t, with(doubled...)).Offset)
		swapped := append([]int(nil), all...)
		swapped[i], swapped[i+1] = i+1, i
		require.EqualValues(t, ends[i], refused(t, with(swapped...)).Offset)
	}
}

// TestForgedEntriesAreRefused has entries that Save does not write, with correct checksums.
func TestForgedEntriesAreRefused(t *testing.T) {
	many := string(binary.AppendUvarint(nil, math.MaxUint64))
	far := string(binary.AppendUvarint(nil, 1<<50))
	for _, tt := range []struct {
		name, payload, reason string // "" if it is right
	}{
		{"as Save writes it", "\x01a\x00\x01v", ""},
		{"two", "\x01a\x00\x01v\x01b\x01", ""},
		{"an empty host", "\x00\x00\x00", ""},
		{"a host twice", "\x01a\x00\x00\x01a\x00\x00", ""},
		{"a host beyond the end", "\x7fa\x00\x01v", "something is missing"},
		{"a value beyond the end", "\x01a\x00\x02v", "something is missing"},
		{"no value", "\x01a\x00", "something is missing"},
		{"no time", "\x01a", "something is missing"},
		{"a time beyond all", "\x01a" + many + "\x01v", "a time: "},
		{"a time far away", "\x01a" + far + "\x01v", "expires in more than a thousand years"},
		{"a length beyond all", "\x01a\x00" + many + "v", "bytes of a value"},
		{"a number without end", "\x01a" + strings.Repeat("\xff", 20), "without an end"},
		{"a host that is too long", "\xfe" + strings.Repeat("a", 254) + "\x00\x00", "host of 254 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := hostcache.Forge("string", []byte(tt.payload))
			if tt.reason != "" {
				require.Contains(t, refused(t, file).Reason, tt.reason)
				return
			}
			_, err := hostcache.Read[string](bytes.NewReader(file), hostcache.Options{})
			require.NoError(t, err)
		})
	}
	require.Contains(t, refused(t, hostcache.Forge("int32", nil)).Reason, "values of type int32, not string")

	var never bytes.Buffer
	w := durable.NewStreamWriter(&never, "SPNHOST3")
	w.Words(1 << 63)
	_, err := w.Close()
	require.NoError(t, err)
	require.Contains(t, refused(t, never.Bytes()).Reason, "it was saved at")
}

// TestForgedLengthsTakeNoMemory: a value of 32 MiB is permitted, but must be there.
func TestForgedLengthsTakeNoMemory(t *testing.T) {
	length := string(binary.AppendUvarint(nil, 32<<20))
	for _, there := range []int{0, 1 << 10, 1 << 16} {
		file := hostcache.Forge("string", []byte("\x01a\x00"+length+strings.Repeat("v", there)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		refused(t, file)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<18+6*len(file)))
	}
}

// FuzzOpen opens arbitrary files. What can be read is saved, and read again unchanged.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"v3-empty", "v3-three"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(b, false)
	}
	f.Add([]byte("\x01a\x00\x01v\x01b\x01"), true)
	f.Fuzz(func(t *testing.T, in []byte, payload bool) {
		if payload {
			in = hostcache.Forge("string", in)
		}
		synctest.Test(t, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "hosts")
			require.NoError(t, os.WriteFile(file, in, 0o644))
			c, err := hostcache.Open[string](file, hostcache.Options{MaxBytes: 1})
			if c == nil {
				require.ErrorIs(t, err, hostcache.ErrVersion)
				return
			}
			if err != nil {
				require.ErrorIs(t, err, hostcache.ErrCorrupt)
			}
			require.NoError(t, c.Save())
			require.Equal(t, maps.Collect(c.All()), maps.Collect(open[string](t, file).All()))
		})
	})
}
