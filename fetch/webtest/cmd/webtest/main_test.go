package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// freePort returns a port that is free on the first address. It skips the test on systems that only
// have 127.0.0.1, because the command needs real addresses.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp4", "127.16.0.1:0")
	if err != nil {
		t.Skip("127.16.0.1 is not available:", err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestServesUntilInterrupted(t *testing.T) {
	dir := t.TempDir()
	log, hosts := filepath.Join(dir, "log"), filepath.Join(dir, "hosts")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	done := make(chan error)
	go func() {
		done <- run(ctx, []string{"-hosts", "3", "-addrs", "1", "-pages", "2", "-seed", "9",
			"-port", freePort(t), "-log", log, "-hosts-file", hosts}, nil, in)
		in.Close()
	}()
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "webtest: serving 3 hosts", lines.Text())
	require.True(t, lines.Scan(), "the web is served once its address has been printed")
	_, addr, ok := strings.Cut(lines.Text(), " is at ")
	require.True(t, ok)

	proxy := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr})}
	resp, err := (&http.Client{Transport: proxy}).Get("http://h00002.vweb.test/")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	proxy.CloseIdleConnections()

	interrupt()
	require.NoError(t, <-done)
	text, err := os.ReadFile(hosts)
	require.NoError(t, err)
	require.Equal(t, "127.16.0.1\th00000.vweb.test\n127.16.0.1\th00001.vweb.test\n"+
		"127.16.0.1\th00002.vweb.test\n", string(text))
	text, err = os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(text),
		"\th00002.vweb.test\t127.16.0.1\tGET\thttp://h00002.vweb.test/\t200\t")
}

func TestTraits(t *testing.T) {
	require.Nil(t, traits(false, 0, 0), "no flag, no traits")
	require.Equal(t, webtest.Traits{Change: webtest.Change{Mean: time.Hour}}, traits(false, time.Hour, 0)(0))
	require.Equal(t, webtest.Mixed(3), traits(true, 0, 0)(3))
	slow := traits(false, 0, time.Second)(0)
	require.Zero(t, slow.Change)
	require.Equal(t, time.Second, slow.Latency.Median)
	require.Equal(t, 0.05, slow.Latency.SlowShare)
}

func TestServesADirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "docs.test"), 0o755))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out strings.Builder
	require.NoError(t, run(ctx, []string{"-static", dir, "-port", freePort(t)}, nil, &out))
	require.Contains(t, out.String(), "http://docs.test/ is at 127.16.0.1:")
}

func TestRefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{
		{"-nosuchflag"}, {"-hosts", "-1"}, {"-static", "testdata/absent"},
		{"-log", filepath.Join(t.TempDir(), "no", "such")},
		{"-port", "0"}, {"check"}, {"-hosts", "3", "check", "-pages", "2"}, {"-check", "1s", "true"},
		{"--", "true"}, {"-check", "-1s"}, {"-check", "0", "--", "true"}, {"-format", "json"},
		{"-check", "1s", "-format", "xml", "--", "true"}, {"-check", "1s", "--", "cat", "{hosts}"},
		{"-check", "1s", "--", filepath.Join(t.TempDir(), "no", "such")},
		{"-port", freePort(t), "-hosts-file", filepath.Join(t.TempDir(), "no", "such")},
	} {
		require.Error(t, run(t.Context(), args, io.Discard, io.Discard), "%q", args)
	}
}
