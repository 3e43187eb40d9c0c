package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// childEnv makes this program a worker.
const childEnv = "SPINNERET_BENCH_CHILD"

// serve is an analysis that takes 20 to 40 times as long as decompressing, for some documents much
// longer.
func serve() {
	_ = scan.Serve(os.Stdin, os.Stdout, func(_, data []byte) ([]byte, error) {
		rec, err := warc.NewReader(bytes.NewReader(data), warc.ReaderOptions{}).Next()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(rec)
		sum := sha256.Sum256(text)
		rounds := 60
		if sum[0] < 16 {
			rounds = 600
		}
		for range rounds {
			sum = sha256.Sum256(append(text, sum[:]...))
		}
		return sum[:], err
	})
}

// An assignment is a way to give documents to workers. It calls progress after each result.
type assignment struct {
	name string
	run  func(s *archive.Snapshot, o options, t *trace) error
}

var assignments = []assignment{
	{"static", static},
	{"synchronous", func(s *archive.Snapshot, o options, t *trace) error { return dynamic(s, o, t, 1) }},
	{"pipelined", func(s *archive.Snapshot, o options, t *trace) error { return dynamic(s, o, t, 2) }},
}

func scanAll(o options) error {
	dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a, err := fill(dir, o.pages, archive.Options{Compression: warc.Zstd})
	if err != nil {
		return err
	}
	defer a.Close()
	for range o.rounds {
		for _, as := range assignments {
			s, err := a.Snapshot(archive.Query{})
			if err != nil {
				return err
			}
			t := newTrace(o.workers)
			err = as.run(s, o, t)
			t.finish()
			if err != nil {
				return err
			}
			fmt.Printf("scan       %-12s %6.2f s  busy %.3f until 98 %%, %.3f in all\n%s\n",
				as.name, t.took.Seconds(), t.share(t.almost), t.share(t.took), t.draw())
			if err := s.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

func dynamic(s *archive.Snapshot, o options, t *trace, depth int) error {
	opts := scan.Options{Workers: o.workers, Depth: depth}
	for _, err := range s.Scan(context.Background(), scan.Process(t.command), opts) {
		if err != nil {
			return err
		}
		t.result(s.Len())
	}
	return nil
}

// static gives each worker a part of equal size beforehand.
func static(s *archive.Snapshot, o options, t *trace) error {
	parts := make([][]scan.Document, o.workers)
	i := 0
	for doc, err := range s.Documents() {
		if err != nil {
			return err
		}
		part := &parts[i*o.workers/s.Len()]
		*part = append(*part, scan.Document{Data: bytes.Clone(doc.Raw)})
		i++
	}
	t.restart()
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(func() {
			docs := func(yield func(scan.Document, error) bool) {
				for _, doc := range part {
					if !yield(doc, nil) {
						return
					}
				}
			}
			opts := scan.Options{Workers: 1}
			for range scan.Run(context.Background(), docs, scan.Process(t.command), opts) {
				t.result(s.Len())
			}
		})
	}
	all.Wait()
	return nil
}

// trace samples how much the workers compute.
type trace struct {
	workers int
	stop    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	cmds    []*exec.Cmd
	began   time.Time
	results int
	almost  time.Duration // when 98 % of the results were there
	took    time.Duration // when all were
	samples []point
}

// point is the time that workers have computed in all by some moment.
type point struct{ at, computed time.Duration }

func newTrace(workers int) *trace {
	t := &trace{workers: workers, stop: make(chan struct{}), began: time.Now()}
	t.ended.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.sample()
			case <-t.stop:
				return
			}
		}
	})
	return t
}

func (t *trace) command() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cmds = append(t.cmds, cmd)
	return cmd
}

func (t *trace) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = time.Now()
}

func (t *trace) result(of int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results++
	if t.took = time.Since(t.began); t.results <= of*98/100 {
		t.almost = t.took
	}
}

func (t *trace) finish() {
	close(t.stop)
	t.ended.Wait()
}

func (t *trace) sample() {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := point{at: time.Since(t.began)}
	for _, cmd := range t.cmds {
		computed, err := cpuTime(cmd)
		if err != nil {
			return // it has ended
		}
		p.computed += computed
	}
	t.samples = append(t.samples, p)
}

// share returns the part of the workers' time up to a moment in which they computed.
func (t *trace) share(until time.Duration) float64 {
	var first, last point
	for _, p := range t.samples {
		if p.computed == 0 || p.at > until {
			continue // they have not started, or that is not asked for
		}
		if first.at == 0 {
			first = p
		}
		last = p
	}
	return float64(last.computed-first.computed) / float64(last.at-first.at) / float64(t.workers)
}

// draw draws the share over time.
func (t *trace) draw() string {
	const columns = 60
	bars := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	var before point
	for i := range columns {
		at := t.took * time.Duration(i+1) / columns
		var p point
		for _, s := range t.samples {
			if s.at <= at {
				p = s
			}
		}
		share := 0.0
		if p.at > before.at {
			share = float64(p.computed-before.computed) / float64(p.at-before.at) / float64(t.workers)
		}
		b.WriteRune(bars[min(len(bars)-1, max(0, int(share*float64(len(bars)-1)+0.5)))])
		before = p
	}
	return b.String()
}
