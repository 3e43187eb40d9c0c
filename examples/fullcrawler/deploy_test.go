package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// TestDeployFilesUseValidFlags compares the flags in deploy with the help.
func TestDeployFilesUseValidFlags(t *testing.T) {
	var help bytes.Buffer
	cockpit.Help(&help, "all")
	for name, command := range map[string]string{
		"deploy/fullcrawler.service": `(?m)^ExecStart=.*$`,
		"deploy/Containerfile":       `(?m)^(ENTRYPOINT|HEALTHCHECK).*$`,
	} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		flags := regexp.MustCompile(`[ "]-([a-z-]+)`).FindAllSubmatch(regexp.MustCompile(command).Find(text), -1)
		require.NotEmpty(t, flags, name)
		for _, flag := range flags {
			require.Regexp(t, `(?m)^  -`+string(flag[1])+`\b`, help.String(), name)
		}
	}
}

// TestDeployFilesUseKnownMetrics: each name in the alert rules and on the dashboard is one that a crawl
// serves, and each fate exists.
func TestDeployFilesUseKnownMetrics(t *testing.T) {
	web := serve(t, webtest.Options{Hosts: 1, Pages: 2})
	c := crawlWeb(t, web, testConfig(t, web))
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Host = "127.0.0.1"
	c.StatusHandler("127.0.0.1:80").ServeHTTP(answer, request)
	for _, name := range []string{"deploy/alerts.yml", "deploy/alerts_test.yml", "deploy/dashboard.json"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		used := regexp.MustCompile(`spinneret_[a-z_]+`).FindAll(text, -1)
		require.NotEmpty(t, used)
		for _, metric := range used {
			require.Contains(t, answer.Body.String(), "# TYPE "+string(metric)+" ", name)
		}
		if name != "deploy/alerts.yml" {
			continue // some codes are the words
		}
		for _, list := range regexp.MustCompile(`fate=~?"([a-z_|]+)"`).FindAllSubmatch(text, -1) {
			for fate := range strings.SplitSeq(string(list[1]), "|") {
				require.NotEqual(t, fate, stage.Fate(fate).String(), "%s: no fate has this code", name)
			}
		}
	}
}

// TestPrometheusAcceptsTheDeployFiles runs promtool, if there is one, on the rules, their tests, the
// configuration, and the expressions of the dashboard.
func TestPrometheusAcceptsTheDeployFiles(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("deploy/dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &dashboard))
	rules := "groups: [{name: dashboard, rules: ["
	for i, panel := range dashboard.Panels {
		require.NotEmpty(t, panel.Targets, panel.Title)
		for j, target := range panel.Targets {
			expr := strings.ReplaceAll(target.Expr, "$instance", "a")
			rules += fmt.Sprintf("{record: 'panel_%d_%d', expr: '%s'},\n", i, j, expr)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: it is in Debian's package prometheus")
	}
	for _, args := range [][]string{
		{"check", "rules", "deploy/alerts.yml"}, {"test", "rules", "deploy/alerts_test.yml"},
		{"check", "config", "deploy/prometheus.yml"}, {"check", "rules", write(t, rules+"]}]")},
	} {
		output, err := exec.Command(promtool, args...).CombinedOutput()
		require.NoError(t, err, "%q: %s", args, output)
	}
}

// TestHealth: a crawl that answers is healthy, and one that does not run is not.
func TestHealth(t *testing.T) {
	web := serve(t, webtest.Options{Hosts: 1, Pages: 2})
	cfg := testConfig(t, web)
	health := func(want int, text string) {
		t.Helper()
		status, output := run(t, "health", "-out", cfg.Out)
		require.Equal(t, want, status, output)
		require.Contains(t, output, text)
	}
	health(1, "no crawl runs in "+cfg.Out)
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		health(0, "its live page (-listen) would tell more")
		at, err := c.Listen(listen)
		require.NoError(t, err)
		at = strings.Replace(at, "[::]", "127.0.0.1", 1)
		require.NoError(t, c.dir.Announce(at))
		health(0, "crawl since")
		health(0, "; its live page")
		require.NoError(t, c.dir.Announce(at+"nowhere/"))
		health(1, "404")
		require.NoError(t, c.close())
		health(1, "no crawl runs")
	}
}
