package webtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkRender generates pages without sending them.
func BenchmarkRender(b *testing.B) {
	for _, size := range []int{2 << 10, 20 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			w := offline(Options{Hosts: 100, Pages: 1000, Size: size})
			var p page
			b.ReportAllocs()
			n, sum := 0, 0
			for b.Loop() {
				p.render(w, n%100, n%1000, 0)
				sum += len(p.body)
				n++
			}
			b.SetBytes(int64(sum / n))
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}

// BenchmarkServe fetches pages over loopback with keep-alive connections. CPU time is that of the
// whole process, so pages/cpu-s includes the client: net/http's for client=http, and almost none
// for client=raw, which shows the server alone.
func BenchmarkServe(b *testing.B) {
	for _, size := range []int{2 << 10, 20 << 10} {
		for name, fetch := range map[string]func(testing.TB, *Web, []string){
			"http": fetchHTTP, "raw": fetchRaw,
		} {
			b.Run(fmt.Sprintf("client=%s/size=%d", name, size), func(b *testing.B) {
				benchmarkServe(b, size, fetch)
			})
		}
	}
}

func benchmarkServe(b *testing.B, size int, fetch func(testing.TB, *Web, []string)) {
	const clients = 8
	w := start(b, Options{Hosts: clients, Pages: 250, Size: size})
	var lists [][]string
	for h := range w.Hosts() {
		lists = append(lists, slices.Collect(h.Pages()))
	}
	b.ReportAllocs()
	n, before := 0, cpuTime()
	for b.Loop() {
		var all sync.WaitGroup
		for _, urls := range lists {
			all.Go(func() { fetch(b, w, urls) })
		}
		all.Wait()
		n += clients * 250
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "pages/s")
	if used := cpuTime() - before; used > 0 {
		b.ReportMetric(float64(n)/used.Seconds(), "pages/cpu-s")
	}
}

func fetchHTTP(tb testing.TB, w *Web, urls []string) {
	transport := &http.Transport{DialContext: w.Dial, DisableCompression: true}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	for _, u := range urls {
		resp, err := c.Get(u)
		if err != nil {
			tb.Error(err)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// fetchRaw writes requests by hand and skips the responses.
func fetchRaw(tb testing.TB, w *Web, urls []string) {
	host, _, _ := w.locate(urls[0])
	conn, err := w.Dial(tb.Context(), "tcp", w.hosts[host].Name+":80")
	if err != nil {
		tb.Error(err)
		return
	}
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 64<<10)
	prefix := len("http://") + len(w.hosts[host].Name)
	for _, u := range urls {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", u[prefix:], w.hosts[host].Name)
		if err := skipResponse(r); err != nil {
			tb.Error(err)
			return
		}
	}
}

func skipResponse(r *bufio.Reader) error {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == len("\r\n") {
			break
		}
		if name := "Content-Length: "; len(line) > len(name) && string(line[:len(name)]) == name {
			for _, c := range line[len(name) : len(line)-2] {
				length = length*10 + int(c-'0')
			}
		}
	}
	_, err := r.Discard(length)
	return err
}

func BenchmarkDial(b *testing.B) {
	w := start(b, Options{Hosts: 1})
	var conn net.Conn
	for b.Loop() {
		var err error
		conn, err = w.Dial(b.Context(), "tcp", "127.16.0.1:80")
		require.NoError(b, err)
		conn.Close()
	}
}

func BenchmarkVersion(b *testing.B) {
	for _, periodic := range []bool{false, true} {
		b.Run(fmt.Sprintf("periodic=%t", periodic), func(b *testing.B) {
			w := offline(Options{Hosts: 1, Pages: 1000, Traits: func(int) Traits {
				return Traits{Change: Change{Mean: time.Hour, Sigma: 1, Periodic: periodic}}
			}})
			w.start = time.Now().Add(-1000 * time.Hour)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				w.version(0, n%1000)
				n++
			}
		})
	}
}

func BenchmarkViolations(b *testing.B) {
	var log []Request
	for i := range 10_000 {
		log = append(log, Request{Time: epoch.Add(time.Duration(i) * time.Second),
			Host: hostName(i % 100), Addr: virtualAddr(firstServing, i%10)})
	}
	b.ReportAllocs()
	for b.Loop() {
		Violations(log, perHost, perAddr)
	}
	b.ReportMetric(float64(len(log)*b.N)/b.Elapsed().Seconds(), "requests/s")
}
