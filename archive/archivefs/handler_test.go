package archivefs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every response is in a sandbox, also one that is an error or a list.
func TestHandlerContainsPages(t *testing.T) {
	a := siteOf(t, "http://a.test/", "http://b.test/x.js")
	server := httptest.NewServer(Handler(New(a, "", time.Time{})))
	defer server.Close()
	for path, status := range map[string]int{"/": 200, "/a.test/": 200, "/b.test/x.js": 200, "/c.test/": 404} {
		resp, err := http.Get(server.URL + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, status, resp.StatusCode, path)
		require.Contains(t, resp.Header.Get("Content-Security-Policy"), "; sandbox", path)
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"), path)
		require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"), path)
	}
}

// A browser shows a page and runs nothing of it.
func TestHandlerInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil || testing.Short() {
		t.Skip("Chromium is not installed, or too slow for a short test")
	}
	a := siteOf(t)
	visit{"http://a.test/", someTime, 200, "<!DOCTYPE html><title>still</title><p>text" +
		"<script>document.title = 'ran'</script>"}.into(t, a)
	server := httptest.NewServer(Handler(New(a, "", time.Time{})))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dom, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+t.TempDir(),
		"--dump-dom", server.URL+"/a.test/").Output()
	require.NoError(t, err)
	require.Contains(t, string(dom), "<title>still</title>")
}
