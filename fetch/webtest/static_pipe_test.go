//go:build linux || darwin

package webtest

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe that nobody writes to is no file, and holds up neither its client nor Close.
func TestAPipeIsNoFile(t *testing.T) {
	dir := staticDir(t)
	require.NoError(t, syscall.Mkfifo(dir+"/docs.test/pipe.html", 0o644))
	w := start(t, Options{Static: dir})
	require.Equal(t, 404, get(t, client(t, w), "http://docs.test/pipe.html").status)
	require.NoError(t, w.Close())
}
