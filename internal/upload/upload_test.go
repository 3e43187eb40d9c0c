package upload_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spinneret-go/spinneret/internal/upload"
	"github.com/stretchr/testify/require"
)

func TestFailed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		body   io.Reader
		length int64
		want   bool
	}{
		{"whole", strings.NewReader("half"), 4, false},
		{"of unknown length", strings.NewReader("half"), -1, false},
		{"of a length that nobody has set", strings.NewReader("half"), 0, false},
		{"too short", strings.NewReader("half"), 5, true},
		{"too long", strings.NewReader("half"), 3, true},
		{"an error", iotest.ErrReader(io.ErrUnexpectedEOF), -1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			open := func() (io.ReadCloser, error) { return io.NopCloser(tt.body), nil }
			first, _ := open()
			req := &http.Request{Body: first, ContentLength: tt.length, GetBody: open}
			var w upload.Watch
			w.Attach(req)
			again, err := req.GetBody()
			require.NoError(t, err)
			require.False(t, w.Failed())
			_, _ = io.ReadAll(again)
			require.Equal(t, tt.want, w.Failed())

			var closed upload.Watch
			req = &http.Request{Body: first, ContentLength: tt.length}
			closed.Attach(req)
			require.NoError(t, req.Body.Close())
			_, _ = io.ReadAll(req.Body)
			require.False(t, closed.Failed(), "a transport that reads on after Close")
		})
	}
}

// What cannot be read again has failed, too.
func TestGetBodyFails(t *testing.T) {
	gone := errors.New("gone")
	var w upload.Watch
	req := &http.Request{Body: io.NopCloser(strings.NewReader("x")), GetBody: func() (io.ReadCloser, error) { return nil, gone }}
	w.Attach(req)
	require.False(t, w.Failed())
	_, err := req.GetBody()
	require.ErrorIs(t, err, gone)
	require.True(t, w.Failed())
}
