package hostcache_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

// texts keeps strings as their bytes.
var texts = hostcache.Codec[string]{
	Append: func(to []byte, v string) []byte { return append(to, v...) },
	Decode: func(b []byte) (string, error) { return string(b), nil },
}

// saved returns the bytes of a file with all kinds of entries.
func saved(t *testing.T, file string, hosts, valueSize int) []byte {
	t.Helper()
	c := hostcache.New[string](hostcache.Options{TTL: -1, MaxBytes: -1})
	for i := range hosts {
		c.Set(fmt.Sprintf("%d.example.test", i), strings.Repeat("v", i%(valueSize+1)), 0)
	}
	c.Set("", "empty", time.Hour)
	c.SetNegative("absent.test", time.Hour)
	c.Set(strings.Repeat("long.", 60)+"test", "", time.Hour)
	require.NoError(t, c.Save(file, texts))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return b
}

// refused opens bytes as a file, without the time that the system takes for one, and returns why
// that fails.
func refused(t *testing.T, b []byte) *hostcache.CorruptError {
	t.Helper()
	c, err := hostcache.OpenReader(bytes.NewReader(b), "hosts", texts,
		hostcache.Options{MaxBytes: 50_000})
	require.True(t, c == nil, "an error comes alone")
	corrupt, ok := errors.AsType[*hostcache.CorruptError](err)
	require.True(t, ok, "%v", err)
	require.LessOrEqual(t, corrupt.Offset, int64(len(b)))
	return corrupt
}

// TestEveryFlippedBitIsFound flips each bit of a file with a codec's values, one by one.
func TestEveryFlippedBitIsFound(t *testing.T) {
	t.Parallel()
	whole := saved(t, filepath.Join(t.TempDir(), "hosts"), 2, 9)
	for bit := range 8 * len(whole) {
		altered := append([]byte(nil), whole...)
		altered[bit/8] ^= 1 << (bit % 8)
		refused(t, altered)
	}
}

// TestBlocksCannotBeLostOrMoved has a file of several blocks, each of which has its right checksum,
// and takes one away, doubles one, and swaps two.
func TestBlocksCannotBeLostOrMoved(t *testing.T) {
	t.Parallel()
	const header, blockHeader = 24, 12
	whole := saved(t, filepath.Join(t.TempDir(), "hosts"), 3000, 110)
	ends := []int{header}
	for at := header; at < len(whole); {
		at += blockHeader + int(binary.LittleEndian.Uint32(whole[at:]))
		ends = append(ends, at)
	}
	blocks := len(ends) - 1
	require.Greater(t, blocks, 3)
	block := func(i int) []byte { return whole[ends[i]:ends[i+1]] }
	with := func(order ...int) []byte {
		b := append([]byte(nil), whole[:header]...)
		for _, i := range order {
			b = append(b, block(i)...)
		}
		return b
	}
	all := make([]int, blocks)
	for i := range all {
		all[i] = i
	}
	for i := range blocks - 1 {
		require.EqualValues(t, ends[i], refused(t, with(all[:i]...)).Offset, "cut off")
		lost := append(append([]int(nil), all[:i]...), all[i+1:]...)
		require.Contains(t, refused(t, with(lost...)).Reason, "entries were written")
		doubled := append(append([]int(nil), all[:i+1]...), all[i:]...)
		require.EqualValues(t, ends[i+1]+blockHeader, refused(t, with(doubled...)).Offset)
		if i+2 < blocks {
			swapped := append([]int(nil), all...)
			swapped[i], swapped[i+1] = i+1, i
			require.Contains(t, refused(t, with(swapped...)).Reason, "not in order")
		}
	}
	require.Equal(t, whole, with(all...))
	refused(t, with(append(all, blocks-1)...))
}

// TestForgedEntriesAreRefused has right checksums around entries that Save does not write.
func TestForgedEntriesAreRefused(t *testing.T) {
	many := binary.AppendUvarint(nil, math.MaxUint64)
	for _, tt := range []struct {
		name    string
		payload string // a count and the entries
		reason  string // "" if it is right
	}{
		{"as Save writes it", "\x01\x00\x01a\x08\x00\x01v", ""},
		{"two", "\x02\x00\x01a\x08\x00\x00\x01\x01b\x08\x00\x00", ""},
		{"an empty host", "\x01\x00\x00\x08\x00\x00", ""},
		{"a count too high", "\x02\x00\x01a\x08\x00\x01v", "makes no sense"},
		{"a count too low", "\x01\x00\x01a\x08\x00\x00\x01\x01b\x08\x00\x00", "something follows"},
		{"no total", "\x00\x00\x01a\x08\x00\x01v", "the last block has"},
		{"shares with nothing", "\x01\x01\x01a\x08\x00\x01v", "makes no sense"},
		{"shares too much", "\x02\x00\x01a\x08\x00\x00\x02\x01b\x08\x00\x00", "makes no sense"},
		{"the same key", "\x02\x00\x01a\x08\x00\x00\x01\x00\x08\x00\x00", "not in order"},
		{"an earlier key", "\x02\x00\x01b\x08\x00\x00\x00\x01a\x08\x00\x00", "not in order"},
		{"the empty key twice", "\x02\x00\x00\x08\x00\x00\x00\x00\x08\x00\x00", "not in order"},
		{"a credit", "\x01\x00\x01a\x09\x00\x01v", "makes no sense"},
		{"an unknown flag", "\x01\x00\x01a\x88\x00\x01v", "makes no sense"},
		{"a worth that nothing has", "\x01\x00\x01a\x38\x00\x01v", "makes no sense"},
		{"a key beyond the end", "\x01\x00\x7fa\x08\x00\x01v", "makes no sense"},
		{"a value beyond the end", "\x01\x00\x01a\x08\x00\x02v", "makes no sense"},
		{"a time beyond all", "\x01\x00\x01a\x08" + string(many) + "\x01v", "makes no sense"},
		{"a length beyond all", "\x01\x00\x01a\x08\x00" + string(many) + "v", "makes no sense"},
		{"a share beyond all", "\x01" + string(many) + "\x01a\x08\x00\x01v", "makes no sense"},
		{"a number without end", "\x01" + strings.Repeat("\xff", 20), "makes no sense"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := hostcache.WithChecksums([]byte(tt.payload))
			if tt.reason != "" {
				require.Contains(t, refused(t, b).Reason, tt.reason)
				return
			}
			c, err := hostcache.OpenReader(bytes.NewReader(b), "hosts", texts, hostcache.Options{})
			require.NoError(t, err)
			require.EqualValues(t, tt.payload[0], c.Len())
		})
	}
}

// opens opens a file for one type and codec.
func opens[V any](file string, codec hostcache.Codec[V]) error {
	_, err := hostcache.Open(file, codec, hostcache.Options{})
	return err
}

// TestWhatAnotherCodecWroteIsRefused saves as one type and opens as each of the others.
func TestWhatAnotherCodecWroteIsRefused(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, err error) string { require.NoError(t, err, name); return dir + "/" + name }
	four, eight := hostcache.New[int32](hostcache.Options{}), hostcache.New[int64](hostcache.Options{})
	none := hostcache.New[struct{}](hostcache.Options{})
	text := hostcache.New[string](hostcache.Options{})
	four.Set("a.test", 4, 0)
	eight.Set("a.test", 8, 0)
	none.Set("a.test", struct{}{}, 0)
	text.Set("a.test", "text", 0)
	files := map[string]string{
		"four":  save("four", four.Save(dir+"/four", hostcache.Codec[int32]{})),
		"eight": save("eight", eight.Save(dir+"/eight", hostcache.Codec[int64]{})),
		"none":  save("none", none.Save(dir+"/none", hostcache.Codec[struct{}]{})),
		"text":  save("text", text.Save(dir+"/text", texts)),
	}
	for wrote, file := range files {
		for reads, err := range map[string]error{
			"four":  opens(file, hostcache.Codec[uint32]{}),
			"eight": opens(file, hostcache.Codec[float64]{}),
			"none":  opens(file, hostcache.Codec[[0]int]{}),
			"text":  opens(file, texts),
		} {
			if wrote == reads {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, hostcache.ErrCodec, "%s opens what %s wrote", reads, wrote)
			require.NotErrorIs(t, err, hostcache.ErrCorrupt)
			require.ErrorContains(t, err, file)
		}
	}
	half := hostcache.Codec[string]{Append: texts.Append}
	require.ErrorIs(t, opens(files["text"], half), hostcache.ErrCodec)
	require.ErrorIs(t, text.Save(files["text"], half), hostcache.ErrCodec)
	require.NoError(t, opens(files["text"], texts), "a Save that is refused leaves the file alone")
	require.Error(t, opens(dir, texts), "a folder is no file")
	require.NotErrorIs(t, opens(dir, texts), hostcache.ErrCorrupt)
}

// TestAnEntryTooBigFailsTheSave has a codec write more than a block can hold.
func TestAnEntryTooBigFailsTheSave(t *testing.T) {
	dir := t.TempDir()
	c := hostcache.New[string](hostcache.Options{})
	c.Set("a.test", "small", 0)
	require.NoError(t, c.Save(dir+"/hosts", texts))
	huge := make([]byte, 32<<20)
	inflated := texts
	inflated.Append = func(to []byte, _ string) []byte { return append(to, huge...) }
	require.ErrorContains(t, c.Save(dir+"/hosts", inflated), "too many for an entry")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no half file is left")
	require.NoError(t, opens(dir+"/hosts", texts))
}

// TestACodecThatPanicsLeavesNothing has Append panic in the middle: the caller gets the panic, and
// the folder is as it was.
func TestACodecThatPanicsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	c := hostcache.New[string](hostcache.Options{})
	c.Set("a.test", "small", 0)
	panics := texts
	panics.Append = func([]byte, string) []byte { panic("codec") }
	require.PanicsWithValue(t, "codec", func() { _ = c.Save(dir+"/hosts", panics) })
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	c.Set("b.test", "no lock is held", 0)
	require.NoError(t, c.Save(dir+"/hosts", texts))
}

// TestValuesBesideTheTreeAreGivenBack empties tries whose values lie in chunks of their own.
func TestValuesBesideTheTreeAreGivenBack(t *testing.T) {
	trie := hostcache.NewTrie[[1000]byte]()
	for range 2 {
		for i := range 4000 {
			trie.Set(fmt.Sprint(i), [1000]byte{byte(i)})
		}
		require.Greater(t, trie.Size().Reserved, 4_000_000)
		for i := range 4000 {
			v, found := trie.Get(fmt.Sprint(i))
			require.True(t, found)
			require.Equal(t, byte(i), v[0])
			trie.Delete(fmt.Sprint(i))
		}
		require.Zero(t, trie.Size().Bytes)
		require.Less(t, trie.Size().Reserved, 1<<20)
	}
}
