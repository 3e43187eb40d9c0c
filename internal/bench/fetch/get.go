package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// get fetches the same page over kept-alive connections. The baseline is net/http with a loop that
// reads the body. The peers are other clients that crawlers use.
func get(rounds, pages, conns, size int) error {
	addr, stop, err := startServer(size)
	if err != nil {
		return err
	}
	defer stop()
	engines := []struct {
		name string
		make func(addr string, conns, size int) (getter, error)
	}{
		{"net/http", bareHTTP}, {"fetch", ours},
		{"colly", bareColly}, {"resty", restyClient}, {"fasthttp", fastHTTP},
		{"fetch and Links", withLinks}, {"colly and OnHTML", collyWithLinks},
	}
	var r measure.Results
	for round := range rounds + 1 {
		for _, e := range engines {
			g, err := e.make(addr, conns, size)
			if err != nil {
				return err
			}
			cpu, took, err := run(g, pages, conns)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			if round > 0 { // the first round is a warm-up
				r.Add(e.name, cpu.Seconds()/float64(pages)*1000, float64(pages)/took.Seconds())
			}
		}
	}
	fmt.Printf("%d pages of %d bytes over %d connections; CPU time of the client only\n",
		pages, size, conns)
	return r.Print("engine", "net/http", "CPU s/1,000 pages", "pages/s")
}

// A getter gets a page, for several workers at once, and can be closed.
type getter struct {
	get   func() error
	close func()
}

// run gets the pages with some workers.
func run(g getter, pages, workers int) (cpu, took time.Duration, err error) {
	var left atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, workers)
	left.Store(int64(pages))
	before, start := measure.CPU(), time.Now()
	for i := range errs {
		group.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				errs[i] = g.get()
			}
		})
	}
	group.Wait()
	cpu, took = measure.CPU()-before, time.Since(start)
	g.close()
	return cpu, took, errors.Join(errs...)
}

func ours(addr string, conns, size int) (getter, error) {
	return getterWith(addr, conns, func(resp *fetch.Response) error {
		return whole(len(resp.Body), size)
	})
}

// getterWith gets a page with package fetch and passes it to check.
func getterWith(addr string, conns int, check func(*fetch.Response) error) (getter, error) {
	client, err := ourClient(conns)
	if err != nil {
		return getter{}, err
	}
	url := "http://" + addr + "/page.html"
	get := func() error {
		resp, err := client.Get(context.Background(), url)
		if err != nil {
			return err
		}
		defer client.Release(resp)
		return check(resp)
	}
	return getter{get, client.CloseIdleConnections}, nil
}

func ourClient(conns int) (*fetch.Client, error) {
	return fetch.New(fetch.Options{Reach: fetch.Loopback, MaxIdlePerHost: conns, MaxIdle: conns})
}

// whole checks that a page is complete, by its bytes or its links.
func whole(got, want int) error {
	if got != want {
		return fmt.Errorf("incomplete page: got %d of %d bytes or links", got, want)
	}
	return nil
}

func bareHTTP(addr string, conns, size int) (getter, error) {
	transport := &http.Transport{
		MaxIdleConnsPerHost: conns, MaxIdleConns: conns, DisableCompression: true,
	}
	client := &http.Client{Transport: transport}
	url := "http://" + addr + "/page.html"
	get := func() error {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		n, err := io.Copy(io.Discard, resp.Body)
		if err != nil {
			return err
		}
		return whole(int(n), size)
	}
	return getter{get, transport.CloseIdleConnections}, nil
}
