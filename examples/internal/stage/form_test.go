package stage

import (
	"bytes"
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

// TestOtherOrders reads the files of other versions, an earlier one among them.
func TestOtherOrders(t *testing.T) {
	for _, other := range []string{"spinneret order 1\n\x00????", formLine(orderKind, 3) + "?"} {
		_, err := ReadOrder(bytes.NewReader([]byte(other)))
		require.ErrorIs(t, err, durable.ErrVersion, other)
	}
}
