package hostcache_test

import (
	"bytes"
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
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

// open opens a cache, which must succeed.
func open[V any](t *testing.T, file string) *hostcache.Cache[V] {
	t.Helper()
	c, err := hostcache.Open[V](file, hostcache.Options{MaxBytes: -1})
	require.NoError(t, err)
	return c
}

func TestWhatIsSavedIsThereAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "hosts")
		c := open[[16]byte](t, file)
		for i := range 6_000 {
			host := fmt.Sprintf("www%d.host-%d.test", i%3, i)
			switch i % 5 {
			case 0:
				c.SetNegative(host, time.Duration(i)*time.Second)
			case 1:
				c.Set(host, [16]byte{byte(i)}, hostcache.Forever)
			default:
				c.Set(host, [16]byte{byte(i), 15: byte(i >> 8)}, time.Duration(i)*time.Second)
			}
		}
		time.Sleep(500 * time.Second)
		require.NoError(t, c.Save())
		require.Equal(t, maps.Collect(c.All()), maps.Collect(open[[16]byte](t, file).All()))
		time.Sleep(500*time.Second + 3*time.Microsecond)
		again := open[[16]byte](t, file)
		require.Equal(t, maps.Collect(c.All()), maps.Collect(again.All()))
		require.Equal(t, len(maps.Collect(c.All())), again.Len(), "what has expired is left out")
	})
}

// A pair encodes itself, by pointer.
type pair struct{ a, b string }

func (p *pair) MarshalBinary() ([]byte, error) { return []byte(p.a + "\n" + p.b), nil }

func (p *pair) UnmarshalBinary(b []byte) (err error) {
	var ok bool
	if p.a, p.b, ok = strings.Cut(string(b), "\n"); !ok {
		return errors.New("no line")
	}
	return nil
}

type text string

func TestTypesThatNeedNoCodec(t *testing.T) {
	savesAndOpens(t, netip.MustParseAddr("fe80::1%eth0"))
	savesAndOpens(t, time.Unix(5, 6).UTC())
	savesAndOpens(t, pair{"a", "b"})
	savesAndOpens(t, "text")
	savesAndOpens(t, text("text"))
	savesAndOpens(t, [4]byte{192, 0, 2, 1})
	savesAndOpens(t, struct {
		A int16
		B [2]float64
		C struct{ D bool }
	}{A: -1, B: [2]float64{0, 0.5}, C: struct{ D bool }{true}})
	savesAndOpens(t, int64(-7))
	savesAndOpens(t, struct{}{})
}

func savesAndOpens[V any](t *testing.T, v V) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hosts")
	c := open[V](t, file)
	var zero V
	c.Set("a.test", v, time.Hour)
	c.SetNegative("b.test", time.Hour)
	c.Set("zero.test", zero, time.Hour)
	require.NoError(t, c.Save())
	require.Equal(t, maps.Collect(c.All()), maps.Collect(open[V](t, file).All()))
}

func TestTypesThatCannotBeSaved(t *testing.T) {
	refuses[int](t)
	refuses[*int](t)
	refuses[*pair](t)
	refuses[[]byte](t)
	refuses[any](t)
	refuses[[]string](t)
	refuses[[]int32](t)
	refuses[map[string]int](t)
	refuses[struct{ A string }](t)
	refuses[struct{ a int16 }](t)
	require.ErrorContains(t, hostcache.New[string](hostcache.Options{}).Save(), "make it with Open")
}

func refuses[V any](t *testing.T) {
	t.Helper()
	_, err := hostcache.Open[V](filepath.Join(t.TempDir(), "hosts"), hostcache.Options{})
	require.ErrorContains(t, err, "AppendBinary")
}

// TestOtherTypesAreRefused opens what was saved as one type as each of the others.
func TestOtherTypesAreRefused(t *testing.T) {
	dir := t.TempDir()
	opens := map[string]func(file string) error{
		"addr": opens[netip.Addr], "text": opens[string], "four": opens[[4]byte], "int": opens[int32],
		"pair": opens[pair],
	}
	save(t, dir+"/addr", netip.IPv6Unspecified())
	save(t, dir+"/text", "text")
	save(t, dir+"/four", [4]byte{})
	save(t, dir+"/int", int32(4))
	save(t, dir+"/pair", pair{})
	for wrote := range opens {
		for reads, open := range opens {
			err := open(filepath.Join(dir, wrote))
			if wrote == reads {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "it has values of type")
			require.ErrorIs(t, err, hostcache.ErrCorrupt)
		}
	}
	require.Error(t, opens["text"](dir), "a directory is no file")
	require.NotErrorIs(t, opens["text"](dir), hostcache.ErrCorrupt)
}

func opens[V any](file string) error {
	_, err := hostcache.Open[V](file, hostcache.Options{})
	return err
}

func save[V any](t *testing.T, file string, v V) {
	t.Helper()
	c := open[V](t, file)
	c.Set("a.test", v, time.Hour)
	require.NoError(t, c.Save())
}

func TestASmallerCacheTakesWhatFits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	c := open[int64](t, file)
	for i := range 20_000 {
		c.Set(fmt.Sprintf("%d.test", i), int64(i), time.Hour)
	}
	require.NoError(t, c.Save())
	again, err := hostcache.Open[int64](file, hostcache.Options{MaxBytes: 1})
	require.NoError(t, err)
	require.LessOrEqual(t, again.Stats().Bytes, 256<<10)
	require.Greater(t, again.Len(), 3000)
}

// TestSaveKeepsPlaceAndMode saves through a symbolic link and from another working directory.
func TestSaveKeepsPlaceAndMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and modes are other things there")
	}
	dir, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join("real", "hosts"), filepath.Join(dir, "link")))
	save(t, filepath.Join(dir, "real", "hosts"), "old")
	require.NoError(t, os.Chmod(filepath.Join(dir, "real", "hosts"), 0o640))

	t.Chdir(dir)
	c := open[string](t, "link")
	c.Set("b.test", "new", time.Hour)
	t.Chdir(elsewhere)
	require.NoError(t, c.Save())

	info, err := os.Lstat(filepath.Join(dir, "real", "hosts"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode())
	info, err = os.Lstat(filepath.Join(dir, "link"))
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, info.Mode().Type(), "the link stays")
	require.Equal(t, 2, open[string](t, filepath.Join(dir, "link")).Len())
	left, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestAValueThatCannotBeSavedIsLeftOut names it, and saves all others.
func TestAValueThatCannotBeSavedIsLeftOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	c := open[stubborn](t, file)
	for i := range 100 {
		c.Set(fmt.Sprintf("%d.test", i), stubborn{}, time.Hour)
	}
	c.SetNegative("absent.test", time.Hour)
	c.Set("bad.test", stubborn{fail: true}, time.Hour)
	err := c.Save()
	require.ErrorIs(t, err, errStubborn)
	require.ErrorContains(t, err, "hostcache: save: value of bad.test: stubborn")
	require.Equal(t, 101, open[stubborn](t, file).Len())
	c.Set("large.test", stubborn{size: 33 << 20}, time.Hour)
	require.ErrorContains(t, c.Save(), "all but 2 entries: value of ")
	require.Equal(t, 101, open[stubborn](t, file).Len())
	c.Delete("bad.test")
	require.ErrorContains(t, c.Save(), "value of large.test: 34603008 bytes are too many")
	c.Delete("large.test")
	require.NoError(t, c.Save())
}

// TestAValueThatCannotBeDecodedIsLeftOut has a type that refuses some of the values it has written.
func TestAValueThatCannotBeDecodedIsLeftOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	c := open[forgetful](t, file)
	for i := range forgetful(100) {
		c.Set(fmt.Sprintf("%d.test", i), i, time.Hour)
	}
	require.NoError(t, c.Save())
	again, err := hostcache.Open[forgetful](file, hostcache.Options{})
	var corrupt *hostcache.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, file, corrupt.File)
	require.Contains(t, corrupt.Reason, "value of 13.test: an unlucky number")
	require.Equal(t, 99, again.Len())
}

// A forgetful number is written, and one of them is not read again.
type forgetful byte

func (n forgetful) AppendBinary(b []byte) ([]byte, error) { return append(b, byte(n)), nil }

func (n *forgetful) UnmarshalBinary(b []byte) error {
	if *n = forgetful(b[0]); *n == 13 {
		return errors.New("an unlucky number")
	}
	return nil
}

// TestAFailedSaveLeavesTheOldFile fails the write and the rename. Nothing else may be left.
func TestAFailedSaveLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	c := open[stubborn](t, filepath.Join(dir, "hosts"))
	c.Set("a.test", stubborn{}, time.Hour)
	require.NoError(t, c.Save())
	c.Set("b.test", stubborn{panics: true}, time.Hour)
	require.PanicsWithValue(t, "stubborn", func() { _ = c.Save() })
	require.Equal(t, 1, open[stubborn](t, filepath.Join(dir, "hosts")).Len())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	c.Delete("b.test")
	require.NoError(t, c.Save(), "no lock is held")

	blocked := open[string](t, filepath.Join(dir, "blocked"))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "blocked", "occupied"), 0o755))
	require.Error(t, blocked.Save())
	absent := open[string](t, filepath.Join(dir, "absent", "hosts"))
	require.ErrorIs(t, absent.Save(), fs.ErrNotExist)
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

// TestSavesToOneFileAreApart saves a cache while another one, which may be in another process, writes
// the same file.
func TestSavesToOneFileAreApart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	first, second := open[meddler](t, file), open[string](t, file)
	first.Set("a.test", meddler{}, time.Hour)
	second.Set("b.test", strings.Repeat("b", 1000), time.Hour)
	meddle = second.Save
	require.NoError(t, first.Save())
	require.Equal(t, 1, open[meddler](t, file).Len())
	require.NoError(t, second.Save())
	require.Equal(t, 1, open[string](t, file).Len())
}

// A meddler calls meddle when it is saved.
type meddler struct{}

var meddle func() error

func (meddler) AppendBinary(b []byte) ([]byte, error) { return b, meddle() }
func (*meddler) UnmarshalBinary([]byte) error         { return nil }

// wide makes the name of a type longer.
type wide[T any] struct{ A [1]T }

// TestTypesWithLongNamesAreRefused: what Open could not read again must not be saved.
func TestTypesWithLongNamesAreRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hosts")
	type w[T any] = wide[wide[wide[wide[wide[T]]]]]
	_, err := hostcache.Open[w[w[w[w[uint8]]]]](name, hostcache.Options{})
	require.ErrorContains(t, err, "a shorter one")
	require.NoFileExists(t, name)
	c := open[w[uint8]](t, name)
	c.Set("a.test", w[uint8]{}, time.Hour)
	require.NoError(t, c.Save())
	require.Equal(t, 1, open[w[uint8]](t, name).Len())
}

var errStubborn = errors.New("stubborn")

// A stubborn value cannot be saved, in one way or another.
type stubborn struct {
	size         int
	fail, panics bool
}

func (s stubborn) AppendBinary(b []byte) ([]byte, error) {
	if s.panics {
		panic("stubborn")
	}
	if s.fail {
		return nil, errStubborn
	}
	return append(b, make([]byte, s.size)...), nil
}

func (*stubborn) UnmarshalBinary([]byte) error { return nil }

// TestErrorsOfTheDiskAreNoDamage fails the read at each byte, including the one that checks for the
// end.
func TestErrorsOfTheDiskAreNoDamage(t *testing.T) {
	whole, broken := sample(t), errors.New("broken")
	for n := range len(whole) + 1 {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken))
		_, err := hostcache.Read[string](r, hostcache.Options{})
		require.ErrorIs(t, err, broken, "byte %d", n)
		require.NotErrorIs(t, err, hostcache.ErrCorrupt, "byte %d", n)
	}
}

// TestAClockThatIsSetChangesNoLife adjusts the wall clock by ten hours. That must affect neither
// the entries nor the file. It cannot be in a bubble, whose times have one clock only.
func TestAClockThatIsSetChangesNoLife(t *testing.T) {
	for _, by := range []time.Duration{-10 * time.Hour, 10 * time.Hour} {
		file := filepath.Join(t.TempDir(), "hosts")
		c := open[string](t, file)
		c.Set("a.test", "a", time.Hour)
		c.SetClock(by)
		require.NoError(t, c.Save())
		for _, c := range []*hostcache.Cache[string]{c, open[string](t, file)} {
			e, known := c.Lookup("a.test")
			require.True(t, known, "after %v", by)
			require.InDelta(t, time.Hour, time.Until(e.Expires), float64(time.Minute), "after %v", by)
		}
	}
}

// TestAFileFromTheFutureIsBroughtBack opens a file that was saved while the clock was a year ahead.
func TestAFileFromTheFutureIsBroughtBack(t *testing.T) {
	var file []byte
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(400 * 24 * time.Hour)
		file = sample(t)
	})
	synctest.Test(t, func(t *testing.T) {
		c, err := hostcache.Read[string](bytes.NewReader(file), hostcache.Options{})
		require.NoError(t, err)
		e, known := c.Lookup("hour.test")
		require.True(t, known)
		require.Equal(t, time.Now().Add(time.Hour).UTC(), e.Expires)
	})
}

var update = flag.Bool("update", false, "write the hex dumps of FORMAT.md anew")

// TestFormatIsDocumented compares the dumps in FORMAT.md with the output of the code, and with the
// files of each version in testdata, which must stay readable forever.
func TestFormatIsDocumented(t *testing.T) {
	made := map[string]string{}
	synctest.Test(t, func(t *testing.T) { // at midnight of 2000-01-01
		dir := t.TempDir()
		require.NoError(t, open[string](t, filepath.Join(dir, "empty")).Save())
		c, err := hostcache.Open[netip.Addr](filepath.Join(dir, "three"), hostcache.Options{MaxBytes: 1})
		require.NoError(t, err)
		c.Set("www.example.com", netip.MustParseAddr("192.0.2.1"), time.Minute)
		c.Set("example.com", netip.MustParseAddr("2001:db8::1"), hostcache.Forever)
		c.SetNegative("absent.example.com", time.Second)
		require.NoError(t, c.Save())
		for _, name := range []string{"empty", "three"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			if *update {
				require.NoError(t, os.WriteFile(filepath.Join("testdata", "v3-"+name), b, 0o644))
			}
			kept, err := os.ReadFile(filepath.Join("testdata", "v3-"+name))
			require.NoError(t, err)
			require.Equal(t, kept, b)
			made[name] = hex.Dump(b)
		}
		require.Equal(t, 3, open[netip.Addr](t, filepath.Join("testdata", "v3-three")).Len())
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

// An empty name would be that of the working directory, and Save would write beside it.
func TestOpenNeedsAName(t *testing.T) {
	_, err := hostcache.Open[int32]("", hostcache.Options{})
	require.ErrorContains(t, err, "no file name")
}
