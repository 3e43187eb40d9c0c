package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

func TestReadFull(t *testing.T) {
	b := []byte("hello")
	err := ReadFull(bytes.NewReader(b), "a", make([]byte, 3), 4)
	require.ErrorIs(t, err, durable.ErrCorrupt)

	f, err := os.Create(filepath.Join(t.TempDir(), "a"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.ErrorIs(t, ReadFull(f, "a", b, 0), ErrClosed)
	require.ErrorIs(t, ReadFull(broken{}, "a", b, 0), errBroken)
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errBroken }
