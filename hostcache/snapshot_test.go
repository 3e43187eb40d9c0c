package hostcache_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

// addrs keeps addresses, which have pointers in them, as their bytes.
var addrs = hostcache.Codec[netip.Addr]{
	Append: func(to []byte, a netip.Addr) []byte { return append(to, a.AsSlice()...) },
	Decode: func(b []byte) (netip.Addr, error) {
		a, ok := netip.AddrFromSlice(b)
		if !ok && len(b) > 0 {
			return a, errors.New("no address")
		}
		return a, nil
	},
}

func TestWhatIsSavedIsThereAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "hosts")
		c := hostcache.New[[16]byte](hostcache.Options{})
		want := map[string]hostcache.Entry[[16]byte]{}
		for i := range 6_000 {
			host := fmt.Sprintf("www%d.host-%d.test", i%3, i)
			v := [16]byte{byte(i), 15: byte(i >> 8)}
			if i%5 == 0 {
				c.SetNegative(host, time.Duration(i)*time.Second)
			} else {
				c.Set(host, v, time.Duration(i)*time.Second)
			}
			want[host], _ = c.Lookup(host)
		}
		time.Sleep(500 * time.Second)
		require.NoError(t, c.Save(file, hostcache.Codec[[16]byte]{}))
		time.Sleep(500 * time.Second)
		maps.DeleteFunc(want, func(_ string, e hostcache.Entry[[16]byte]) bool {
			return !e.Expires.After(time.Now())
		})

		again, err := hostcache.Open(file, hostcache.Codec[[16]byte]{}, hostcache.Options{})
		require.NoError(t, err)
		require.Equal(t, len(want), again.Len())
		for host, e := range want {
			got, known := again.Lookup(host)
			require.True(t, known)
			require.Equal(t, e.Value, got.Value)
			require.Equal(t, e.Negative, got.Negative)
			late := got.Expires.Sub(e.Expires)
			require.True(t, late >= 0 && late < 3*time.Millisecond, late)
		}
	})
}

func TestValuesWithPointersGoThroughTheCodec(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	c := hostcache.New[netip.Addr](hostcache.Options{})
	c.Set("four.test", netip.MustParseAddr("192.0.2.1"), 0)
	c.Set("six.test", netip.MustParseAddr("2001:db8::1"), 0)
	require.ErrorIs(t, c.Save(file, hostcache.Codec[netip.Addr]{}), hostcache.ErrCodec)
	require.NoFileExists(t, file)
	require.NoError(t, c.Save(file, addrs))

	again, err := hostcache.Open(file, addrs, hostcache.Options{})
	require.NoError(t, err)
	require.Equal(t, maps.Collect(c.All()), maps.Collect(again.All()))

	_, err = hostcache.Open(file, hostcache.Codec[[16]byte]{}, hostcache.Options{})
	require.ErrorIs(t, err, hostcache.ErrCodec)
	zoned := addrs
	zoned.Append = func(to []byte, a netip.Addr) []byte { return append(to, a.String()...) }
	require.NoError(t, c.Save(file, zoned))
	_, err = hostcache.Open(file, addrs, hostcache.Options{})
	require.ErrorContains(t, err, "no address")
	require.NotErrorIs(t, err, hostcache.ErrCorrupt, "the file is whole")
}

func TestRawValuesNeedTheirSize(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, hostcache.New[int32](hostcache.Options{}).Save(file, hostcache.Codec[int32]{}))
	_, err := hostcache.Open(file, hostcache.Codec[int64]{}, hostcache.Options{})
	require.ErrorIs(t, err, hostcache.ErrCodec)
}

func TestASmallerCacheTakesWhatFits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	c := hostcache.New[int](hostcache.Options{})
	for i := range 8_000 {
		c.Set(fmt.Sprintf("%d.test", i), i, 0)
	}
	require.NoError(t, c.Save(file, hostcache.Codec[int]{}))
	again, err := hostcache.Open(file, hostcache.Codec[int]{}, hostcache.Options{MaxBytes: 50_000})
	require.NoError(t, err)
	require.LessOrEqual(t, again.Stats().Bytes, 50_000)
	require.Greater(t, again.Len(), 1000)
}

// TestAFailedSaveLeavesTheOldFile has the rename fail, and leaves nothing behind.
func TestAFailedSaveLeavesTheOldFile(t *testing.T) {
	c := hostcache.New[int](hostcache.Options{})
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "hosts", "occupied"), 0o755))
	require.Error(t, c.Save(filepath.Join(dir, "hosts"), hostcache.Codec[int]{}))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.ErrorIs(t, c.Save(filepath.Join(dir, "absent", "hosts"), hostcache.Codec[int]{}),
		fs.ErrNotExist)
	_, err = hostcache.Open(filepath.Join(dir, "absent"), hostcache.Codec[int]{}, hostcache.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestErrorsOfTheDiskAreNoDamage fails the read at each byte, and the one that asks whether anything
// follows the end.
func TestErrorsOfTheDiskAreNoDamage(t *testing.T) {
	whole := saved(t, filepath.Join(t.TempDir(), "hosts"), 2, 9)
	broken := errors.New("broken")
	for n := range len(whole) + 1 {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken))
		_, err := hostcache.OpenReader(r, "hosts", texts, hostcache.Options{MaxBytes: 50_000})
		require.ErrorIs(t, err, broken, "byte %d", n)
		require.NotErrorIs(t, err, hostcache.ErrCorrupt, "byte %d", n)
	}
}

// TestAClockThatIsSetChangesNoLife saves after the wall clock was set by ten hours. It cannot be in
// a bubble, whose times have one clock only.
func TestAClockThatIsSetChangesNoLife(t *testing.T) {
	for _, by := range []time.Duration{-10 * time.Hour, 10 * time.Hour} {
		file := filepath.Join(t.TempDir(), "hosts")
		c := hostcache.New[int](hostcache.Options{})
		c.SetClockForward(by)
		c.Set("a.test", 1, time.Hour)
		require.NoError(t, c.Save(file, hostcache.Codec[int]{}))
		again, err := hostcache.Open(file, hostcache.Codec[int]{}, hostcache.Options{})
		require.NoError(t, err)
		e, known := again.Lookup("a.test")
		require.True(t, known, by)
		require.Less(t, time.Until(e.Expires), 2*time.Hour, by)
	}
}

// TestEveryDamageIsFound cuts a file at each byte, and alters each byte.
func TestEveryDamageIsFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	c := hostcache.New[int32](hostcache.Options{})
	for i := range 20 {
		c.Set(fmt.Sprintf("%d.test", i), int32(i), 0)
	}
	require.NoError(t, c.Save(file, hostcache.Codec[int32]{}))
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	open := func(b []byte) int64 {
		t.Helper()
		_, err := hostcache.OpenReader(bytes.NewReader(b), file, hostcache.Codec[int32]{},
			hostcache.Options{MaxBytes: 50_000})
		require.ErrorIs(t, err, hostcache.ErrCorrupt)
		corrupt, _ := errors.AsType[*hostcache.CorruptError](err)
		require.Equal(t, file, corrupt.File)
		require.Contains(t, err.Error(), fmt.Sprintf("%s: byte %d: ", file, corrupt.Offset))
		return corrupt.Offset
	}
	for n := range whole {
		require.EqualValues(t, n, open(whole[:n]), "torn at byte %d", n)
		altered := append([]byte(nil), whole...)
		altered[n] ^= 0x40
		latest := max(n, 20)
		if n >= 24 && n < 28 || n >= len(whole)-20 && n < len(whole)-16 {
			latest = len(whole) // a block that has become longer than the file
		}
		require.LessOrEqual(t, open(altered), int64(latest), "byte %d is altered", n)
	}
	require.EqualValues(t, len(whole), open(append(whole[:len(whole):len(whole)], 0)))

	require.NoError(t, os.WriteFile(file, whole[:len(whole)-1], 0o644))
	_, err = hostcache.Open(file, hostcache.Codec[int32]{}, hostcache.Options{})
	require.ErrorIs(t, err, hostcache.ErrCorrupt, "a file, not only its bytes")
}

var update = flag.Bool("update", false, "write the hex dumps of FORMAT.md anew")

// TestFormatIsDocumented compares the dumps in FORMAT.md with what the code writes, and with the
// files of each version in testdata, which have to be readable for ever.
func TestFormatIsDocumented(t *testing.T) {
	made := map[string]string{}
	synctest.Test(t, func(t *testing.T) { // at midnight of 2000-01-01
		dir := t.TempDir()
		empty := hostcache.New[int32](hostcache.Options{})
		require.NoError(t, empty.Save(filepath.Join(dir, "empty"), hostcache.Codec[int32]{}))
		c := hostcache.New[netip.Addr](hostcache.Options{TTL: -1})
		c.Set("www.example.com", netip.MustParseAddr("192.0.2.1"), time.Minute)
		c.Set("example.com", netip.MustParseAddr("2001:db8::1"), 0)
		c.SetNegative("absent.example.com", time.Second)
		require.NoError(t, c.Save(filepath.Join(dir, "three"), addrs))
		for _, name := range []string{"empty", "three"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			if *update {
				require.NoError(t, os.WriteFile(filepath.Join("testdata", "v1-"+name), b, 0o644))
			}
			kept, err := os.ReadFile(filepath.Join("testdata", "v1-"+name))
			require.NoError(t, err)
			require.Equal(t, kept, b)
			made[name] = hex.Dump(b)
		}
		again, err := hostcache.Open(filepath.Join("testdata", "v1-three"), addrs, hostcache.Options{})
		require.NoError(t, err)
		require.Equal(t, 3, again.Len())
	})
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	dumps := regexp.MustCompile("(?s)```hexdump ([a-z]+)\n(.*?)```")
	if *update {
		page = dumps.ReplaceAllFunc(page, func(old []byte) []byte {
			name := string(dumps.FindSubmatch(old)[1])
			return []byte("```hexdump " + name + "\n" + made[name] + "```")
		})
		require.NoError(t, os.WriteFile("FORMAT.md", page, 0o644))
	}
	found := dumps.FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, len(made))
	for _, dump := range found {
		require.Equal(t, made[dump[1]], dump[2])
	}
}

// FuzzOpen has arbitrary files opened: what can be read is saved again, and then read the same.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"v1-empty", "v1-three"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(b, false)
		f.Add(b[24:], true)
	}
	f.Add(binary.LittleEndian.AppendUint32(nil, 1<<31), true)
	names := hostcache.Codec[string]{
		Append: func(to []byte, v string) []byte { return append(to, v...) },
		Decode: func(b []byte) (string, error) { return strings.Clone(string(b)), nil },
	}
	f.Fuzz(func(t *testing.T, in []byte, payload bool) {
		if payload {
			in = hostcache.WithChecksums(in)
		}
		synctest.Test(t, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "hosts")
			require.NoError(t, os.WriteFile(file, in, 0o644))
			c, err := hostcache.Open(file, names, hostcache.Options{MaxBytes: -1})
			if err != nil {
				require.True(t, errors.Is(err, hostcache.ErrCorrupt) || errors.Is(err, hostcache.ErrCodec))
				return
			}
			require.NoError(t, c.Save(file, names))
			again, err := hostcache.Open(file, names, hostcache.Options{MaxBytes: -1})
			require.NoError(t, err)
			require.Equal(t, maps.Collect(c.All()), maps.Collect(again.All()))
			require.Equal(t, c.Len(), again.Len())
		})
	})
}
