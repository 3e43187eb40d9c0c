package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// childEnv turns this program into a worker.
const childEnv = "SPINNERET_BENCH_CHILD"

// serve runs the worker.
func serve() {
	_ = scan.Serve(os.Stdin, os.Stdout, func(_, data []byte) ([]byte, error) { return analyse(data) })
}

// analyse takes 20 to 40 times as long as decompressing, and much longer for some documents.
func analyse(data []byte) ([]byte, error) {
	r := warc.NewReader(bytes.NewReader(data), warc.ReaderOptions{})
	defer r.Close()
	rec, err := r.Next()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(rec)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	rounds := 60
	if sum[0] < 16 {
		rounds = 600
	}
	for range rounds {
		sum = sha256.Sum256(append(text, sum[:]...))
	}
	return sum[:], nil
}

// workers are the kinds of workers to compare. A trace watches the workers that each starts.
var workers = []struct {
	name  string
	start func(*trace) scan.Work
}{
	{"processes", func(t *trace) scan.Work { return scan.Process(t.command) }},
	{"goroutines", func(t *trace) scan.Work {
		return scan.Func(func(doc *scan.Document) ([]byte, error) {
			defer t.working()()
			return analyse(doc.Data)
		})
	}},
}

// An assignment distributes documents to workers. It reports each result to the trace.
type assignment struct {
	name string
	run  func(s *archive.Snapshot, start scan.Work, o options, t *trace) error
}

var assignments = []assignment{
	{"static", static}, {"synchronous", dynamic(1)}, {"pipelined", dynamic(2)},
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
	var drawn []panel
	for _, kind := range workers {
		for round := range o.rounds {
			for _, as := range assignments {
				t, err := scanOnce(a, kind.start, as, o)
				if err != nil {
					return err
				}
				name := kind.name + ", " + as.name
				fmt.Printf("scan      %-24s %6.2f s  busy %.3f until 98 %%, %.3f overall\n%s\n", name,
					t.took.Seconds(), t.share(t.almost), t.share(t.took), t.draw())
				if round == o.rounds-1 {
					drawn = append(drawn, panel{name, t})
				}
			}
		}
	}
	if o.svg == "" {
		return nil
	}
	return os.WriteFile(o.svg, drawFigure(drawn), 0o644)
}

func scanOnce(a *archive.Archive, start func(*trace) scan.Work, as assignment, o options) (
	*trace, error) {
	s, err := a.Snapshot(archive.Query{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	t := newTrace(o.workers)
	err = as.run(s, start(t), o, t)
	t.finish()
	return t, err
}

// dynamic gives a worker the next document when it has fewer than depth.
func dynamic(depth int) func(*archive.Snapshot, scan.Work, options, *trace) error {
	return func(s *archive.Snapshot, start scan.Work, o options, t *trace) error {
		opts := scan.Options{Workers: o.workers, Depth: depth}
		for result, err := range s.Scan(context.Background(), start, opts) {
			if err := errors.Join(err, result.Err); err != nil {
				return err
			}
			t.result(s.Len())
		}
		return nil
	}
}

// static assigns an equal part to each worker in advance, from memory: unlike the other
// assignments, it does not count the time for reading the documents.
func static(s *archive.Snapshot, start scan.Work, o options, t *trace) error {
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
	var all errgroup
	for _, part := range parts {
		all.do(func() error {
			docs := func(yield func(scan.Document, error) bool) {
				for _, doc := range part {
					if !yield(doc, nil) {
						return
					}
				}
			}
			for result, err := range scan.Run(context.Background(), docs, start, scan.Options{Workers: 1}) {
				if err := errors.Join(err, result.Err); err != nil {
					return err
				}
				t.result(s.Len())
			}
			return nil
		})
	}
	return all.wait()
}
