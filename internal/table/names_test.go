package table

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestFilesOfTheCaller: a file of the caller that is named after the date stays, and that of the next day is not
// taken.
func TestFilesOfTheCaller(t *testing.T) {
	fs := vfs.NewMem()
	fs.Put("t-20261128", []byte("the caller's"))
	fs.Put("t-00000007", []byte("left behind"))
	o := Options{Name: "t-", Key: 1, Value: 1, Block: 64, FilterBits: 8, FullBits: 8, Segment: 10, Steps: 10}
	table, err := Open(fs, o, State{})
	require.NoError(t, err)
	defer table.Close()
	require.NoError(t, table.Sweep())
	names, err := fs.List()
	require.NoError(t, err)
	require.Equal(t, []string{"t-20261128"}, names)
	require.EqualValues(t, 7, table.State().Last)
}
