package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/scheduler"
)

// A fetcher is one partition of fetch while this process owns it.
//
// Its reader takes messages from the stream while there is room for their items, and hands the
// items to the scheduler. A worker gets a lease, fetches, stores and parses, and takes the next one.
// The results are committed together with the links, once a second. So if the process is killed, the
// pages of its last second are fetched again.
type fetcher struct {
	*Worker
	claim   engine.Claim
	keeper  *engine.Keeper
	queue   *scheduler.Scheduler[task]
	out     engine.Outbox
	recent  *dedupe.Filter // links that were sent: most links of a site are on all of its pages
	started time.Time
	slow    map[string]time.Time // hosts with a longer delay, and when they may first be visited
	loads   *loads

	mu     sync.Mutex
	window window
	lag    uint64        // messages that were not read, as far as it is known; under mu
	room   chan struct{} // gets a value when there may be room for more items

	done      chan result
	overdue   atomic.Bool      // a commit takes long: the brokers may be out of reach
	committed atomic.Uint64    // messages up to this one are committed
	doneSize  atomic.Int64     // bytes of the window when it was last committed
	counts    map[string]int64 // fates, and links that were not followed; under mu
}

// A task is an item of a message. It counts toward the load of the address at which it was queued.
type task struct {
	seq   uint64
	place int
	item  message.Item
}

// A result reports a finished task or, with an empty fate, a message without tasks.
type result struct {
	task      task
	fate      stage.Fate
	items     []sending    // that follow from it
	committed chan<- error // nil if no worker waits

	// What the scheduler has learned from it and must not lose; nil if nothing.
	learned []scheduler.Entry
}

// A sending is an item for a partition.
type sending struct {
	message.Dest
	item message.Item
}

// recentLinks remembers 100,000 links in 0.9 MB. A forgotten link is sent again, and dedupe drops it.
// At most one of a billion new links is taken for an old one, and no site can choose which.
var recentLinks = dedupe.Options{Capacity: 100_000, Rate: 1e-9, Generations: 2}

// fetch runs a partition.
func (w *Worker) fetch(ctx context.Context, c engine.Claim) error {
	f := &fetcher{
		Worker: w, claim: c, started: time.Now(), slow: map[string]time.Time{},
		room: make(chan struct{}, 1), done: make(chan result, w.opts.Workers+1),
		counts: map[string]int64{}, loads: newLoads(w.opts.Ahead), recent: dedupe.New(recentLinks),
	}
	if err := f.restore(ctx); err != nil {
		return err
	}
	return f.run(ctx)
}

// restore loads the state that the previous owner has committed. Its last visits are unknown, so
// each host and address counts as visited now; see scheduler.Restore.
func (f *fetcher) restore(ctx context.Context) (err error) {
	if f.keeper, err = engine.Keep(ctx, f.Bus, f.States, f.claim); err != nil {
		return err
	}
	root := &f.keeper.Root
	var extra extra
	if root.Extra != nil {
		err = json.Unmarshal(root.Extra, &extra)
	}
	if err == nil {
		err = f.window.restore(root.Seq, extra.Done)
	}
	if err != nil {
		return &engine.StateError{Of: f.claim.Dest, Err: err}
	}
	maps.Copy(f.counts, root.Counts)
	f.queue = scheduler.New[task](f.politeness())
	if f.claim.Epoch > 1 {
		if err := f.remember(ctx, extra); err != nil {
			return err
		}
	}
	behind, err := f.keeper.Behind(ctx)
	if behind {
		f.lag = 1 // at least
	}
	return err
}

// remember gives the scheduler what the previous owner had learned.
func (f *fetcher) remember(ctx context.Context, e extra) error {
	restore := func(data []byte) error {
		for entry, err := range stage.Entries[scheduler.Entry](data) {
			if err == nil {
				err = f.queue.Restore(entry, f.started)
			}
			if err != nil {
				return fmt.Errorf("crawl: state of fetch: %w", err)
			}
		}
		return nil
	}
	// In any case each host and address counts as visited.
	if err := f.queue.Restore(scheduler.Entry{}, f.started); err != nil {
		return fmt.Errorf("crawl: state of fetch: %w", err)
	}
	if err := f.keeper.Load(ctx, restore); err != nil || e.Recent == nil {
		return err
	}
	return restore(e.Recent)
}

// politeness converts the crawl's options into those of the scheduler. A negative delay is for test
// webs, so nothing else slows a host down either.
func (f *fetcher) politeness() scheduler.Options {
	o := scheduler.Options{HostDelay: f.Delay, Backoff: f.Backoff, MaxQueue: -1}
	if f.Delay < 0 {
		o.LatencyFactor, o.Backoff = -1, -1
	}
	return o
}

// run works until the claim is released or lost.
//
// The order of shutdown matters. First run takes no new tasks. Then the workers finish their
// current ones, which still needs the committer. The committer ends when no more results can come.
func (f *fetcher) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	taking, stopTaking := context.WithCancel(ctx) // of messages and leases
	defer stopTaking()
	// An empty queue does not end the crawl: the next message may come at any time.
	defer f.queue.Producer()()

	// A worker that cannot continue, for example because the disk is full, ends the partition in an
	// orderly way: the responses that other workers got must still be stored.
	failed := make(chan error, f.opts.Workers)

	var readers, workers, committer sync.WaitGroup
	readers.Go(func() {
		if err := f.read(taking); err != nil {
			cancel(err)
		}
	})
	readers.Go(func() { f.tend(taking) })
	readers.Go(func() { f.obey(taking) })
	for range f.opts.Workers {
		workers.Go(func() {
			if err := f.work(ctx, taking); err != nil {
				failed <- err
				stopTaking()
			}
		})
	}
	committer.Go(func() {
		if err := f.commitAll(ctx); err != nil {
			cancel(err)
		}
	})
	select {
	case <-taking.Done():
	case <-f.claim.Quit:
	}
	stopTaking()
	readers.Wait()
	workers.Wait()
	close(f.done)
	committer.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return context.Cause(ctx)
	}
}

// read hands the items of the stream to the scheduler while there is room for them.
func (f *fetcher) read(ctx context.Context) error {
	reader := f.Bus.Read(f.claim.Dest, f.window.low+1)
	defer reader.Stop()
	for {
		if !f.waitForRoom(ctx) {
			return nil
		}
		d, err := reader.Next(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		items, err := message.Decode(d.Data)
		if err != nil {
			items = nil // it can never be decoded
		}
		f.grown.Store(true)
		f.mu.Lock()
		f.lag = d.Pending
		places, err := f.window.add(d.Seq, len(items))
		f.mu.Unlock()
		if err != nil {
			return err
		}
		var late []task
		for _, place := range places {
			t := task{d.Seq, place, items[place]}
			until, err := f.enqueue(t)
			if err != nil {
				return err
			}
			if !until.IsZero() {
				t.item.Due = until
				late = append(late, t)
			}
		}
		if !f.postpone(ctx, late) {
			return nil
		}
		// No worker finishes such a message, and the state must not stop before it.
		if len(places) == 0 {
			select {
			case f.done <- result{}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// maxDone bounds the encoded window: beyond it no new messages are read. Messages that were read
// may still become half done, which takes 12 bytes for each two of maxWindow items. Together with
// these, the state of a partition stays below the size limit of the broker's messages.
const (
	maxDone   = 128 << 10
	maxWindow = 1 << 16
)

// waitForRoom returns when the window has room for one more message. The items of that message may
// exceed the bound. It reports whether ctx is still active.
func (f *fetcher) waitForRoom(ctx context.Context) bool {
	for ctx.Err() == nil {
		f.mu.Lock()
		// If the previous owner had reached maxDone, the new one still reads on: low only moves
		// past messages that were read.
		small := f.doneSize.Load() < maxDone || f.window.rereading()
		open := f.window.open
		f.mu.Unlock()
		if small && open < f.opts.Window {
			return true
		}
		f.grown.Store(true) // unseen, as nobody reads
		select {
		case <-f.room:
		case <-ctx.Done():
		}
	}
	return false
}

// maxSlow bounds the number of remembered hosts with a longer delay.
const maxSlow = 100_000

// delay returns the delay of an item's host: the longest of those of the crawl, of its robots.txt
// and of the operator.
func (f *fetcher) delay(host string, it message.Item) time.Duration {
	return max(f.Delay, it.Delay, f.settings.Load().Delays[host])
}

// enqueue hands a task to the scheduler. If its host or address has enough tasks, enqueue instead
// returns the time until which to postpone the task.
//
// A longer delay of a host is known only after its robots.txt was fetched, here or by the previous
// owner. By now the scheduler may have forgotten when that was, so the first visit waits for the
// full delay.
func (f *fetcher) enqueue(t task) (until time.Time, err error) {
	host := weburl.Host(t.item.URL)
	work := scheduler.Task[task]{Host: host}
	delay := f.delay(host, t.item)
	if t.item.Kind == message.Rules {
		work.Priority = scheduler.MaxPriority // other items wait for it
	} else {
		now := time.Now()
		until = f.loads.take(host, t.item.Addr, delay, f.Delay, f.queue.Explain(host).Until, now)
		if !until.IsZero() {
			return until, nil
		}
	}
	work.Item = t
	f.queue.SetHost(host, scheduler.Host{Addr: t.item.Addr})
	if delay > f.Delay {
		from, known := f.slow[host]
		if !known {
			if len(f.slow) >= maxSlow {
				clear(f.slow) // a forgotten host waits again
			}
			from = time.Now().Add(delay)
			f.slow[strings.Clone(host)] = from
		}
		f.queue.SetHost(host, scheduler.Host{CrawlDelay: delay})
		work.NotBefore = from
	}
	if err := f.queue.Add(work); err != nil {
		return time.Time{}, fmt.Errorf("crawl: queue %s: %w", t.item.URL, err)
	}
	return time.Time{}, nil
}

// postpone sends tasks back to the plan, each until the Due of its item. It reports whether this
// process still owns the partition.
func (f *fetcher) postpone(ctx context.Context, late []task) bool {
	for _, t := range late {
		due := t.item.Due.UTC().Truncate(time.Second).Add(time.Second)
		it, _ := report(t.item, stateOf(t.item), due) // true, as it is due
		select {
		case f.done <- result{task: t, fate: postponed, items: []sending{f.toDedupe(it)}}:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// toDedupe and toHosts address an item.
func (f *fetcher) toDedupe(it message.Item) sending {
	return sending{message.Dest{To: message.Dedupe, Part: f.urlPart(it.URL)}, it}
}

func (f *fetcher) toHosts(it message.Item, url string) sending {
	return sending{message.Dest{To: message.Hosts, Part: f.partOfHost(url)}, it}
}

// obey applies the operator's settings for hosts to the queued tasks.
func (f *fetcher) obey(ctx context.Context) {
	for ctx.Err() == nil {
		settings := f.settings.Load()
		for host, delay := range settings.Delays {
			f.queue.SetHost(host, scheduler.Host{Delay: delay})
		}
		select {
		case <-settings.changed:
		case <-ctx.Done():
		}
	}
}

// tend removes finished messages from the stream.
func (f *fetcher) tend(ctx context.Context) {
	for forgot := uint64(0); ctx.Err() == nil; {
		if committed := f.committed.Load(); committed > forgot {
			if f.Bus.Forget(ctx, f.claim.Dest, committed) == nil {
				forgot = committed
				f.grown.Store(true) // or shrunk
			}
		}
		select {
		case <-time.After(min(5*f.opts.Every, 5*time.Second)):
		case <-ctx.Done():
		}
	}
}
