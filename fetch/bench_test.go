package fetch_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// serverEnv turns the test binary into a server, so that a benchmark measures only the client's CPU
// time.
const serverEnv = "SPINNERET_FETCH_BENCH_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		if err := servePages(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// servePages prints its address and answers each request with the same page, until its standard
// input ends.
func servePages() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	page := strings.Repeat("twenty kilobytes of a page. ", 20<<10/28)
	answer := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", ok, len(page), page)
	go accept(l, func(s *session) {
		for s.request() != "" {
			s.say(answer)
		}
	})
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startServer runs servePages in a separate process and returns the URL of its page.
func startServer(b *testing.B) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return "http://" + strings.TrimSpace(addr) + "/page.html"
}

// The lower bound is net/http, which discards the body.
func BenchmarkGet(b *testing.B) {
	const connections = 200
	url := startServer(b)
	client, err := fetch.New(fetch.Options{Reach: fetch.Loopback, MaxIdlePerHost: connections})
	require.NoError(b, err)
	defer client.CloseIdleConnections()
	bare := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer bare.CloseIdleConnections()
	engines := []struct {
		name string
		get  func(b *testing.B) error
	}{
		{"fetch", func(b *testing.B) error {
			r, err := client.Get(b.Context(), url)
			if err == nil {
				client.Release(r)
			}
			return err
		}},
		{"net-http", func(b *testing.B) error {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			resp, err := bare.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		}},
	}
	for _, engine := range engines {
		b.Run("client="+engine.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(20 << 10)
			b.SetParallelism(connections / 2)
			before := cpuTime()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := engine.get(b); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/page")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}
