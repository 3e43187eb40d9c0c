package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest/certificate"
)

// crawling makes this program a crawler, which requests its arguments one after the other.
const crawling = "WEBTEST_TEST_CRAWLER"

func TestMain(m *testing.M) {
	if os.Getenv(crawling) == "" {
		os.Exit(m.Run())
	}
	for _, url := range os.Args[1:] {
		resp, err := http.Get(url)
		if err != nil {
			os.Exit(3)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// judged judges a crawler that requests the URLs.
func judged(t *testing.T, flags []string, urls ...string) (report, log string, err error) {
	t.Setenv(crawling, "1")
	self, err := os.Executable()
	require.NoError(t, err)
	var out, text bytes.Buffer
	args := append(append(flags, "--", self), urls...)
	err = run(t.Context(), args, &out, &text)
	return out.String(), text.String(), err
}

func TestCheckProvesWhatItSays(t *testing.T) {
	report, _, err := judged(t, []string{"-check", "1h", "-hosts", "1"}, "{seed}robots.txt", "{seed}")
	require.ErrorIs(t, err, errImpolite)
	require.Contains(t, report, "host delay                FAILED    1 of 1 requests early for their host")
	require.Equal(t, 1, strings.Count(report, "GET http://h00000.vweb.test/  200"), "the line that proves it")

	report, _, err = judged(t, []string{"-check", "1ns", "-hosts", "1"}, "{seed}robots.txt", "{seed}robots.txt")
	require.NoError(t, err)
	require.Contains(t, report, "completeness              partial")

	report, _, err = judged(t, []string{"-check", "1h", "-complete", "-hosts", "1", "-format", "json"}, "{seed}robots.txt")
	require.ErrorIs(t, err, errImpolite, "it is incomplete")
	var verdicts []certificate.Verdict
	require.NoError(t, json.Unmarshal([]byte(report), &verdicts))
	require.Len(t, verdicts, 9)

	report, _, err = judged(t, []string{"-check", "1h", "-format", "junit"}, "{seed}private/x")
	require.ErrorIs(t, err, errImpolite)
	require.Contains(t, report, `<testsuite name="webtest" tests="9" failures="1"`)
}

func TestCheckHasNothingToJudge(t *testing.T) {
	_, _, err := judged(t, []string{"-check", "1s"})
	require.ErrorContains(t, err, "no request arrived")
	_, log, err := judged(t, []string{"-check", "1s"}, "http://192.168.255.254/")
	require.ErrorIs(t, err, errImpolite, "the proxy has logged it: %s", log)
	_, _, err = judged(t, []string{"-check", "1s"}, "{seed}")
	require.ErrorContains(t, err, "nothing to judge", "a single request tests nothing")
	_, _, err = judged(t, []string{"-check", "1ns"}, "{seed}robots.txt", "{seed}", "nonsense:")
	require.ErrorContains(t, err, "ended with exit status 3")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a.test"), 0o755))
	_, _, err = judged(t, []string{"-check", "1ns", "-static", dir}, "{seed}robots.txt", "{seed}", "nonsense:")
	require.ErrorContains(t, err, "ended with exit status 3", "nobody knows whether it had all pages")
}

// TestCheckWithoutTheProxy reaches the web at its addresses, with names from the file and the
// resolver.
func TestCheckWithoutTheProxy(t *testing.T) {
	port := freePort(t)
	report, log, err := judged(t, []string{"-check", "1s", "-port", port, "-hosts", "1"},
		"http://127.16.0.1:"+port+"/robots.txt?{resolver}{hosts}")
	require.ErrorContains(t, err, "exit status 3", "it is redirected to a name that it cannot resolve")
	require.Contains(t, report, "private addresses         untested")
	_, resolver, ok := strings.Cut(log, "resolver ")
	require.True(t, ok)
	resolver, _, _ = strings.Cut(resolver, "\n")
	_, _, err = net.SplitHostPort(resolver)
	require.NoError(t, err)
}
