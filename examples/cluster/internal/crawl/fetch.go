package crawl

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/scheduler"
)

// A fetcher is one partition of fetch while this process owns it.
//
// It takes messages from the stream while there is room for their items, and hands the items to the
// scheduler. A worker gets a lease, fetches, stores and parses, and takes the next one. The results are
// committed together with the links, once a second. So if the process is killed, the pages of its last
// second are fetched again.
type fetcher struct {
	*Worker
	claim   engine.Claim
	queue   *scheduler.Scheduler[task]
	recent  *dedupe.Filter // links that were sent: most links of a site are on all of its pages
	started time.Time
	slow    map[string]time.Time // hosts with a longer delay, and when they may first be visited
	loads   *loads
	results chan<- engine.Result
	late    atomic.Bool // a commit takes long: the brokers may be out of reach

	// What only the loop of the partition uses: see [engine.State].
	window  window
	learned []scheduler.Entry // since the whole scheduler was saved
	saved   time.Time         // when that was
	due     time.Duration     // until it is saved again
	counts  map[string]int64  // fates, and links that were not followed
}

// A task is an item of a message. It counts toward the load of the address at which it was queued.
type task struct {
	seq   uint64
	place int
	item  message.Item
}

// A sending is an item for a partition.
type sending struct {
	message.Dest
	item message.Item
}

// recentLinks remembers 100,000 links in 0.9 MB. A forgotten link is sent again, and dedupe drops it.
// At most one of a billion new links is taken for an old one, and no site can choose which.
var recentLinks = dedupe.Options{Capacity: 100_000, Rate: 1e-9, Generations: 2}

// newFetcher returns a partition of fetch. The last visits of the previous owner are unknown, so each
// host and address counts as visited now; see scheduler.Restore.
func (w *Worker) newFetcher(c engine.Claim) *fetcher {
	f := &fetcher{
		Worker: w, claim: c, started: time.Now(), slow: map[string]time.Time{}, counts: map[string]int64{},
		loads: newLoads(ahead), recent: dedupe.New(recentLinks),
	}
	f.queue = scheduler.New[task](f.politeness())
	if c.Epoch > 1 {
		_ = f.queue.Restore(scheduler.Entry{}, f.started) // an empty scheduler is not full
	}
	return f
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

// Start starts the workers. If one cannot continue, for example because the disk is full, all of them
// finish: the responses that the others got must still be stored.
func (f *fetcher) Start(ctx context.Context, running *sync.WaitGroup, results chan<- engine.Result) {
	f.results = results
	taking, stop := context.WithCancel(ctx) // of leases
	queued := f.queue.Producer()            // an empty queue does not end the crawl: the next message may come at any time
	var workers sync.WaitGroup
	workers.Go(func() { f.obey(taking) })
	for range f.opts.Workers {
		workers.Go(func() {
			if err := f.work(ctx, taking); err != nil {
				stop()
				f.hand(ctx, engine.Result{Err: err})
			}
		})
	}
	running.Go(func() {
		select {
		case <-taking.Done():
		case <-f.claim.Quit:
		}
		stop()
		workers.Wait()
		queued()
		close(results)
	})
}

// Take hands the items of a message to the scheduler, or those for which there is no room soon back to
// the plan.
func (f *fetcher) Take(seq uint64, at time.Time, items []message.Item, emit engine.Emit) error {
	f.grown.Store(true)
	places, err := f.window.add(seq, len(items))
	if err != nil {
		return err
	}
	// Whatever the clocks say, hosts has just checked them, when the message was accepted.
	fresh := at.Add(min(f.RulesTTL, minTTL))
	for _, place := range places {
		t := task{seq, place, items[place]}
		if !t.item.Until.IsZero() {
			t.item.Until = latest(t.item.Until, fresh)
		}
		until, err := f.enqueue(t)
		if err != nil {
			return err
		}
		if until.IsZero() {
			continue
		}
		it, _ := report(t.item, stateOf(t.item), until.UTC().Truncate(time.Second).Add(time.Second)) // true, as it is due
		emit(message.Dedupe, f.urlPart(it.URL), it)
		f.window.finish(seq, place)
		f.counts[string(postponed)]++
	}
	return nil
}

// Full reports whether the window has no room for one more message, whose items may exceed the bound.
func (f *fetcher) Full() bool {
	if f.window.open < f.opts.Window {
		return false
	}
	f.grown.Store(true) // unseen, as nobody reads
	return true
}

// Late tells the workers whether a commit takes long.
func (f *fetcher) Late(late bool) { f.late.Store(late) }

// Apply is unused, as Take is called instead.
func (f *fetcher) Apply(message.Item, time.Time, engine.Emit) {}

// Wants returns nothing: the partition has no questions.
func (f *fetcher) Wants() []string { return nil }

// Open returns how many items are not done.
func (f *fetcher) Open() int { return f.window.open }

// Counts returns the fates of items, and of links that were not followed.
func (f *fetcher) Counts() map[string]int64 { return f.counts }

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
	asked := t.item.Delay
	if asked <= f.Delay {
		asked = 0 // another server of the host may ask for more
	}
	for settings := (*followed)(nil); settings != f.settings.Load(); { // lest obey comes in between
		settings = f.settings.Load()
		f.queue.SetHost(host, scheduler.Host{Addr: t.item.Addr, Delay: settings.Delays[host], CrawlDelay: asked})
	}
	if delay > f.Delay {
		from, known := f.slow[host]
		if !known {
			if len(f.slow) >= maxSlow {
				clear(f.slow) // a forgotten host waits again
			}
			from = time.Now().Add(delay)
			f.slow[strings.Clone(host)] = from
		}
		work.NotBefore = from
	}
	if err := f.queue.Add(work); err != nil {
		return time.Time{}, fmt.Errorf("crawl: queue %s: %w", t.item.URL, err)
	}
	return time.Time{}, nil
}

// toDedupe and toHosts address an item.
func (f *fetcher) toDedupe(it message.Item) sending {
	return sending{message.Dest{To: message.Dedupe, Part: f.urlPart(it.URL)}, it}
}

func (f *fetcher) toHosts(it message.Item, url string) sending {
	return sending{message.Dest{To: message.Hosts, Part: f.partOfHost(url)}, it}
}

// obey applies the operator's settings for hosts to the queued tasks. A delay of zero cancels an earlier one,
// which the previous owner may have stored.
func (f *fetcher) obey(ctx context.Context) {
	for ctx.Err() == nil {
		settings := f.settings.Load()
		for host, delay := range settings.Delays {
			f.queue.SetHost(host, scheduler.Host{Delay: cmp.Or(delay, -1)})
		}
		select {
		case <-settings.changed:
		case <-ctx.Done():
		}
	}
}
