package warc

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/zdict"
)

// packing is how a file is compressed. Only other programs write files with a dictionary.
type packing struct {
	EncoderOptions
	Dict []byte
}

// codings returns packings of all kinds.
func codings() map[string]packing {
	all := map[string]packing{"zstd-dict": {EncoderOptions{Compression: Zstd}, someDict()}}
	for name, o := range map[string]EncoderOptions{
		"gzip": {}, "gzip-1": {Level: 1}, "gzip-stored": {Level: -1}, "plain": {Compression: None},
		"zstd": {Compression: Zstd}, "zstd-2": {Compression: Zstd, Level: 2},
		"unhashed": {NoBlockDigest: true},
	} {
		all[name] = packing{EncoderOptions: o}
	}
	return all
}

// encoder returns an encoder for such files.
func (c packing) encoder() (*Encoder, error) {
	e, err := NewEncoder(c.EncoderOptions)
	if err == nil && c.Dict != nil {
		e.zs, err = zstd.NewWriter(nil, zstd.WithEncoderDict(c.Dict), zstd.WithEncoderConcurrency(1))
	}
	return e, err
}

// someDict is a dictionary of text like that of the records.
var someDict = sync.OnceValue(func() []byte {
	var samples [][]byte
	for i := range 64 {
		samples = append(samples, sample(i).block)
	}
	dict, err := zstd.BuildDict(zstd.BuildDictOptions{
		ID: 77, Contents: samples, History: bytes.Join(samples[:8], nil),
	})
	if err != nil {
		panic(err)
	}
	return dict
})

// entry is a record to write.
type entry struct {
	head  Head
	block []byte
}

// kinds are the types of records, in an order that is valid in a file.
var kinds = []string{"warcinfo", "request", "response", "revisit", "metadata", "resource",
	"conversion", "continuation"}

func sample(i int) entry {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	e := entry{head: Head{Type: kinds[i%len(kinds)], ID: ID{15: byte(i + 1)}, Date: someTime,
		ContentType: "application/octet-stream"}}
	if e.head.Type == "revisit" {
		e.head.Profile = ProfileIdentical
	}
	if e.head.Type != "warcinfo" {
		e.head.WarcinfoID = ID{15: byte(i/len(kinds)*len(kinds) + 1)}
		e.head.TargetURI = fmt.Sprintf("http://a.test/%d", i)
	}
	for range r.IntN(40) {
		e.block = fmt.Appendf(e.block, "some word %d and\r\n\r\nWARC/1.1 %s\n", r.IntN(1000),
			kinds[i%8])
	}
	return e
}

// written is a file and the positions of its records.
type written struct {
	data    []byte
	entries []entry
	offsets []int64 // of the records, and of the end
}

func write(t testing.TB, o packing, n int) *written {
	e, err := o.encoder()
	require.NoError(t, err)
	w := &written{}
	buf := &bytes.Buffer{}
	if o.Dict != nil {
		buf.Write(zdict.Append(nil, o.Dict))
	}
	for i := range n {
		entry := sample(i)
		w.offsets = append(w.offsets, int64(buf.Len()))
		half := len(entry.block) / 2
		raw, packed, err := e.Encode(buf, &entry.head, entry.block[:half], entry.block[half:])
		require.NoError(t, err)
		require.EqualValues(t, buf.Len(), w.offsets[i]+packed)
		require.Greater(t, raw, int64(len(entry.block)))
		w.entries = append(w.entries, entry)
	}
	w.offsets = append(w.offsets, int64(buf.Len()))
	w.data = buf.Bytes()
	return w
}

func TestEncodeFromIsEncode(t *testing.T) {
	for name, o := range codings() {
		t.Run(name, func(t *testing.T) {
			e, err := o.encoder()
			require.NoError(t, err)
			var one, two bytes.Buffer
			entry := sample(3)
			raw1, packed1, err := e.Encode(&one, &entry.head, entry.block)
			require.NoError(t, err)
			block := bytes.NewReader(append([]byte("before"), entry.block...))
			_, err = block.Seek(int64(len("before")), io.SeekStart)
			require.NoError(t, err)
			raw2, packed2, err := e.EncodeFrom(&two, &entry.head, block)
			require.NoError(t, err)
			require.Equal(t, raw1, raw2)
			require.Equal(t, []int64{int64(one.Len()), int64(two.Len())}, []int64{packed1, packed2})
			want := requireRecords(t, NewReader(&one, ReaderOptions{Dict: o.Dict, Verify: true}), 1)
			got := requireRecords(t, NewReader(&two, ReaderOptions{Dict: o.Dict, Verify: true}), 1)
			require.Equal(t, want[0].fields, got[0].fields)
			require.Equal(t, want[0].block, got[0].block)
		})
	}
}

// The members are valid for general-purpose decompressors.
func TestMembersAreValid(t *testing.T) {
	gz, err := gzip.NewReader(bytes.NewReader(write(t, packing{EncoderOptions: EncoderOptions{}}, 5).data))
	require.NoError(t, err)
	plain, err := io.ReadAll(gz)
	require.NoError(t, err)
	require.Equal(t, write(t, packing{EncoderOptions: EncoderOptions{Compression: None}}, 5).data, plain)

	zs, err := zstd.NewReader(bytes.NewReader(write(t, packing{EncoderOptions: EncoderOptions{Compression: Zstd}}, 5).data))
	require.NoError(t, err)
	defer zs.Close()
	frames, err := io.ReadAll(zs)
	require.NoError(t, err)
	require.Equal(t, plain, frames)
}

func TestADictionaryMakesSmallRecordsSmaller(t *testing.T) {
	all := codings()
	with, without := write(t, all["zstd-dict"], 60), write(t, all["zstd"], 60)
	require.Less(t, len(with.data[with.offsets[0]:]), len(without.data))
}

// Without digests, a record is the same except for that line.
func TestNoBlockDigest(t *testing.T) {
	entry := sample(3)
	var lines [2][]string
	options := []EncoderOptions{{Compression: None}, {Compression: None, NoBlockDigest: true}}
	for i, o := range options {
		e, err := NewEncoder(o)
		require.NoError(t, err)
		var out bytes.Buffer
		_, _, err = e.Encode(&out, &entry.head, entry.block)
		require.NoError(t, err)
		lines[i] = strings.SplitAfter(out.String(), "\n")
	}
	with := lines[0]
	at := slices.IndexFunc(with, func(s string) bool {
		return strings.HasPrefix(s, "WARC-Block-Digest: sha1:")
	})
	require.Equal(t, slices.Delete(slices.Clone(with), at, at+1), lines[1])
}

func TestNewEncoderRejectsInvalidOptions(t *testing.T) {
	for name, o := range map[string]EncoderOptions{
		"level 10 of gzip":    {Level: 10},
		"level 5 of zstd":     {Compression: Zstd, Level: 5},
		"unknown compression": {Compression: 3},
	} {
		_, err := NewEncoder(o)
		require.ErrorContains(t, err, "warc: new encoder: ", name)
	}
}

func TestEncodeRejectsLineBreaks(t *testing.T) {
	e, err := NewEncoder(EncoderOptions{Compression: None})
	require.NoError(t, err)
	for name, h := range map[string]Head{
		"in a value":          {TargetURI: "http://a/\r\nX: y"},
		"in an extra value":   {Extra: []Field{{"A", "b\nc"}}},
		"in an extra name":    {Extra: []Field{{"A\r\nB", "c"}}},
		"a name with a colon": {Extra: []Field{{"A:B", "c"}}},
		"an empty name":       {Extra: []Field{{"", "c"}}},
	} {
		var out bytes.Buffer
		_, _, err := e.Encode(&out, &h)
		require.ErrorIs(t, err, ErrInvalid, name)
		_, _, err = e.EncodeFrom(&out, &h, strings.NewReader("x"))
		require.ErrorIs(t, err, ErrInvalid, name)
		require.Zero(t, out.Len())
	}
}

// failing is a destination, and a block, that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error)      { return 0, f.err }
func (f failing) Read([]byte) (int, error)       { return 0, f.err }
func (f failing) Seek(int64, int) (int64, error) { return 0, nil }

func TestEncodeReturnsErrors(t *testing.T) {
	fire := errors.New("disk on fire")
	for name, o := range codings() {
		e, err := o.encoder()
		require.NoError(t, err)
		_, _, err = e.Encode(failing{fire}, &Head{Type: "metadata", Date: someTime}, []byte("x"))
		require.ErrorIs(t, err, fire, name)
		_, _, err = e.EncodeFrom(io.Discard, &Head{Type: "metadata", Date: someTime}, failing{fire})
		require.ErrorIs(t, err, fire, name)

		var out bytes.Buffer // the encoder still works
		_, _, err = e.Encode(&out, &Head{Type: "metadata", Date: someTime}, []byte("x"))
		require.NoError(t, err)
		requireRecords(t, NewReader(&out, ReaderOptions{Verify: true, Dict: o.Dict}), 1)
	}
}

// shrinking is a block that is shorter when it is read again.
type shrinking struct{ reads int }

func (s *shrinking) Seek(int64, int) (int64, error) { return 0, nil }
func (s *shrinking) Read(p []byte) (int, error) {
	if s.reads++; s.reads > 1 {
		return 0, io.EOF
	}
	return copy(p, "block"), nil
}

func TestShrinkingBlockIsRejected(t *testing.T) {
	e, err := NewEncoder(EncoderOptions{})
	require.NoError(t, err)
	head := Head{Type: "resource", Date: someTime, TargetURI: "a:b"}
	_, _, err = e.EncodeFrom(io.Discard, &head, &shrinking{})
	require.ErrorIs(t, err, ErrInvalid)
}

func TestExtensions(t *testing.T) {
	require.Equal(t, ".warc.gz .warc.zst .warc",
		Gzip.Extension()+" "+Zstd.Extension()+" "+None.Extension())
}

func TestEncodeAllocatesLittle(t *testing.T) {
	for name, o := range codings() {
		e, err := o.encoder()
		require.NoError(t, err)
		block := bytes.Repeat([]byte("some text of a page, "), 1000)
		h := Head{Type: "response", Date: someTime, TargetURI: "http://a.test/"}
		allocs := testing.AllocsPerRun(20, func() {
			_, _, err = e.Encode(io.Discard, &h, block)
		})
		require.NoError(t, err)
		require.LessOrEqual(t, allocs, 5.0, name)
	}
}
