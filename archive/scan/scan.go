package scan

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// What a [Result] or a scan may fail with.
var (
	// ErrSkipped is wrapped by the error for a document that killed its worker twice.
	ErrSkipped = errors.New("scan: document skipped")

	// ErrFailed is wrapped by the error that a worker replied with.
	ErrFailed = errors.New("scan: worker reports")

	// ErrWorkers ends a scan whose workers die one after the other without a single reply: it is
	// not the documents then.
	ErrWorkers = errors.New("scan: workers keep dying")
)

// errEnded stops what is left of a scan whose results have all come, or are not wanted any more.
var errEnded = errors.New("scan: ended")

// What zero means in [Options].
const (
	DefaultDepth    = 2
	DefaultMaxReply = 64 << 20
)

// maxDeaths is how many deaths in a row for each worker, of all together, end a scan.
const maxDeaths = 20

// Options say how a scan is run. The zero Options is fine.
type Options struct {
	// Workers is how many work at the same time. 0 means one for each core that Go may use.
	Workers int

	// Depth is how many documents a worker has been sent at most: the one that it works on, and
	// those that wait in its input. 0 means 2. 1 means that it waits for each.
	Depth int

	// RestartAfter is after how many documents a worker is replaced by a new one. 0 means never.
	RestartAfter int

	// Timeout is how long a worker may take for one document until it is taken for dead. 0 means
	// that it may take forever.
	Timeout time.Duration

	// MaxReply bounds the bytes of one reply of a child process. 0 means 64 MiB.
	MaxReply int

	// Ordered makes results come in the order of the documents, which has finished ones wait for
	// slow ones. false means as they come.
	Ordered bool

	// Progress is called after each result, from the goroutine that takes the results. nil means
	// that nobody wants to know.
	Progress func(Stats)
}

// Work is what is done with documents: that of [Filter], [Command], [Process] or [Func]. Its zero
// value is not valid.
type Work struct {
	start func(o Options) (worker, error)
}

// Document is what a worker gets. Its slices are copied.
type Document struct {
	// Meta and Data are sent to the worker.
	Meta, Data []byte

	// Value is for functions, and for the one who takes the results. Child processes do not see it.
	Value any

	// Decode makes of Data what a [Filter] reads. nil means that it reads Data.
	Decode func(data []byte) ([]byte, error)

	// Err keeps the document from being sent: it is what becomes of it. nil means that it is sent.
	Err error
}

// Result is what became of a document.
type Result struct {
	// Number counts the documents from 0 in their order.
	Number int64

	// Value is that of the document, and Out what the worker made of it.
	Value any
	Out   []byte

	// Err is nil, or wraps ErrFailed, ErrSkipped or the document's own Err.
	Err error
}

// Stats says how far a scan has come.
type Stats struct {
	Results  int64         // that have come
	Failed   int64         // of them, those with an Err
	Skipped  int64         // of these, documents that killed their workers
	Deaths   int64         // of workers
	Restarts int64         // of workers that had worked enough
	Busy     time.Duration // of all workers, with a document to work on
	Idle     time.Duration // of all workers, without one
}

// job is a document on its way. It is held until its result is back.
type job struct {
	number int64
	doc    Document
	deaths int
}

// run is a scan.
type run struct {
	ctx     context.Context
	stop    context.CancelCauseFunc
	opts    Options
	do      Work
	fresh   chan *job     // from the documents
	again   chan *job     // those of dead workers; has room for all that are open
	done    chan struct{} // closed when open is 0
	open    atomic.Int64  // documents without a result, plus one while more may come
	results chan Result
	window  chan struct{} // how far results may be ahead of the first that is missing

	mu     sync.Mutex // guards what follows
	stats  Stats
	inARow int // deaths since the last reply
}

// Run sends each of the documents to a worker and returns a single-use iterator over their results.
// An error of the documents ends the scan, as does the end of ctx; it comes last, with a zero
// result. All workers have ended when the iterator has.
func Run(ctx context.Context, documents iter.Seq2[Document, error], work Work,
	opts Options) iter.Seq2[Result, error] {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Depth <= 0 {
		opts.Depth = DefaultDepth
	}
	if opts.MaxReply <= 0 {
		opts.MaxReply = DefaultMaxReply
	}
	return func(yield func(Result, error) bool) {
		open := 16 * opts.Workers * opts.Depth
		r := &run{opts: opts, do: work, fresh: make(chan *job), again: make(chan *job, open),
			done: make(chan struct{}), results: make(chan Result), window: make(chan struct{}, open)}
		r.ctx, r.stop = context.WithCancelCause(ctx)
		var all sync.WaitGroup
		r.open.Add(1)
		all.Go(func() { r.feed(documents) })
		for range opts.Workers {
			all.Go(r.work)
		}
		go func() {
			all.Wait()
			close(r.results)
		}()
		wanted := r.deliver(yield)
		r.stop(errEnded)
		for range r.results { // until all have ended
		}
		if err := context.Cause(r.ctx); wanted && err != errEnded {
			yield(Result{}, err)
		}
	}
}

// feed turns documents into jobs.
func (r *run) feed(documents iter.Seq2[Document, error]) {
	defer r.close()
	number := int64(0)
	for doc, err := range documents {
		if err != nil {
			r.stop(err)
			return
		}
		select {
		case r.window <- struct{}{}:
		case <-r.ctx.Done():
			return
		}
		j := &job{number: number, doc: doc}
		number++
		r.open.Add(1)
		if doc.Err != nil {
			r.finish(j, nil, doc.Err)
			continue
		}
		j.doc.Meta = append([]byte(nil), doc.Meta...)
		j.doc.Data = append([]byte(nil), doc.Data...)
		select {
		case r.fresh <- j:
		case <-r.ctx.Done():
			r.close()
			return
		}
	}
}

// close notes that one is less open.
func (r *run) close() {
	if r.open.Add(-1) == 0 {
		close(r.done)
	}
}

// next waits for a job. It is nil when there will be none, or ctx has ended. Those of dead workers
// come first, so that nothing is held for long.
func (r *run) next(ctx context.Context) *job {
	select {
	case j := <-r.again:
		return j
	default:
	}
	select {
	case j := <-r.again:
		return j
	case j := <-r.fresh:
		return j
	case <-r.done:
	case <-ctx.Done():
	}
	return nil
}

// finish ends a job.
func (r *run) finish(j *job, out []byte, err error) {
	select {
	case r.results <- Result{j.number, j.doc.Value, out, err}:
	case <-r.ctx.Done():
	}
	r.close()
}

// deliver hands results over, in order if that is wanted, and tells whether all were taken.
func (r *run) deliver(yield func(Result, error) bool) bool {
	waiting, next := map[int64]Result{}, int64(0)
	for result := range r.results {
		if !r.opts.Ordered {
			if !r.hand(result, yield) {
				return false
			}
			continue
		}
		waiting[result.Number] = result
		for {
			result, ok := waiting[next]
			if !ok {
				break
			}
			delete(waiting, next)
			next++
			if !r.hand(result, yield) {
				return false
			}
		}
	}
	return true
}

// hand gives one result to the caller, and makes room in the window for one more document: by that,
// who does not take results keeps documents from being read.
func (r *run) hand(result Result, yield func(Result, error) bool) bool {
	<-r.window
	if !yield(result, nil) {
		return false
	}
	stats := r.count(func(s *Stats) {
		s.Results++
		if result.Err != nil {
			s.Failed++
		}
		if errors.Is(result.Err, ErrSkipped) {
			s.Skipped++
		}
	})
	if r.opts.Progress != nil {
		r.opts.Progress(stats)
	}
	return true
}

// count changes the statistics, and returns them as they are then.
func (r *run) count(change func(*Stats)) Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.stats)
	return r.stats
}

// died notes a death, and gives up if there are too many in a row.
func (r *run) died(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Deaths++
	if r.inARow++; r.inARow >= maxDeaths*r.opts.Workers {
		r.stop(fmt.Errorf("%w: %w", ErrWorkers, why))
	}
}

// replied notes that at least one worker is of use, whatever the documents do to the others.
func (r *run) replied() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inARow = 0
}
