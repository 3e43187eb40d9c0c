package archive

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wget fetches a page into a WARC file in dir.
func wget(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "wget", append([]string{"-q", "-O", "out"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Files of wget are imported, with a page that changed and one that did not. For that one, wget
// writes a revisit record without body and without WARC-Refers-To-Date.
func TestImportOfWgetFiles(t *testing.T) {
	if _, err := exec.LookPath("wget"); err != nil {
		t.Skip("no wget")
	}
	if testing.Short() {
		t.Skip("starts wget")
	}
	var visits atomic.Int64
	same := strings.Repeat("the same text, ", 300)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/changing" {
			_, _ = io.WriteString(w, strings.Repeat("text ", int(visits.Add(1))))
			return
		}
		_, _ = io.WriteString(w, same)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	urls := []string{server.URL + "/same", server.URL + "/changing"}
	wget(t, dir, append([]string{"--warc-file=first", "--warc-cdx"}, urls...)...)
	wget(t, dir, append([]string{"--warc-file=second", "--warc-dedup=first.cdx"}, urls...)...)
	names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	require.NoError(t, err)
	require.Len(t, names, 2)

	a := openDir(t, t.TempDir(), Options{})
	found, err := a.Import(names...)
	require.NoError(t, err)
	require.Empty(t, found.Damage)
	require.GreaterOrEqual(t, found.Versions, 4, "wget also stores its log as resources")
	changing, err := a.Versions(urls[1])
	require.NoError(t, err)
	require.Len(t, changing, 2)
	require.Equal(t, "text ", body(t, a, changing[0]))
	require.Equal(t, "text text ", body(t, a, changing[1]))
	repeated, err := a.Versions(urls[0])
	require.NoError(t, err)
	require.Len(t, repeated, 2)
	for _, v := range repeated {
		require.Equal(t, names[0], v.Content.File)
		require.Equal(t, same, body(t, a, v))
	}
	require.Equal(t, names[1], repeated[1].Location.File)
	require.Equal(t, Unchanged, repeated[1].Kind)

	require.Equal(t, same, validAt(t, a, time.Time{})[urls[0]])
	_, err = a.Verify(t.Context(), func(f Fault) { t.Error(f) })
	require.NoError(t, errors.Join(err, a.Close()))
}
