//go:build linux

// Command memory measures the memory of fullcrawler while it runs:
//
//	go run ./memory                 discovers a million URLs
//	go run ./memory -urls 1e7       ten million
//
// The web is part of this process. The crawler is a separate one, with the memory that -memory
// allows. Each page of the web links to a thousand new URLs, spread over a thousand hosts.
// "Resident" is the resident memory without mapped files, "heap" the memory in use by Go. The
// crawler has no archive and no delays.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
	"github.com/spinneret-go/spinneret/internal/bench/programs"
)

func main() {
	var b bench
	urls := flag.Float64("urls", 1e6, "`number` of URLs to discover")
	flag.Int64Var(&b.memory, "memory", 512<<20, "the crawler's -memory, in `bytes`")
	flag.Parse()
	b.urls = max(int(*urls), 10)
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

type bench struct {
	urls   int
	memory int64
	dir    string
}

func (b *bench) run() (err error) {
	if b.dir, err = os.MkdirTemp("", "memory"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := programs.Build(b.dir); err != nil {
		return err
	}
	server := &http.Server{Handler: library{}}
	defer server.Close()
	port, err := b.serve(server)
	if err != nil {
		return err
	}
	urls := float64(b.urls)
	samples, err := programs.Watch(b.dir, 500*time.Millisecond, func(now programs.Sample) bool { return now.Known >= urls },
		"-archive", "none", "-sitemaps=false", "-memory", fmt.Sprint(b.memory), "http://"+hostOf(0)+":"+port+"/0")
	return errors.Join(err, report(samples, urls))
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

// report prints the first sample in each tenth of the URLs.
func report(samples []programs.Sample, urls float64) error {
	out := measure.Columns()
	fmt.Fprint(out, "known\tvisited\tresident MB\tB/URL\theap MB\tB/URL\tCPU µs/URL\t\n")
	next := urls / 10
	for _, s := range samples {
		if s.Known < next && s.Known < urls {
			continue
		}
		next = (math.Floor(10*s.Known/urls) + 1) * urls / 10
		known := max(s.Known, 1)
		fmt.Fprintf(out, "%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t\n", s.Known, s.Visits, s.Anonymous/1e6,
			s.Anonymous/known, s.Heap/1e6, s.Heap/known, 1e6*s.CPU/known)
	}
	return out.Flush()
}
