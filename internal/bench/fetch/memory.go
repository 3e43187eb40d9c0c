package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
)

// memory measures the memory that fetches use when they have received half of the page.
func memory(rounds, open, size int) error {
	addr, stop, err := startServer(size)
	if err != nil {
		return err
	}
	defer stop()
	url := "http://" + addr + halfPath
	r := results{columns: []string{"KiB/fetch", "stacks KiB"}, reference: "net/http"}
	for range rounds {
		for _, e := range []struct {
			name string
			get  func(ctx context.Context, read *atomic.Int64) error
		}{{"net/http", halfHTTP(url)}, {"fetch", halfOurs(url)}} {
			heap, stacks, err := held(e.get, open, int64(open*(size/2)))
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			r.add(e.name, (heap+stacks)/1024/float64(open), stacks/1024/float64(open))
		}
	}
	fmt.Printf("%d fetches that have received half of %d bytes; net/http discards them\n",
		open, size)
	return r.print()
}

// held starts fetches, waits until half of each page has arrived and cancels them.
func held(
	get func(context.Context, *atomic.Int64) error, open int, want int64,
) (heap, stacks float64, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	var read atomic.Int64
	failed := make(chan error, open)
	before := live()
	for range open {
		group.Go(func() {
			if err := get(ctx, &read); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	for read.Load() < want && err == nil {
		select {
		case err = <-failed:
		case <-time.After(time.Millisecond):
		}
	}
	after := live()
	cancel()
	group.Wait()
	return float64(after.HeapInuse) - float64(before.HeapInuse),
		float64(after.StackInuse) - float64(before.StackInuse), err
}

func live() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC() // the second run empties pools
	runtime.ReadMemStats(&m)
	return m
}

// counted counts the bytes that are read.
type counted struct {
	io.ReadCloser
	read *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// counting counts the bytes of a fetch client. Its Wrap is called once, for all fetches of a round.
type counting struct {
	next http.RoundTripper
	read *atomic.Pointer[atomic.Int64]
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err == nil {
		resp.Body = &counted{resp.Body, c.read.Load()}
	}
	return resp, err
}

func halfOurs(url string) func(context.Context, *atomic.Int64) error {
	var counter atomic.Pointer[atomic.Int64]
	client, err := fetch.New(fetch.Options{
		Reach: fetch.Loopback,
		Wrap:  func(next http.RoundTripper) http.RoundTripper { return counting{next, &counter} },
	})
	return func(ctx context.Context, read *atomic.Int64) error {
		if err != nil {
			return err
		}
		counter.Store(read)
		_, err := client.Get(ctx, url)
		return err
	}
}

func halfHTTP(url string) func(context.Context, *atomic.Int64) error {
	client := &http.Client{Transport: new(http.Transport)}
	return func(ctx context.Context, read *atomic.Int64) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, &counted{resp.Body, read})
		return err
	}
}
