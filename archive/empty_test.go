package archive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A 304 confirms the empty page that it names, also if another version follows in the same second.
func TestA304OfAnEmptyPage(t *testing.T) {
	disk := vfs.NewMem()
	a, err := OpenOn(disk, Options{})
	require.NoError(t, err)
	at := someTime.Truncate(time.Second)
	for _, v := range []visit{{"http://a.test/", at, 200, ""}, {"http://a.test/", at.Add(time.Second / 2), 200, "not empty"},
		{"http://a.test/", at.Add(time.Second / 4), 304, ""}} {
		_, err = a.Append(v.capture())
		require.NoError(t, err)
	}
	for range 2 {
		v, err := a.At("http://a.test/", at.Add(time.Second/4))
		require.NoError(t, err)
		body, err := a.Body(v)
		require.NoError(t, err)
		require.Empty(t, body)
		require.NoError(t, a.Close())
		_, err = RepairOn(disk, Options{}) // the index is what the files say
		require.NoError(t, err)
		a, err = OpenOn(disk, Options{})
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
}
