package bolt_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/bolt"
)

// walk returns the keys of a bucket.
func walk(data []byte, bucket string) (keys []string, err error) {
	f, err := bolt.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	err = f.Walk(bucket, func(key, _ []byte) error {
		keys = append(keys, string(key))
		return nil
	})
	return keys, err
}

func sample(t testing.TB) []byte {
	data, err := os.ReadFile("../../testdata/version-1/index.bolt")
	require.NoError(t, err)
	return data
}

func TestWalk(t *testing.T) {
	data := sample(t)
	for bucket, want := range map[string]int{"meta": 1, "files": 1, "entries": 3, "none": 0} {
		keys, err := walk(data, bucket)
		require.NoError(t, err)
		require.Len(t, keys, want, bucket)
		require.IsIncreasing(t, append([]string{""}, keys...))
	}
}

// If one of the two meta pages is damaged, the other one is used.
func TestTheOtherMetaPage(t *testing.T) {
	for page := range 2 {
		data := sample(t)
		data[page*4096+20] ^= 1
		_, err := walk(data, "entries")
		require.NoError(t, err)
	}
	data := sample(t)
	data[20], data[4096+20] = 0, 0
	_, err := walk(data, "entries")
	require.ErrorIs(t, err, bolt.ErrCorrupt)
}

// Walk ends for any file, without an error or with ErrCorrupt.
func FuzzWalk(f *testing.F) {
	data := sample(f)
	f.Add(data[:4096], data[4096:8192], data[8192:12288])
	f.Add(data[4096:8192], data[:4096], data[12288:16384])
	f.Fuzz(func(t *testing.T, one, two, three []byte) {
		// Fuzzed pages replace valid ones.
		broken := bytes.Clone(data)
		copy(broken[8192:], three)
		copy(broken[12288:], two)
		copy(broken[16384:], one)
		pairs := 0
		for _, bucket := range []string{"meta", "files", "entries"} {
			keys, err := walk(broken, bucket)
			if err != nil {
				require.ErrorIs(t, err, bolt.ErrCorrupt)
			}
			pairs += len(keys)
		}
		require.LessOrEqual(t, pairs, len(broken)) // each has an element of 16 bytes
	})
}
