package stage

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

type entry struct {
	Name  string
	Count int `json:",omitzero"`
}

func readEntries(data []byte) (entries []entry, err error) {
	for e, err := range Entries[entry](data) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func TestEntriesAreReturnedUnchanged(t *testing.T) {
	for _, want := range [][]entry{nil, {{"a", 1}}, {{"a", 0}, {"b\n", 7}, {"a", 0}}} {
		data, err := AppendEntries(nil, slices.Values(want))
		require.NoError(t, err)
		got, err := readEntries(data)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := AppendEntries(nil, slices.Values([]any{func() {}}))
	require.Error(t, err)
}

// TestDamagedEntries reports where the damage begins, and nothing after it is returned.
func TestDamagedEntries(t *testing.T) {
	want := []entry{{"a", 1}, {"b", 2}, {"c", 3}}
	good, err := AppendEntries(nil, slices.Values(want))
	require.NoError(t, err)
	for n := range good {
		got, err := readEntries(good[:n])
		require.ErrorContains(t, err, "byte ", "the first %d bytes", n)
		require.Equal(t, want[:len(got)], append([]entry{}, got...))
	}
	for i := range 8 * len(good) {
		data := slices.Clone(good)
		data[i/8] ^= 1 << (i % 8)
		got, err := readEntries(data)
		require.ErrorContains(t, err, "byte ", "bit %d", i)
		require.Equal(t, want[:len(got)], append([]entry{}, got...))
	}
	for range Entries[entry](good) {
		break // an iteration may end early
	}
}

// TestOtherVersions reads what other versions have written.
func TestOtherVersions(t *testing.T) {
	var later bytes.Buffer
	_, err := durable.NewStreamWriter(&later, "SPNENTR4").Close()
	require.NoError(t, err)
	_, err = readEntries(later.Bytes())
	require.ErrorIs(t, err, durable.ErrVersion)
	record := AppendRecord(nil, Item{}, State{})
	record[0] ^= recordForm
	_, _, err = ReadRecord("https://a.test/", record)
	require.ErrorIs(t, err, durable.ErrVersion)
	require.NotErrorIs(t, err, ErrRecord)
}

// FuzzEntries checks that entries that were read are written unchanged.
func FuzzEntries(f *testing.F) {
	good, err := AppendEntries(nil, slices.Values([]entry{{"a", 1}, {"b", 2}}))
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(entriesMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := readEntries(data)
		if err != nil {
			return
		}
		again, err := AppendEntries(nil, slices.Values(once))
		require.NoError(t, err)
		twice, err := readEntries(again)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
