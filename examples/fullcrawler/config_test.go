package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
)

// write creates a temporary file and returns its name.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestFlagsSetTheAllowedAddresses(t *testing.T) {
	hosts := write(t, "127.0.0.2 a.test\n10.0.0.1 b.test")
	for _, tt := range []struct {
		name   string
		args   []string
		bounds fetch.Reach
		delay  time.Duration
		local  bool
	}{
		{"no seeds", nil, fetch.Loopback, cockpit.DemoDelay, true},
		{"a public site", []string{"-contact", "https://me.example", "www.example.org"},
			fetch.Public, 5 * time.Second, false},
		{"loopback needs no contact", []string{"http://127.0.0.1:8080/", "localhost"},
			fetch.Loopback, 5 * time.Second, true},
		{"names on loopback", []string{"-hosts", hosts, "http://a.test/"}, fetch.Loopback, 5 * time.Second, true},
		{"private addresses on demand", []string{"-private", "-contact", "me@example.org", "-hosts", hosts, "b.test"},
			fetch.Anywhere, 5 * time.Second, true},
		{"explicit delay", []string{"-delay", "1m", "http://127.0.0.1/"}, fetch.Loopback, time.Minute, true},
	} {
		cfg, err := cockpit.ParseFlags(tt.args, io.Discard)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.bounds, cfg.Bounds, tt.name)
		require.Equal(t, tt.delay, cfg.Delay, tt.name)
		require.Equal(t, tt.local, cfg.Filter.Format.AnySuffix, tt.name)
		require.Equal(t, len(tt.args) == 0, cfg.Demo, tt.name)
	}
}

func TestInvalidFlags(t *testing.T) {
	empty := write(t, "# nothing\n")
	crawl := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(crawl, cockpit.BeganName), nil, 0o600))
	for want, args := range map[string][]string{
		"-contact is missing":            {"www.example.org"},
		`-contact "me": want a URL`:      {"-contact", "me", "www.example.org"},
		"(did you mean -pages?)":         {"-page", "5", "www.example.org"},
		"none of the seeds is a URL":     {"http://"},
		"want page, prefix":              {"-scope", "galaxy"},
		"at least 1":                     {"-concurrency", "0"},
		"no such file":                   {"-seeds", "/no/such/file"},
		"is neither a host":              {"-deny", write(t, "a b")},
		"hosts file":                     {"-hosts", write(t, "a.test 127.0.0.1")},
		"file\": open /no":               {"-group", "/no/such/file"},
		"not a range such as":            {"-shared", write(t, "192.0.2.1-192.0.2.9")},
		"-overrides: ":                   {"-overrides", write(t, "a.test speed=3")},
		"missing closing":                {"-include", "("},
		"unknown flag -no-such-flag":     {"-no-such-flag"},
		"none of the seeds":              {"-seeds", empty},
		"-pace NaN: want more than 0":    {"-pace", "NaN"},
		"at most 1e+06":                  {"-pace", "1e9"},
		"-level 0: want at least 1":      {"-level", "0"},
		"-level 10: want at most 9":      {"-level", "10"},
		"-max-body 100.0 MB is more":     {"-max-body", "100MB"},
		"than a sixteenth of -memory":    {"-max-body", "5MiB", "-memory", "64MiB"},
		"gzip and 4 for zstd":            {"-level", "5", "-archive", "zstd"},
		"sites can write into robots":    {"-agent", "example bot"},
		`-agent "": `:                    {"-agent", ""},
		"-agent and -contact set":        {"-header", "user-agent: examplebot"},
		"control character":              {"-header", "A: b\nc: d"},
		"proxy scheme":                   {"-proxy", "proxy.example"},
		"without -private":               {"-private", "http://127.0.0.1/"},
		"10ms is too short":              {"-private", "-contact", "me@example.org", "-delay", "10ms", "localhost"},
		`-cookies "/no/such/file": open`: {"-cookies", "/no/such/file"},
		"-config: open":                  {"-config", "/no/such/file"},
		"-scope \"galaxy\": ":            {"-scope", "galaxy"},
		"usage: fullcrawler export [flags] cdxj|wacz FILE (": {"export", "-out", crawl, "wacz"},
	} {
		var log bytes.Buffer
		require.Equal(t, 2, command(t.Context(), args, io.Discard, &log), "%q", args)
		require.Contains(t, log.String(), want, "%q", args)
	}
}

func TestBodiesFitTheMemory(t *testing.T) {
	for memory, bodies := range map[string]int64{"1600MB": 4e8, "0": -1} {
		cfg, err := cockpit.ParseFlags([]string{"-memory", memory, "-max-body", "100MB", "http://127.0.0.1/"}, io.Discard)
		require.NoError(t, err)
		require.Equal(t, bodies, cfg.FetchOptions(stage.Network{}).MaxMemory, memory)
	}
}

func TestQueueIsSizedToMemory(t *testing.T) {
	for want, args := range map[int][]string{
		100_000: nil,
		25_324:  {"-memory", "134217728"},
		1000:    {"-memory", "1MB"},
		5000:    {"-memory", "134217728", "-queue", "5000"},
		200_000: {"-memory", "134217728", "-queue", "200000"},
	} {
		cfg, err := cockpit.ParseFlags(append(args, "http://127.0.0.1/"), io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, cfg.Queue, "%q", args)
	}
}

func TestInvalidSeedsAreReportedAndCounted(t *testing.T) {
	var log bytes.Buffer
	seeds := write(t, "http://127.0.0.1/\nmailto:me@example.org\n")
	cfg, err := cockpit.ParseFlags([]string{"-seeds", seeds, "http://127.0.0.2/", "http://[/"}, &log)
	require.NoError(t, err)
	require.Equal(t, []string{"http://127.0.0.2/", "http://127.0.0.1/"}, cfg.Seeds)
	require.Equal(t, 2, cfg.BadSeeds)
	require.Contains(t, log.String(), seeds+":2: skipped: ")
	require.Contains(t, log.String(), "command line: skipped: ")

	log.Reset()
	seeds = write(t, "http://127.0.0.1/\n\x1b[2J"+strings.Repeat("x", 10_000)+" y\n")
	_, err = cockpit.ParseFlags([]string{"-seeds", seeds}, &log)
	require.NoError(t, err)
	require.Contains(t, log.String(), `\x1b[2Jxxx`, "a terminal must not obey a list from elsewhere")
	require.Less(t, log.Len(), 1000)
}

func TestHelp(t *testing.T) {
	help := func(args ...string) string {
		var log bytes.Buffer
		require.Zero(t, command(t.Context(), args, &log, &log), "%q", args)
		return log.String()
	}
	for _, args := range [][]string{{"-h", "all"}, {"help", "all"}, {"-help", "all"}} {
		require.Contains(t, help(args...), "-contact URL")
		require.Contains(t, help(args...), "\nPoliteness:\n")
		require.Equal(t, 1, strings.Count(help(args...), "  -scope "))
	}
	short := help("-h")
	require.Equal(t, short, help("help"))
	require.LessOrEqual(t, strings.Count(short, "\n"), 40, "one screen")
	for line := range strings.Lines(short) {
		require.LessOrEqual(t, len(line), 100, line)
	}
	for _, all := range regexp.MustCompile(`(?m)^  (-[a-z0-9-]+)`).FindAllStringSubmatch(help("-h", "all"), -1) {
		require.Contains(t, short, all[1])
	}
	require.Contains(t, help("-h", "-deny"), "SIGHUP")
	require.NotContains(t, help("-h", "deny"), "-depth")
	require.Contains(t, help("help", "limits"), "-pages int")
	var log bytes.Buffer
	require.Equal(t, 1, command(t.Context(), []string{"-h", "denny"}, io.Discard, &log))
	require.Contains(t, log.String(), `no flag is called "denny"`)
	log.Reset()
	require.Zero(t, command(t.Context(), []string{"check", "-h"}, &log, io.Discard))
	require.Contains(t, log.String(), "fullcrawler check")
	log.Reset()
	require.Equal(t, 2, command(t.Context(), []string{"-wrong"}, io.Discard, &log))
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	log.Reset()
	require.Zero(t, command(t.Context(), []string{"--version"}, &log, io.Discard))
	require.Regexp(t, `^fullcrawler \S+ \(go1\..*\)\n$`, log.String())
}

func TestUserAgentNamesTheContact(t *testing.T) {
	cfg, err := cockpit.ParseFlags([]string{"-agent", "mybot", "-contact", "https://me.example/bot", "a.example"}, io.Discard)
	require.NoError(t, err)
	require.Regexp(t, `^mybot/(devel|[0-9a-f.]+\S*) \(\+https://me.example/bot\)$`, cfg.UserAgent())
	require.Contains(t, cockpit.Version(), strings.FieldsFunc(cfg.UserAgent(), func(r rune) bool { return r == '/' || r == ' ' })[1])
	cfg.Agent = "mybot/2.1"
	require.Equal(t, "mybot/2.1 (+https://me.example/bot)", cfg.UserAgent())
}

func TestFieldsOfSubdomains(t *testing.T) {
	cfg, err := cockpit.ParseFlags([]string{"-header", "a.test X: 1", "-header", "b.c.a.test Z: 3", "-header", "a.test Y: 1",
		"-header", "c.a.test Y: 2", "http://127.0.0.1/"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, map[string]http.Header{
		"a.test": {"X": {"1"}, "Y": {"1"}}, "c.a.test": {"X": {"1"}, "Y": {"2"}}, "b.c.a.test": {"X": {"1"}, "Y": {"2"}, "Z": {"3"}},
	}, cfg.HostHeader)
}
