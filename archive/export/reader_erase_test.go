package export

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// An erasure that is not complete is one for those, too, that only read the archive.
func TestReaderBesideAnErasure(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	erasing := false
	a, err := archive.Open(dir, archive.Options{Finished: func(string) {
		if erasing {
			stop() // before a file is written anew
		}
	}})
	require.NoError(t, err)
	for _, url := range []string{"http://a.test/", "http://b.test/"} {
		_, err = a.Append(archive.Capture{URL: url, Time: time.Now(), Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: []byte(url)})
		require.NoError(t, err)
	}
	require.NoError(t, a.Sync())
	r, err := archive.Open(dir, archive.Options{ReadOnly: true})
	require.NoError(t, err)
	require.False(t, r.Erasing())
	erasing = true
	_, err = a.Erase(ctx, archive.Selection{Host: "a.test"}, "asked for")
	require.Error(t, err)
	require.True(t, a.Erasing())
	require.ErrorIs(t, WACZ(new(bytes.Buffer), a, Options{}), errErased)
	require.True(t, r.Erasing())
	require.ErrorIs(t, WACZ(new(bytes.Buffer), r, Options{}), errErased)
	_, err = a.Erase(t.Context(), archive.Selection{Host: "a.test"}, "asked for")
	require.NoError(t, err)
	require.NoError(t, WACZ(new(bytes.Buffer), r, Options{}))
	require.NoError(t, a.Close())
	require.NoError(t, r.Close())
}
