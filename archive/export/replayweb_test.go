package export_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/export"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// embedding is a page that embeds ReplayWeb.page. Its script collects the text of all frames and
// posts it to the server.
const embedding = `<!DOCTYPE html><script src="/replay/ui.js"></script>
<replay-web-page style="height:500px;display:block" source="/crawl.wacz" replayBase="/replay/"
	embed="replayonly" url="%s"></replay-web-page>
<script>
function text(node) {
	let all = node.body ? node.body.innerText : "";
	for (const e of node.querySelectorAll("*")) {
		if (e.shadowRoot) all += text(e.shadowRoot);
		if (e.tagName === "IFRAME") try { all += text(e.contentDocument) } catch {}
	}
	return all;
}
setInterval(() => fetch("/shown", {method: "POST", body: text(document)}), 300);
</script>`

// ReplayWeb.page shows the pages of a package, whatever the compression of the archive.
func TestReplayWebPage(t *testing.T) {
	dir := os.Getenv("SPINNERET_REPLAYWEB")
	if _, err := os.Stat(filepath.Join(dir, "ui.js")); dir == "" || err != nil || testing.Short() {
		t.Skip("set SPINNERET_REPLAYWEB to the directory package after: npm pack replaywebpage, " +
			"and unpacking it")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("Chromium is not installed (Debian: apt-get install chromium)")
	}
	for _, compression := range []warc.Compression{warc.Gzip, warc.Zstd} {
		a, err := archive.Open(t.TempDir(), archive.Options{Compression: compression})
		require.NoError(t, err)
		const url = "https://www.example.org/a/page/?x=1"
		_, err = a.Append(archive.Capture{URL: url, Time: began,
			Body: []byte("<p>kept by spinneret</p>"),
			Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")})
		require.NoError(t, err)
		var packed bytes.Buffer
		require.NoError(t, export.WACZ(&packed, a, export.Options{}))
		require.NoError(t, a.Close())

		shown := make(chan string, 100)
		mux := http.NewServeMux()
		mux.Handle("/replay/", http.StripPrefix("/replay", http.FileServer(http.Dir(dir))))
		mux.HandleFunc("/crawl.wacz", func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "crawl.wacz", began, bytes.NewReader(packed.Bytes()))
		})
		mux.HandleFunc("/shown", func(_ http.ResponseWriter, r *http.Request) {
			var body bytes.Buffer
			_, _ = body.ReadFrom(r.Body)
			select {
			case shown <- body.String():
			default:
			}
		})
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, embedding, url)
		})
		server := httptest.NewServer(mux)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		profile, err := os.MkdirTemp("", "replayweb")
		require.NoError(t, err)
		defer os.RemoveAll(profile) // errors are ignored: some processes may still write
		cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu",
			"--remote-debugging-port=0", "--user-data-dir="+profile, server.URL)
		require.NoError(t, cmd.Start())
		last := ""
		for !strings.Contains(last, "kept by spinneret") && ctx.Err() == nil {
			select {
			case last = <-shown:
			case <-ctx.Done():
			}
		}
		cancel()
		_ = cmd.Wait()
		server.Close()
		require.Contains(t, last, "kept by spinneret", compression)
	}
}
