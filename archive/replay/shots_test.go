package replay

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shotsDir is an environment variable with a directory for screenshots of the viewer's pages.
const shotsDir = "SPINNERET_VIEWER_SHOTS"

// longHistory returns many visits of one page.
func longHistory() (visits []visit) {
	for i := range 300 {
		v := htmlAt(days(10+i).Add(time.Duration(i*i%86400)*time.Second), millHome+"prices",
			fmt.Sprintf("<h1>Prices</h1><p>Rye: %d</p>", i/9))
		if i%17 == 3 {
			v.status = 500
		}
		visits = append(visits, v)
	}
	return visits
}

// TestShots makes screenshots of all kinds of pages, wide and narrow, light and dark.
func TestShots(t *testing.T) {
	dir := os.Getenv(shotsDir)
	if dir == "" {
		t.Skip("set " + shotsDir + " to a directory for screenshots")
	}
	server := httptest.NewServer(New(archiveOf(t, append(site(), longHistory()...)...), Options{}))
	defer server.Close()
	b := drive(t, "about:blank")
	b.call("Page.enable", nil)
	for name, address := range map[string]string{
		"start":      "/",
		"browse":     browseAddress(millHome, time.Time{}),
		"timeline":   versionsAddress(millHome),
		"timeline2":  versionsAddress(millHome + "prices"),
		"view":       at(viewPath, days(2), millHome),
		"view-asof":  at(viewPath, days(1).Add(time.Hour), millHome),
		"view-error": at(viewPath, days(3), millHome),
		"view-pdf":   at(viewPath, time.Time{}, millHome+"report.pdf"),
		"diff":       diffAddress(millHome, days(0), days(2)),
		"diff-text":  diffAddress(millHome, days(2), days(4)) + "&mode=text",
		"missing":    at(viewPath, days(0), millHome+"logo.png"),
	} {
		for _, width := range []int{1280, 390} {
			for _, scheme := range []string{"light", "dark"} {
				b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width,
					"height": 800, "deviceScaleFactor": 1, "mobile": false})
				b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{
					map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
				b.call("Page.navigate", map[string]any{"url": server.URL + address})
				// Wait until the page is painted.
				b.evaluate(`new Promise((resolve) => setTimeout(resolve, 500))`)
				shot, err := base64.StdEncoding.DecodeString(b.call("Page.captureScreenshot",
					nil)["data"].(string))
				require.NoError(t, err)
				file := strings.Join([]string{name, fmt.Sprint(width), scheme}, "-") + ".png"
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), shot, 0o600))
			}
		}
	}
}
