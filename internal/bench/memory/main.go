//go:build linux

// Command memory measures the memory of fullcrawler while it runs:
//
//	go run ./memory                 discovers a million URLs
//	go run ./memory -urls 1e7       ten million
//	go run ./memory -bodies 64      large compressed pages arrive at once
//
// The web is part of this process. The crawler is a separate one, with the memory that -memory
// allows. Each page of the web links to a thousand new URLs, spread over a thousand hosts. With
// -bodies, that many hosts have one page of nearly 10 MB each. The pages are sent compressed, once
// all of them have been requested. "Resident" is the resident memory without mapped files, "heap"
// the memory in use by Go. The crawler has no archive and no delays.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/programs"
)

func main() {
	var b bench
	urls := flag.Float64("urls", 1e6, "`number` of URLs to discover")
	flag.IntVar(&b.bodies, "bodies", 0, "`number` of large pages at once; 0 measures known URLs")
	flag.Int64Var(&b.memory, "memory", 512<<20, "the crawler's -memory, in `bytes`")
	flag.StringVar(&b.order, "order", "found", "found or rank")
	flag.StringVar(&b.program, "fullcrawler", "", "`program` to measure; empty builds one")
	flag.Parse()
	b.urls = max(int(*urls), 10)
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

type bench struct {
	urls, bodies   int
	memory         int64
	order, program string
	dir            string
}

// listen is the address of the crawler's metrics.
const listen = "127.0.0.1:18098"

func (b *bench) run() (err error) {
	if b.dir, err = os.MkdirTemp("", "memory"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.program == "" {
		if err := programs.Build(b.dir); err != nil {
			return err
		}
		b.program = filepath.Join(b.dir, "fullcrawler")
	}
	server := &http.Server{Handler: library{}}
	if b.bodies > 0 {
		server.Handler = newShelf(b.bodies)
	}
	defer server.Close()
	port, err := b.serve(server)
	if err != nil {
		return err
	}
	return b.crawl("http://" + hostOf(0) + ":" + port + "/0")
}

// serve makes a server listen on one port of many addresses, since the crawler fetches one page at
// a time from each address. It also writes the hosts file.
func (b *bench) serve(server *http.Server) (port string, err error) {
	port = "0"
	for n := range addrs {
		listener, err := net.Listen("tcp", net.JoinHostPort(addrOf(n), port))
		if err != nil {
			return "", err
		}
		go server.Serve(listener)
		_, port, _ = net.SplitHostPort(listener.Addr().String())
	}
	var hosts strings.Builder
	for n := range librarySize {
		fmt.Fprintln(&hosts, addrOf(n), hostOf(n))
	}
	return port, os.WriteFile(filepath.Join(b.dir, "hosts"), []byte(hosts.String()), 0o666)
}

// crawl runs the crawler until it knows enough URLs, or is done.
func (b *bench) crawl(seed string) error {
	args := []string{"-hosts", "hosts", "-out", "out", "-delay", "0", "-scope", "any", "-host-pages", "0",
		"-depth", "-1", "-archive", "none", "-sitemaps=false", "-order", b.order,
		"-memory", fmt.Sprint(b.memory), "-listen", listen, seed}
	cmd := exec.Command(b.program, args...)
	output, err := os.Create(filepath.Join(b.dir, "output"))
	if err != nil {
		return err
	}
	defer output.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, output, output
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	samples, err := b.watch(cmd.Process.Pid, ended)
	if err != nil {
		text, _ := os.ReadFile(output.Name())
		return fmt.Errorf("%w; output:\n%s", err, text[max(0, len(text)-2000):])
	}
	b.report(samples)
	return nil
}

// watch takes samples until enough URLs are known. When it returns, the crawler has exited.
func (b *bench) watch(pid int, ended <-chan error) (samples []programs.Sample, err error) {
	urls := float64(b.urls)
	pause, next := 20*time.Millisecond, 0.
	if b.bodies == 0 {
		pause, next = 500*time.Millisecond, urls/10
	}
	for {
		select {
		case err := <-ended:
			if b.bodies == 0 {
				err = errors.Join(errors.New("the crawler exited too early"), err)
			}
			return samples, err
		case <-time.After(pause):
		}
		s, err := programs.TakeSample(listen, pid)
		if err != nil {
			continue // it has not started, or has exited
		}
		if b.bodies > 0 || s.Known >= next || s.Known >= urls {
			samples = append(samples, s)
			next = (math.Floor(10*s.Known/urls) + 1) * urls / 10
		}
		if b.bodies == 0 && s.Known >= urls {
			return samples, errors.Join(syscall.Kill(pid, syscall.SIGINT), <-ended)
		}
	}
}

func (b *bench) report(samples []programs.Sample) {
	if b.bodies > 0 {
		most := programs.Sample{}
		for _, s := range samples {
			most.Visits = max(most.Visits, s.Visits)
			most.Heap, most.Peak = max(most.Heap, s.Heap), max(most.Peak, s.Peak)
		}
		fmt.Printf("%d pages of %.1f MB, compressed, at once, -memory %.0f MB: resident %.0f MB at most, "+
			"heap %.0f MB; %.0f visits\n", b.bodies, float64(bodySize)/1e6, float64(b.memory)/1e6, most.Peak/1e6,
			most.Heap/1e6, most.Visits)
		return
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "known\tvisited\tresident MB\tB/URL\theap MB\tB/URL\tCPU µs/URL\t\n")
	for _, s := range samples {
		known := max(s.Known, 1)
		fmt.Fprintf(out, "%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t\n", s.Known, s.Visits, s.Anonymous/1e6,
			s.Anonymous/known, s.Heap/1e6, s.Heap/known, 1e6*s.CPU/known)
	}
	out.Flush()
}
