package exact

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

func TestWideSetsAreOfAnotherVersion(t *testing.T) {
	b := (&manifest{}).encode()
	b = bytes.Replace(b[:bytes.LastIndex(b, []byte("sum "))], []byte("width 8"), []byte("width 16"), 1)
	b = fmt.Appendf(b, "sum %08x\n", durable.Sum(b))
	_, err := decodeManifest(b)
	require.ErrorIs(t, err, durable.ErrVersion)
}
