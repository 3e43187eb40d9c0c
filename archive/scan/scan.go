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

// Errors of a [Result] or a scan.
var (
	// ErrSkipped is wrapped by the error for a document that killed its worker twice.
	ErrSkipped = errors.New("scan: document skipped")

	// ErrFailed is wrapped by errors that a worker reports.
	ErrFailed = errors.New("scan: worker reports")

	// ErrWorkers ends a scan whose workers keep dying without a single reply, which cannot be the
	// fault of single documents.
	ErrWorkers = errors.New("scan: workers keep dying")
)

// errEnded stops a scan after its last result, or when the caller stops taking results.
var errEnded = errors.New("scan: ended")

// Defaults of [Options].
const (
	defaultDepth    = 2
	defaultMaxReply = 64 << 20
)

// maxDeaths times the number of workers is the number of deaths in a row that ends a scan.
const maxDeaths = 20

// Options configures a scan. The zero Options is the recommendation.
type Options struct {
	// Workers is the number of workers. 0 means one per GOMAXPROCS.
	Workers int

	// Depth is the maximum number of documents in flight per worker: the current one and those
	// queued in its input. 0 means 2. 1 means that a worker waits for each document.
	Depth int

	// RestartAfter is the number of documents after which a worker is replaced. 0 means never.
	RestartAfter int

	// Timeout is how long a worker may take for one document before it counts as dead. 0 means no
	// limit.
	Timeout time.Duration

	// MaxReply bounds the bytes of one reply of a child process. 0 means 64 MiB.
	MaxReply int

	// Ordered returns results in the order of the documents, so results wait for slower ones before
	// them. false means in the order of completion.
	Ordered bool

	// Progress is called after each result, from the goroutine that iterates over the results. nil
	// means no calls.
	Progress func(Stats)
}

// Work is a kind of worker: see [Filter], [Command] and [Func]. Its zero value is not
// valid.
type Work struct {
	start func(o Options) (worker, error)
}

// Document is the input of a worker. Its slices are copied.
type Document struct {
	// Meta and Data are sent to the worker.
	Meta, Data []byte

	// Value is passed to functions and to the result. Child processes do not receive it.
	Value any

	// Decode converts Data into the input of a [Filter]. nil means that it reads Data.
	Decode func(data []byte) ([]byte, error)

	// Err, if not nil, becomes the error of the result, and the document is not sent. nil means
	// that it is sent.
	Err error
}

// Result is the result of a document.
type Result struct {
	// Number is the index of the document, from 0.
	Number int64

	// Value is the document's Value, and Out the worker's reply.
	Value any
	Out   []byte

	// Err is nil, or wraps ErrFailed, ErrSkipped or the document's own Err.
	Err error
}

// Stats is the progress of a scan.
type Stats struct {
	Results int64 // received
	Failed  int64 // results with an Err
	Deaths  int64 // of workers
}

// job is a document in flight. It is kept until its result arrives.
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
	again   chan *job     // from dead workers; has room for all open ones
	done    chan struct{} // closed when open is 0
	open    atomic.Int64  // documents without a result, plus one while more may come
	results chan Result
	window  chan struct{} // bounds the documents without a delivered result

	mu     sync.Mutex // guards what follows
	stats  Stats
	inARow int // deaths since the last reply
}

// Run sends each of the documents to a worker and returns a single-use iterator over their results.
// An error of the documents ends the scan, as does the end of ctx; it comes last, with a zero
// result. All workers have ended when the iterator ends.
func Run(ctx context.Context, documents iter.Seq2[Document, error], work Work,
	opts Options) iter.Seq2[Result, error] {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Depth <= 0 {
		opts.Depth = defaultDepth
	}
	if opts.MaxReply <= 0 {
		opts.MaxReply = defaultMaxReply
	}
	return func(yield func(Result, error) bool) {
		open := 16 * opts.Workers * opts.Depth
		r := &run{opts: opts, do: work, fresh: make(chan *job), again: make(chan *job, open),
			done: make(chan struct{}), results: make(chan Result),
			window: make(chan struct{}, open)}
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
		defer r.end() // even if the caller's code panics
		wanted := r.deliver(yield)
		r.end()
		if err := context.Cause(r.ctx); wanted && err != errEnded {
			yield(Result{}, err)
		}
	}
}

// end stops the scan, and waits until all workers have ended. It may be called again.
func (r *run) end() {
	r.stop(errEnded)
	for range r.results { // until it is closed
	}
}

// feed sends documents as jobs to the workers.
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

// close decrements open.
func (r *run) close() {
	if r.open.Add(-1) == 0 {
		close(r.done)
	}
}

// next waits for a job. It returns nil if there will be none, or if ctx has ended. Jobs of dead
// workers come first, so that none waits for long.
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

// finish sends the result of a job.
func (r *run) finish(j *job, out []byte, err error) {
	select {
	case r.results <- Result{j.number, j.doc.Value, out, err}:
	case <-r.ctx.Done():
	}
	r.close()
}

// deliver yields the results, in order if Ordered is set, and reports whether all were taken.
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

// hand yields one result and makes room in the window for another document. So a caller that does
// not take results stops the reading of documents.
func (r *run) hand(result Result, yield func(Result, error) bool) bool {
	<-r.window
	if !yield(result, nil) {
		return false
	}
	r.mu.Lock()
	r.stats.Results++
	if result.Err != nil {
		r.stats.Failed++
	}
	stats := r.stats
	r.mu.Unlock()
	if r.opts.Progress != nil {
		r.opts.Progress(stats)
	}
	return true
}

// died counts a death, and stops the scan if there are too many in a row.
func (r *run) died(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Deaths++
	if r.inARow++; r.inARow >= maxDeaths*r.opts.Workers {
		r.stop(fmt.Errorf("%w: %w", ErrWorkers, why))
	}
}

// replied resets the count of deaths in a row, because a worker is alive.
func (r *run) replied() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inARow = 0
}
