package stage

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

func TestFormsTellVersionsFromDamage(t *testing.T) {
	line := formLine("kind", 12)
	require.NoError(t, checkForm(line, "kind", 12))
	require.ErrorIs(t, checkForm(line, "kind", 2), durable.ErrVersion)
	require.ErrorIs(t, checkForm(line, "other", 12), errForm)
	for i := range 8 * len(line) {
		bad := []byte(line)
		bad[i/8] ^= 1 << (i % 8)
		require.ErrorIs(t, checkForm(string(bad), "kind", 12), errForm)
	}
	for n := range line {
		require.ErrorIs(t, checkForm(line[:n], "kind", 12), errForm)
	}
}

// TestOtherVersions reads the files of other versions, earlier ones among them.
func TestOtherVersions(t *testing.T) {
	for _, other := range []string{"end\n", formLine(entriesKind, 1) + "?"} {
		_, err := readEntries([]byte(other))
		require.ErrorIs(t, err, durable.ErrVersion, other)
	}
	good, err := AppendEntries(nil, slices.Values([]entry{{"a", 1}}))
	require.NoError(t, err)
	_, rest, _ := bytes.Cut(good, []byte("\n"))
	_, err = readEntries(rest)
	require.ErrorIs(t, err, durable.ErrVersion, "version 1 had no first line")

	record := AppendRecord(nil, Item{}, State{})
	record[0] ^= 0x60
	_, _, err = ReadRecord("https://a.test/", record)
	require.ErrorIs(t, err, durable.ErrVersion)
	require.NotErrorIs(t, err, ErrRecord)
}
