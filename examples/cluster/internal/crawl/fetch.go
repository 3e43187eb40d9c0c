package crawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/scheduler"
)

// What the workers wait for before they send links that fill no message: others may add to it.
const linger = 5 * time.Millisecond

// A fetcher is one partition of fetch while this process owns it.
//
// Its reader takes messages from the stream as long as there is room for their items, and hands
// them to the scheduler. A worker gets a lease, fetches, stores and parses, and then waits until
// the links are with the broker and the item is noted as done, before it takes the next lease. So
// if the process is killed, no more items are fetched again than there are workers.
type fetcher struct {
	*Worker
	claim   engine.Claim
	keeper  *engine.Keeper
	queue   *scheduler.Scheduler[task]
	out     *outbox
	started time.Time
	slow    map[string]time.Time // when hosts that ask for a longer delay may first be visited
	loads   *loads

	mu     sync.Mutex
	window window
	room   chan struct{} // gets a value when there may be room for more items

	done     chan result
	kept     atomic.Uint64    // messages up to this one are done for good
	doneSize atomic.Int64     // bytes of what was last kept of the window
	full     atomic.Bool      // the stream is nearly full: no links are sent for a while
	counts   map[string]int64 // fates, and links that were not followed; under mu
}

// A task is an item of a message. It counts as work of the address at which it was queued.
type task struct {
	seq   uint64
	place int
	item  message.Item
}

// A result says that a task is done, or with an empty fate, that a message without tasks was read.
type result struct {
	task task
	fate stage.Fate
	kept chan<- error // nil if nobody waits

	// What the scheduler has learned from it that must not be lost; nil if nothing.
	learned []scheduler.Entry
}

// fetch runs a partition.
func (w *Worker) fetch(ctx context.Context, c engine.Claim) error {
	f := &fetcher{
		Worker: w, claim: c, started: time.Now(), slow: map[string]time.Time{},
		room: make(chan struct{}, 1), done: make(chan result, w.opts.Workers+1),
		counts: map[string]int64{}, loads: newLoads(w.opts.Ahead),
	}
	if err := f.restore(ctx); err != nil {
		return err
	}
	return f.run(ctx)
}

// restore takes up what the last owner has left. Where and when it was last is not known, so each
// host and address counts as visited now; see scheduler.Restore.
func (f *fetcher) restore(ctx context.Context) (err error) {
	if f.keeper, err = engine.Keep(ctx, f.States, f.claim); err != nil {
		return err
	}
	root := &f.keeper.Root
	var marks message.Marks
	if root.Marks != nil {
		if marks, err = message.DecodeMarks(string(root.Marks)); err != nil {
			return err
		}
	}
	level, err := f.Bus.LevelFrom(ctx, f.claim.Module, f.claim.Part, root.Seq)
	if err != nil {
		return err
	}
	// If the broker has lost its disk it counts anew. Which items are done says nothing then: other
	// messages will have the same places.
	if level.Last < root.Seq {
		root.Seq, root.Extra = level.Last, nil
	}
	extra, err := decodeExtra(root.Extra)
	if err != nil {
		return err
	}
	if err := f.window.restore(root.Seq, marks, extra.done); err != nil {
		return err
	}
	maps.Copy(f.counts, root.Counts)
	f.queue = scheduler.New[task](f.politeness())
	if f.claim.Epoch > 1 {
		if err := f.remember(ctx, extra); err != nil {
			return err
		}
	}
	f.out = newOutbox(f.Bus, f.claim)
	return nil
}

// remember tells the scheduler what the last owner had learned.
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
	// Whatever else is known, each host and address counts as visited.
	if err := f.queue.Restore(scheduler.Entry{}, f.started); err != nil {
		return fmt.Errorf("crawl: state of fetch: %w", err)
	}
	err := f.keeper.Load(ctx, restore)
	for _, part := range [][]byte{e.scheduler, e.recent} {
		if err == nil && part != nil {
			err = restore(part)
		}
	}
	return err
}

// politeness turns the crawl's options into those of the scheduler. A negative delay is for webs
// that nobody minds, so that nothing else slows a host down either.
func (f *fetcher) politeness() scheduler.Options {
	o := scheduler.Options{HostDelay: f.Delay, Backoff: f.Backoff, MaxQueue: -1}
	if f.Delay < 0 {
		o.LatencyFactor, o.Backoff = -1, -1
	}
	return o
}

// run works until the claim is given up or lost.
//
// The order in which it ends matters. First nothing new is taken. Then the workers finish what they
// are at, for which the pipes and the committer must still run. The committer ends when nobody can
// have anything for it any more, and the pipes last.
func (f *fetcher) run(ctx context.Context) error {
	defer f.out.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	taking, stopTaking := context.WithCancel(ctx) // of messages and leases
	defer stopTaking()
	// An empty queue is no end: the next message may come at any time.
	defer f.queue.Producer()()

	// A worker that cannot go on, for example because the disk is full, ends the partition in good
	// order: what servers have answered to the others must still be kept.
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

// read hands the items of the stream to the scheduler, as long as there is room for them.
func (f *fetcher) read(ctx context.Context) error {
	reader := f.Bus.Read(f.claim.Module, f.claim.Part, f.window.low+1)
	defer reader.Stop()
	for {
		if !f.waitForRoom(ctx) {
			return nil
		}
		d, err := reader.Next(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		m, err := message.Decode(d.Data)
		if err != nil {
			m = message.Message{} // nobody can read it, ever
		}
		f.mu.Lock()
		places, err := f.window.add(d.Seq, &m)
		f.mu.Unlock()
		if err != nil {
			return err
		}
		var late []task
		for _, place := range places {
			t := task{d.Seq, place, m.Items[place]}
			until, err := f.enqueue(t)
			if err != nil {
				return err
			}
			if !until.IsZero() {
				t.item.Due = until
				late = append(late, t)
			}
		}
		if !f.putOff(ctx, late) {
			return nil
		}
		// No worker will say that such a message is done, and the state should not stop in front of it.
		if len(places) == 0 {
			select {
			case f.done <- result{}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// maxDone is how much may be kept of the window for new messages to be read. Those that were read
// may still become half done, which takes 12 bytes for each two of maxWindow items: with them, all
// that is kept of a partition stays below what a message of the broker may have.
const (
	maxDone   = 128 << 10
	maxWindow = 1 << 16
)

// waitForRoom returns when the window has room for one more message, which may make it larger than
// it should be by the items of that message. It reports whether ctx still holds.
func (f *fetcher) waitForRoom(ctx context.Context) bool {
	for ctx.Err() == nil {
		f.mu.Lock()
		// A new owner whose predecessor had reached maxDone reads on: low moves only behind messages
		// that were read.
		small := f.doneSize.Load() < maxDone || f.window.rereading()
		open := f.window.open
		f.mu.Unlock()
		if small && open < f.opts.Window {
			return true
		}
		select {
		case <-f.room:
		case <-ctx.Done():
		}
	}
	return false
}

// maxSlow bounds how many hosts are remembered that ask for a longer delay.
const maxSlow = 100_000

// delay returns the delay of an item's host: that of the crawl, of its robots.txt, or of the
// operator, whichever is the longest.
func (f *fetcher) delay(host string, it message.Item) time.Duration {
	return max(f.Delay, it.Delay, f.word.Load().Delays[host])
}

// enqueue hands a task to the scheduler. If its host or address has enough to do, it returns the
// time to which the task is to be put off instead.
//
// That a host asks for a longer delay than others is not known before its robots.txt was fetched,
// here or by the last owner. By now the scheduler may have forgotten when that was, so the first
// visit waits for the whole delay.
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
	t.item = t.item.Clone()
	work.Item = t
	f.queue.SetHost(host, scheduler.Host{Addr: t.item.Addr})
	if delay > f.Delay {
		from, known := f.slow[host]
		if !known {
			if len(f.slow) >= maxSlow {
				clear(f.slow) // a host that is forgotten waits once more
			}
			from = time.Now().Add(delay)
			f.slow[strings.Clone(host)] = from
		}
		f.queue.SetHost(host, scheduler.Host{Delay: delay})
		work.NotBefore = from
	}
	if err := f.queue.Add(work); err != nil {
		return time.Time{}, fmt.Errorf("crawl: queue %s: %w", t.item.URL, err)
	}
	return time.Time{}, nil
}

// putOff sends tasks back to where they are planned, each until its item's Due. It reports whether
// the partition is still this process's.
func (f *fetcher) putOff(ctx context.Context, late []task) bool {
	if len(late) == 0 {
		return true
	}
	touched := map[address]struct{}{}
	err := f.pass(ctx, touched, func() error {
		for _, t := range late {
			due := t.item.Due.UTC().Truncate(time.Second).Add(time.Second)
			it, _ := report(t.item, stateOf(t.item), due) // true, as it is due
			if err := f.plan(ctx, it, touched); err != nil {
				return err
			}
		}
		return nil
	})
	for _, t := range late {
		if err != nil {
			return false
		}
		select {
		case f.done <- result{task: t, fate: putOff}:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// obey applies what the operator says about hosts to those that are queued already.
func (f *fetcher) obey(ctx context.Context) {
	for ctx.Err() == nil {
		word := f.word.Load()
		for host, delay := range word.Delays {
			f.queue.SetHost(host, scheduler.Host{Delay: delay})
		}
		select {
		case <-word.changed:
		case <-ctx.Done():
		}
	}
}

// Levels of a stream at which links are no longer sent, and are sent again. What is on its way
// through the other modules still has to find room.
const (
	levelFull = 0.9
	levelRoom = 0.85
	tendEvery = 200 * time.Millisecond
)

// tend lets the stream forget what is done, and notes when the stream, which is this partition's
// share of the frontier, is nearly full. As links are spread evenly, the others are too. Links that
// are found then are counted and not followed: a worker that waited with them would hold up the
// very fetches that make room.
func (f *fetcher) tend(ctx context.Context) {
	for forgot := uint64(0); ctx.Err() == nil; {
		if kept := f.kept.Load(); kept > forgot {
			if f.Bus.Forget(ctx, f.claim.Module, f.claim.Part, kept) == nil {
				forgot = kept
			}
		}
		if level, err := f.Bus.Level(ctx, f.claim.Module, f.claim.Part); err == nil {
			switch {
			case level.Share > levelFull:
				f.full.Store(true)
			case level.Share < levelRoom:
				f.full.Store(false)
			}
		}
		select {
		case <-time.After(tendEvery):
		case <-ctx.Done():
		}
	}
}

// work does tasks until taking ends, or ctx, or the partition cannot go on.
func (f *fetcher) work(ctx, taking context.Context) error {
	for f.unpaused(taking) && f.uplink.Wait(taking) {
		lease, err := f.queue.Next(taking)
		if err != nil {
			return nil
		}
		if f.word.Load().Paused { // it was said while this worker waited
			lease.Requeue(scheduler.Outcome{Skipped: true}, time.Time{})
			continue
		}
		done, err := f.do(ctx, lease)
		switch {
		case errors.Is(err, errAbandoned):
			return nil
		case err != nil:
			return err
		case !done:
			return nil // the committer says why
		}
	}
	return nil
}

// do does the task of a lease. It returns when what came of it is kept, and reports whether the
// worker can go on.
func (f *fetcher) do(ctx context.Context, lease *scheduler.Lease[task]) (goOn bool, err error) {
	t := lease.Item()
	begun := time.Now()
	v := f.visit(ctx, t.item)
	f.claim.Worked(time.Since(begun))
	f.opts.Log.Debug("visit", "url", t.item.URL, "fate", v.fate, "took", time.Since(begun))
	if v.requeue {
		lease.Requeue(v.outcome, v.notBefore)
	} else {
		// The delays run from the request, so the host need not wait until the broker has answered.
		lease.Done(v.outcome)
	}
	r := result{task: t, fate: v.fate, learned: learned(lease.Host(), t.item.Addr, v.outcome)}
	if v.err != nil {
		// The next owner fetches this again, but not before the server permits it.
		if r.fate = ""; r.learned != nil && !errors.Is(v.err, errAbandoned) {
			f.keep(ctx, r)
		}
		return false, v.err
	}
	if v.requeue {
		r.fate = ""
		if r.learned == nil {
			return true, nil
		}
	} else if t.item.Kind != message.Rules {
		f.loads.done(lease.Host(), t.item.Addr, time.Now())
	}
	return f.keep(ctx, r), nil
}

// keep hands a result to the committer and reports whether it is kept.
func (f *fetcher) keep(ctx context.Context, r result) bool {
	kept := make(chan error, 1)
	r.kept = kept
	select {
	case f.done <- r:
	case <-ctx.Done():
		return false
	}
	select {
	case err := <-kept:
		return err == nil
	case <-ctx.Done():
		return false
	}
}
