package durable_test

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A brokenFile has some bytes that cannot be read.
type brokenFile struct {
	vfs.File
	from, to int64
	err      error
}

func (f brokenFile) ReadAt(b []byte, at int64) (int, error) {
	if at < f.to && at+int64(len(b)) > f.from {
		return 0, f.err
	}
	return f.File.ReadAt(b, at)
}

func TestSalvage(t *testing.T) {
	f, err := vfs.NewMem().Create("f")
	require.NoError(t, err)
	data := bytes.Repeat([]byte("0123456789"), 5000)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	lost := bytes.Clone(data)
	clear(lost[8<<10 : 16<<10])
	salvage := durable.SalvageFile(brokenFile{f, 12<<10 - 1, 12<<10 + 1, syscall.EIO})
	for _, at := range []int64{0, 1, 4096, 9000, 12 << 10, 17000} {
		for _, size := range []int{1, 100, 4096, 20000, 60000} {
			b := make([]byte, size)
			n, err := salvage.ReadAt(b, at)
			want := lost[at:]
			if n == size {
				require.NoError(t, err)
				want = want[:size]
			} else {
				require.ErrorIs(t, err, io.EOF)
			}
			for i := range n { // a short read may get more
				if b[i] != want[i] {
					require.Equal(t, data[at:][i], b[i], "%d bytes at %d: byte %d", size, at, i)
				}
			}
			require.Len(t, want, n)
		}
	}
	other := errors.New("another error")
	_, err = durable.SalvageFile(brokenFile{f, 1, 2, other}).ReadAt(make([]byte, 9), 0)
	require.ErrorIs(t, err, other)
}
