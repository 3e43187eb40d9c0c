package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// trace samples the CPU use of the workers. For processes, the system reports it; for goroutines,
// it is the time from the start of a document to its end. Its methods are safe for concurrent use.
type trace struct {
	workers int
	stop    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	cmds    []*exec.Cmd
	worked  time.Duration // by goroutines, on finished documents
	active  map[int]time.Time
	next    int // number of the next document
	began   time.Time
	results int
	almost  time.Duration // until 98 % of the results
	took    time.Duration // until all results
	samples []point
}

// point is the CPU time that workers have used up to some moment.
type point struct{ at, computed time.Duration }

func newTrace(workers int) *trace {
	t := &trace{workers: workers, stop: make(chan struct{}), began: time.Now(),
		active: map[int]time.Time{}}
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

// working records that a goroutine has started a document, and returns a function that records its
// end.
func (t *trace) working() (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, began := t.next, time.Now()
	t.next++
	t.active[n] = began
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.active, n)
		t.worked += time.Since(began)
	}
}

// restart discards the samples so far, which cover the reading of the documents.
func (t *trace) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.samples = time.Now(), nil
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
	p := point{at: time.Since(t.began), computed: t.worked}
	for _, began := range t.active {
		p.computed += time.Since(began)
	}
	for _, cmd := range t.cmds {
		computed, err := cpuTime(cmd)
		if err != nil {
			return // it has ended
		}
		p.computed += computed
	}
	t.samples = append(t.samples, p)
}

// share returns the fraction of the workers' time up to a moment in which they used the CPU.
func (t *trace) share(until time.Duration) float64 {
	var first, last point
	for _, p := range t.samples {
		if p.computed == 0 || p.at > until {
			continue // not started yet, or after the moment
		}
		if first.at == 0 {
			first = p
		}
		last = p
	}
	return float64(last.computed-first.computed) / float64(last.at-first.at) / float64(t.workers)
}

// shares returns the utilization in each of n equal parts of the time.
func (t *trace) shares(n int) []float64 {
	list := make([]float64, n)
	var before point
	for i := range list {
		at := t.took * time.Duration(i+1) / time.Duration(n)
		var p point
		for _, s := range t.samples {
			if s.at <= at {
				p = s
			}
		}
		if p.at > before.at {
			list[i] = float64(p.computed-before.computed) / float64(p.at-before.at) / float64(t.workers)
		}
		before = p
	}
	return list
}

// draw returns the share over time as one line of text.
func (t *trace) draw() string {
	bars := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, share := range t.shares(60) {
		b.WriteRune(bars[min(len(bars)-1, max(0, int(share*float64(len(bars)-1)+0.5)))])
	}
	return b.String()
}

// panel is one of the plots of a figure.
type panel struct {
	name  string
	trace *trace
}

// Sizes of a figure, in pixels. All panels have the same time scale, to show which finishes first.
const (
	figureWidth = 720
	panelHeight = 90
	margin      = 30
)

// drawFigure plots the utilization of the workers over time, one panel below another.
func drawFigure(panels []panel) []byte {
	longest := time.Duration(1)
	for _, p := range panels {
		longest = max(longest, p.trace.took)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12">`+"\n", figureWidth, len(panels)*(panelHeight+margin)+margin)
	for i, p := range panels {
		top := margin + i*(panelHeight+margin)
		width := float64(figureWidth-2*margin) * float64(p.trace.took) / float64(longest)
		list := p.trace.shares(120)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s: %.2f s</text>`+"\n", margin, top-6,
			html.EscapeString(p.name), p.trace.took.Seconds())
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#999"/>`+"\n",
			margin, top, figureWidth-2*margin, panelHeight)
		fmt.Fprintf(&b, `<polyline fill="none" stroke="#06c" points="`)
		for j, share := range list {
			x := margin + width*float64(j+1)/float64(len(list))
			fmt.Fprintf(&b, "%.1f,%.1f ", x, float64(top+panelHeight)-min(share, 1)*panelHeight)
		}
		fmt.Fprintf(&b, `"/>`+"\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
