package archive

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func someEntry() entry {
	return entry{time: 1_800_000_000_000_000, file: 7, offset: 1 << 40, length: 12345,
		kind: Changed, status: 200, digest: sha1Digest(&[20]byte{1, 2, 3}), media: "text/html"}
}

// Entries of one URL sort by time, including times before 1970.
func TestKeysSort(t *testing.T) {
	var keys []string
	for _, time := range []int64{math.MinInt64, -1, 0, 1, 255, 256, 1 << 40, math.MaxInt64} {
		for _, file := range []uint32{0, 256, math.MaxUint32} {
			for _, offset := range []int64{0, 255, 256, maxOffset} {
				e := entry{time: time, file: file, offset: offset}
				key := appendKey(nil, "test,a)/\x00http", &e)
				var back entry
				url, err := back.cutKey(key)
				require.NoError(t, err)
				require.Equal(t, "test,a)/\x00http", string(url))
				require.Equal(t, e, back)
				keys = append(keys, string(key))
			}
		}
	}
	require.True(t, slices.IsSorted(keys))
}

// Accepted keys and values are encoded to the same bytes.
func FuzzEntry(f *testing.F) {
	e := someEntry()
	f.Add(appendKey(nil, "test,a)/\x00http", &e), e.appendValue(nil))
	e.url, e.truncated, e.coded, e.kind, e.digest = "http://a.test/", true, true, Failed, ""
	f.Add(appendKey(nil, "", &e), e.appendValue(nil))
	e.kind, e.content, e.prior, e.hasPrior = Unchanged, address{1, 2, 3, 200}, e.time-1, true
	f.Add(appendKey(nil, "", &e), e.appendValue(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		var e entry
		if url, err := e.cutKey(key); err == nil {
			require.Equal(t, key, appendKey(nil, string(url), &e))
		}
		if err := e.cutValue(value); err == nil {
			require.Equal(t, value, e.appendValue(nil))
			require.LessOrEqual(t, e.kind, Changed)
			_ = e.digest.String()
		} else {
			require.ErrorIs(t, err, errEntry)
		}
	})
}

func TestDigests(t *testing.T) {
	for _, labelled := range []string{
		"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
		"sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
		"md5:2QOYZWMPACZAJ2MABGMOZ6CCPY======",
	} {
		require.Equal(t, labelled, parseDigest(labelled).String())
	}
	hex := "SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709"
	require.Equal(t, "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", parseDigest(hex).String())
	require.Empty(t, parseDigest("crc:1"))
	require.Empty(t, digest("").String())
}

func TestKinds(t *testing.T) {
	for status, want := range map[int]Kind{0: Failed, 99: Failed, 100: Changed, 200: Changed,
		301: Changed, 304: Unchanged, 399: Changed, 400: Failed, 404: Failed, 599: Failed} {
		require.Equal(t, want, kindOf(status, false), status)
		require.Equal(t, Unchanged, kindOf(status, true))
	}
	require.Equal(t, "failed unchanged changed",
		strings.Join([]string{Failed.String(), Unchanged.String(), Changed.String()}, " "))
}

func TestMediaTypes(t *testing.T) {
	for contentType, want := range map[string]string{
		"text/HTML; charset=utf-8": "text/html", " a/b ": "a/b", "": "", ";x": "",
		"text/html\x00": "", `a"b`: "", strings.Repeat("x", 128): "",
	} {
		require.Equal(t, want, mediaType(contentType))
	}
}
