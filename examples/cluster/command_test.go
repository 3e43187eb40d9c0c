package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// do runs the program in this process.
func do(t *testing.T, args ...string) (status int, out, log string) {
	t.Helper()
	var o, l lockedBuffer
	status = command(t.Context(), args, &o, &l)
	return status, o.String(), l.String()
}

// A lockedBuffer collects the output of several processes, as a terminal does.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestInvalidCommandLines(t *testing.T) {
	for line, says := range map[string]string{
		"":                                "cluster status",
		"fly":                             "cluster status",
		"run -modules fetch,sleep":        `module "sleep"`,
		"run -modules seeder":             `module "seeder"`,
		"delay a.test":                    "1 arguments",
		"run -no-such-flag":               "no-such-flag",
		"create http://a.test/ -loopback": "put flags first",
		"deny a.test -crawl other":        "put flags first",
		"run archive1":                    `unexpected argument "archive1"`,
		"status -every 5s crawl":          `unexpected argument "crawl"`,
		"create -loopback":                "no seeds",
		"create http://example.org/":      "-contact is missing",
		"create -loopback mailto:a@b":     "seed",
		"create -contact a@b.test http://localhost:8080/": "use -loopback",
		"create -contact a@b.test http://127.0.0.1/":      "use -loopback",
		"create http://localhost:8080/":                   "use -loopback",
		"messages -x":                                     "-x",
		"spread":                                          "0 arguments",
		"scaling -processes 1,two":                        "-processes",
		"scaling -processes 0 -hosts 10":                  "-processes",
	} {
		status, _, log := do(t, strings.Fields(line)...)
		require.Equal(t, 2, status, "cluster %s: %s", line, log)
		require.Contains(t, log, says, "cluster %s", line)
	}
	status, _, log := do(t, "run", "-h")
	require.Zero(t, status)
	require.Contains(t, log, "-workers")
}

func TestFailuresAreReported(t *testing.T) {
	for line, says := range map[string]string{
		"run -hosts /no/such/file":                   "no such file",
		"create -loopback -seeds /no/such/file":      "no such file",
		"spread /no/such/file":                       "no such file",
		"status -crawl a.b -nats nats://127.0.0.1:1": "crawl name",
	} {
		status, _, log := do(t, strings.Fields(line)...)
		require.Equal(t, 1, status, "cluster %s: %s", line, log)
		require.Contains(t, log, says, "cluster %s", line)
	}
}

func TestSeedsComeFromTheCommandLineAndFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seeds")
	require.NoError(t, os.WriteFile(file, []byte("# seeds\nexample.org\n\nnot a url:\n"), 0o666))
	var log bytes.Buffer
	seeds, err := readSeeds([]string{"http://Example.COM"}, file, &log)
	require.NoError(t, err)
	require.Equal(t, []string{"http://example.com/", "https://example.org/"}, seeds)
	require.Contains(t, log.String(), ":4: ")
}

func TestStatusShowsPartitionsProcessesAndCounts(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	part := func(m message.Module, lag uint64, fetched int64) crawl.Part {
		return crawl.Part{
			Dest: message.Dest{To: m, Part: 3}, Owner: "a-1", Epoch: 4, End: 9, Held: 30,
			Root: engine.Root{Lag: lag, Open: 7, Counts: map[string]int64{"fetched": fetched}},
		}
	}
	last := look{at: at.Add(-10 * time.Second), parts: []crawl.Part{part(message.Fetch, 20, 1)}}
	now := look{
		at:    at,
		parts: []crawl.Part{part(message.Fetch, 20, 30), part(message.Hosts, 0, 12)},
		members: []crawl.Member{{
			ID: "a-1", Report: crawl.Report{
				Owned: 2, Visits: 42, Rate: 4.2, Started: at.Add(-time.Minute), Heap: 3 << 19, Resident: 5 << 20,
			},
		}},
	}
	var out bytes.Buffer
	now.show(&out, last, true)
	lines := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines[fields[0]] = fields
		}
	}
	require.Equal(t, []string{"fetch.3", "4", "20", "7", "a-1"}, lines["fetch.3"])
	require.Equal(t, []string{"hosts.3", "4", "0", "7", "a-1"}, lines["hosts.3"])
	require.Equal(t, []string{"process", "partitions", "responses"}, lines["process"][:3])
	require.Equal(t, []string{"a-1", "2", "42", "4.2", "1.5", "MiB", "5.0", "MiB", "1m0s"}, lines["a-1"])
	require.True(t, strings.HasPrefix(out.String(), "crawl      running\n"), out.String())
	require.Contains(t, out.String(), "14 waiting, 20 messages in flight")
	require.NotContains(t, out.String(), "dropped")
	full := look{parts: []crawl.Part{
		{Root: engine.Root{Counts: map[string]int64{"queue_full": 5}}},
	}}
	out.Reset()
	full.show(&out, look{}, false)
	require.Contains(t, out.String(), "dropped    5 links and pages for lack of room")
	require.Equal(t, "-", mebibytes(0), "not every system reports resident memory")
	paused := now
	paused.settings.Paused = true
	require.Contains(t, paused.summary(last).state, "paused")
	require.Contains(t, (&look{}).summary(look{}).state, "no process is alive")
	now.parts[0].Owner = "" // it is dead
	require.Contains(t, now.summary(last).state, "without an owner: fetch.3")
	require.EqualValues(t, 30, now.summary(last).lag, "what nobody reads counts")
	require.Equal(t, []string{"42", "fetched"}, lines["42"])
}

func TestSpreadCountsTheShareOfEachProcess(t *testing.T) {
	s := newSpread(4)
	for i := range 100 {
		s.add(fmt.Sprintf("http://one.test/%d", i))
		s.add(fmt.Sprintf("http://one.test/%d", i))
		s.add(fmt.Sprintf("h%d.test", i))
	}
	s.add("http://[/")
	require.Equal(t, 100, total(s.urls))
	require.Equal(t, 101, total(s.hosts))
	one := make([]int, 4)
	one[message.Part("one.test", 4)] = 100
	require.Equal(t, one, s.sites, "all URLs of a host are in one partition")

	require.Equal(t, " 0.00 % (0.00 %)", deviation([]int{5, 5, 5, 5}, 2))
	require.Equal(t, "50.00 % (50.00 %)", deviation([]int{1, 2, 3, 6}, 2))
	require.Equal(t, "100.00 % (62.36 %)", deviation([]int{1, 2, 3, 6}, 4))
}

// TestACrawlByCommands crawls with the commands of an operator. Workers are processes of their own.
func TestACrawlByCommands(t *testing.T) {
	t.Parallel()
	_, urls := lone(t, t.TempDir(), 0)
	status, _, log := do(t, "status", "-nats", urls)
	require.Equal(t, 1, status)
	require.Contains(t, log, "not created yet")
	tr := begin(t, urls, 1)
	// One process runs dedupe and hosts, another one fetches.
	start(t, nil, "run", "-nats", urls, "-modules", "dedupe,hosts", "-name", "states", "-commit", "20ms", "-hosts", tr.hosts)
	start(t, nil, "run", "-nats", urls, "-modules", "fetch", "-name", "fetch", "-commit", "20ms", "-hosts", tr.hosts,
		"-workers", strconv.Itoa(fetchers), "-dir", t.TempDir(), "-web-port", strconv.Itoa(tr.port))
	tr.seed(t, "states", "fetch")
	status, _, log = do(t, "wait", "-nats", urls, "-every", "50ms")
	require.Zero(t, status, log)
	tr.finish(t)
	status, out, log := do(t, "status", "-nats", urls, "-partitions")
	require.Zero(t, status, log)
	require.Regexp(t, `hosts\.1 .* states-`, out)
	require.Regexp(t, `fetch\.3 .* fetch-`, out)
	answers := len(tr.reachable()) + len(slices.Collect(tr.web.Hosts())) // with each robots.txt
	require.Contains(t, out, fmt.Sprintf("%10d  fetched\n", answers))

	c := start(t, nil, "status", "-nats", urls, "-listen", "127.0.0.1:0")
	page, _, ok := strings.Cut(c.line(t), " and ")
	require.True(t, ok)
	read := func(path string) string {
		resp, err := http.Get(page + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	require.Regexp(t, `(?m)^ *states-[0-9a-f]+ +8 +0 `, read(""))
	require.Regexp(t, `(?m)^ *fetch-[0-9a-f]+ +4 +[1-9]`, read(""))
	require.NotContains(t, read(""), "fetch.3")
	request, err := http.NewRequest(http.MethodGet, page, nil)
	require.NoError(t, err)
	request.Host = "rebound.example"
	resp, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMisdirectedRequest, resp.StatusCode)
	request.Host, err = os.Hostname()
	require.NoError(t, err)
	resp, err = http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, read("?partitions"), "fetch.3")
	metrics := read("metrics")
	require.Regexp(t, `\ncluster_process_partitions\{process="fetch-[0-9a-f]+"\} 4\n`, metrics)
	require.Contains(t, metrics, "\n# TYPE cluster_answers_total counter\n")
	require.Contains(t, metrics, "\ncluster_partition_lag_messages{module=\"hosts\",part=\"1\"} 0\n")
	require.Contains(t, metrics,
		fmt.Sprintf("\ncluster_outcomes_total{what=\"fetched\"} %d\n", answers))
	require.Regexp(t, `\ncluster_answers_total\{process="fetch-[0-9a-f]+"\} [1-9]`, metrics)
}

func TestBenchmarksRun(t *testing.T) {
	t.Setenv(asProgram, unwatched) // for the processes that the benchmarks start
	for line, says := range map[string]string{
		"messages -messages 2000 -parts 2 -rounds 1":                           "1           2    500     64      2000",
		"scaling -graph= -hosts 4 -pages 3 -processes 2 -latency 1ms -parts 2": "2        12       12        0      0",
		"spread testdata/urls.txt":                                             "3 URLs, 2 hosts, 16 partitions",
	} {
		status, out, log := do(t, strings.Fields(line)...)
		require.Zero(t, status, "cluster %s: %s", line, log)
		require.Contains(t, out, says, "cluster %s", line)
	}
}

// TestAnEmptyFileHasNoLines: an empty deny list equals none, so a crawl without one does not differ.
func TestAnEmptyFileHasNoLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "deny")
	for _, text := range []string{"", "\n"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		lines, err := readLines(name)
		require.NoError(t, err)
		require.Nil(t, lines)
	}
}
