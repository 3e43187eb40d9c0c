package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A State is a partition of a module that consists only of state. Its methods are called by one
// goroutine at a time.
type State interface {
	// Apply processes one item. Resulting items go to emit.
	Apply(it message.Item, at time.Time, emit Emit)
	// Wants returns the questions that came up since the last call or, after Load, all open ones.
	Wants() []string
	// Open returns the number of items that wait for an answer.
	Open() int
	// Changes returns the changes since the last call, or with all the whole state, in chunks of
	// about that many bytes. Later chunks override earlier ones.
	Changes(all bool, size int) [][]byte
	// Load loads one chunk.
	Load(chunk []byte) error
	// Counts returns counts for operators. The map belongs to the state; a new owner puts the
	// counts of the previous one into it.
	Counts() map[string]int64
}

// A Timed state also has tasks that become due.
type Timed interface {
	State
	// Advance performs the tasks that are due at a time.
	Advance(at time.Time, emit Emit)
	// Next returns when the next task is due, or the zero time if there is none.
	Next() time.Time
}

// A Busy state works on its items in goroutines of its own, and finishes them in any order.
type Busy interface {
	State
	// Resume continues where the previous owner was; see Progress.
	Resume(seq uint64, more json.RawMessage) error
	// Start starts the work. It ends with ctx, and in an orderly way once the claim's Quit is closed or
	// it cannot go on; then results is closed. All its goroutines are in running.
	Start(ctx context.Context, running *sync.WaitGroup, results chan<- Result)
	// Take takes a message, instead of Apply.
	Take(seq uint64, at time.Time, items []message.Item, emit Emit) error
	// Full reports whether no more messages are to be taken at present.
	Full() bool
	// Late tells whether a commit takes long: the brokers may be out of reach.
	Late(late bool)
	// Progress returns the sequence up to which all messages are done, and what is to be stored with it.
	Progress() (seq uint64, more any)
	// Rewrite reports whether the whole state is to be stored again.
	Rewrite() bool
}

// A Result is something that was finished beside the loop of a partition, which applies it.
type Result struct {
	Apply     func(emit Emit) // nil if there is only an error
	Committed chan<- struct{} // closed when the result is stored; nil means that nobody waits for that
	Err       error           // why the work ends
}

// Emit sends an item on to a partition of a module.
type Emit func(to message.Module, part int, it message.Item)

// FoldOptions are the options of a [Fold].
type FoldOptions struct {
	// Bus has the streams. It is required; nil means none.
	Bus *jet.Bus
	// States stores the states. It is required; nil means none.
	States *jet.Table
	// Post commits the states and what they emit. It is required; nil means none.
	Post *Post
	// New returns an empty state, which may be a Timed or a Busy one. It is required; nil means none.
	New func(c Claim) State
	// Ask answers the questions of a State. It is called for all of them at the same time, so it
	// bounds its work itself. nil means that a State has no questions.
	Ask func(ctx context.Context, want string) message.Item
	// Room reports whether the crawl has room for the due tasks of a partition. nil means that it
	// always has.
	Room func(ctx context.Context, part int) bool
}

// DefaultEvery is how long a change waits to be committed. A killed process repeats what it has done
// in that time.
const DefaultEvery = time.Second

const (
	timedEvery = 200 * time.Millisecond // the interval at which a Timed state is told the time
	minChanges = 64                     // fewer chunks of changes never cause a rewrite of the state
	deliveries = 256
	purgeEvery = 5 * time.Second // the interval at which read messages are removed
)

// Fold returns a runner that folds the messages to a partition into its state.
func Fold(o FoldOptions) Runner {
	return func(ctx context.Context, c Claim) error {
		// Without a buffer: what waits there could be lost and repeated, and nobody would see it.
		f := &fold{FoldOptions: o, claim: c, results: make(chan Result)}
		return f.run(ctx)
	}
}

// A fold is one partition while this process owns it.
type fold struct {
	FoldOptions
	claim  Claim
	keeper *Keeper
	state  State
	busy   Busy // the state if it is one, otherwise nil
	out    Outbox

	seq    uint64    // of the last applied message
	lag    uint64    // messages after it, as far as it is known
	dirty  bool      // there is a change that is not committed
	ticked time.Time // when a Timed state was last told the time
	stored uint64    // of the last message that is part of the stored state
	forgot uint64    // of the last one that was removed
	purged time.Time // when that was
	whole  int       // chunks of the whole state when this owner wrote it; 0 before

	results chan Result       // nil after the end of the work of a Busy state
	waiting []chan<- struct{} // for the results applied since the last checkpoint
	failed  error             // why the work has ended
	// What is being committed: the result, the last message, the chunks that it makes unused, and who
	// waits for it.
	pending <-chan error // nil if nothing is
	missed  bool         // a tick has come meanwhile
	sent    uint64
	old     []Chunk
	asked   []chan<- struct{}
}

func (f *fold) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := f.restore(ctx); err != nil {
		return err
	}
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	// Reading runs ahead of applying, so that the network and the state do not wait for each other. The
	// items of a Busy state take long, and are read only when there is room for them.
	ahead := deliveries
	if f.busy != nil {
		ahead = 0
		f.busy.Start(ctx, &background, f.results)
	}
	incoming := make(chan jet.Delivery, ahead)
	reader := f.Bus.Read(f.claim.Dest, f.seq+1)
	background.Go(func() {
		defer reader.Stop()
		for {
			d, err := reader.Next(ctx)
			if err != nil {
				return
			}
			select {
			case incoming <- d:
			case <-ctx.Done():
				return
			}
		}
	})
	return f.loop(ctx, incoming, &background)
}

// restore loads the state of the previous owner.
func (f *fold) restore(ctx context.Context) (err error) {
	if f.keeper, err = Keep(ctx, f.Bus, f.States, f.claim); err != nil {
		return err
	}
	f.state = f.New(f.claim)
	if err := f.keeper.Load(ctx, f.state.Load); err != nil {
		return err
	}
	maps.Copy(f.state.Counts(), f.keeper.Root.Counts)
	f.seq = f.keeper.Root.Seq
	if f.busy, _ = f.state.(Busy); f.busy != nil {
		if err := f.keeper.unreadable(ctx, f.busy.Resume(f.seq, f.keeper.Root.Extra)); err != nil {
			return err
		}
	}
	behind, err := f.keeper.Behind(ctx)
	if behind {
		f.lag = 1 // at least
	}
	return err
}

func (f *fold) loop(
	ctx context.Context, incoming <-chan jet.Delivery, background *sync.WaitGroup,
) error {
	ticks := time.NewTicker(timedEvery)
	defer ticks.Stop()
	quit, due := f.claim.Quit, f.Post.Ticked()
	for {
		f.ask(ctx, background)
		read, results := incoming, f.results
		if f.out.Full() || quit == nil || f.busy != nil && f.busy.Full() {
			read = nil
		}
		if f.out.Full() || f.missed {
			results = nil // who works waits, too: a killed process would repeat all that is not committed
		}
		ticked := false
		select {
		case d := <-read:
			if err := f.take(d); err != nil {
				return err
			}
		case r, ok := <-results:
			if !ok {
				f.results, quit = nil, nil
				break
			}
			f.apply(r)
		case <-ticks.C:
			f.tick(ctx)
			f.forget(ctx)
		case <-due:
			due, ticked = f.Post.Ticked(), true
		case err := <-f.pending:
			if err := f.committed(ctx, err); err != nil {
				return err
			}
			ticked = f.missed
		case <-quit:
			quit = nil
		case <-ctx.Done():
			return ctx.Err()
		}
		f.missed = ticked && f.pending != nil
		if f.busy != nil {
			f.busy.Late(f.missed)
		}
		switch {
		case f.pending != nil:
		case f.dirty && (ticked || quit == nil || len(f.waiting) > 0 || f.out.Full()):
			if err := f.checkpoint(ctx); err != nil {
				return err
			}
		case quit == nil && (f.busy == nil || f.results == nil):
			return f.failed
		}
	}
}

// take applies one message.
func (f *fold) take(d jet.Delivery) error {
	f.seq, f.lag, f.dirty = d.Seq, d.Pending, true
	items, err := message.Decode(d.Data)
	if err != nil {
		items = nil // it can never be decoded
	}
	if f.busy != nil {
		return f.busy.Take(d.Seq, d.Time, items, f.out.Put)
	}
	for _, it := range items {
		f.state.Apply(it, d.Time, f.out.Put)
	}
	return nil
}

// apply applies what was finished beside the loop.
func (f *fold) apply(r Result) {
	f.failed = cmp.Or(f.failed, r.Err)
	if r.Apply != nil {
		r.Apply(f.out.Put)
		f.dirty = true
	}
	if r.Committed != nil {
		f.waiting = append(f.waiting, r.Committed)
	}
}

// tick tells a Timed state the time if a task is due. Due tasks wait while the crawl has no room
// for them: they are not urgent, and pages that already wait come first.
func (f *fold) tick(ctx context.Context) {
	timed, ok := f.state.(Timed)
	if !ok || time.Since(f.ticked) < timedEvery || f.out.Full() {
		return
	}
	next := timed.Next()
	if next.IsZero() || time.Now().Before(next) {
		return
	}
	f.ticked = time.Now()
	if f.Room == nil || f.Room(ctx, f.claim.Part) {
		timed.Advance(time.Now(), f.out.Put)
		f.dirty = true
	}
}

// checkpoint begins to commit the state and what it has emitted.
func (f *fold) checkpoint(ctx context.Context) error {
	root := &f.keeper.Root
	// Each checkpoint adds a chunk, and a new owner must read them all. Once there are as many as
	// the whole state needs, the whole state replaces them. Earlier would not pay: a large state
	// would be written again and again for a few changes.
	anew := len(root.Chunks)-f.whole >= max(minChanges, f.whole) || f.busy != nil && f.busy.Rewrite()
	if anew {
		f.old, root.Chunks = root.Chunks, nil
	}
	for _, data := range f.state.Changes(anew, maxChunk) {
		if err := f.keeper.AddChunk(ctx, data); err != nil {
			return err
		}
	}
	if anew {
		f.whole = len(root.Chunks)
	}
	root.Seq, root.Lag, root.Open = f.seq, f.lag, f.state.Open()
	if f.busy != nil {
		var more any
		root.Seq, more = f.busy.Progress()
		data, err := json.Marshal(more)
		if err != nil {
			return fmt.Errorf("engine: encode the progress of %s: %w", f.claim.Dest, err)
		}
		root.Extra = data
	}
	root.Counts = maps.Clone(f.state.Counts())
	maps.DeleteFunc(root.Counts, func(_ string, n int64) bool { return n == 0 })
	f.dirty, f.sent = false, root.Seq
	f.asked, f.waiting = f.waiting, nil
	// This makes all of the above effective, or none of it.
	f.pending = f.Post.Commit(f.keeper, &f.out)
	return nil
}

// committed ends a checkpoint. Only now may messages that are part of the state be removed.
func (f *fold) committed(ctx context.Context, err error) error {
	f.pending = nil
	if err != nil {
		return err
	}
	f.keeper.Drop(ctx, f.old)
	f.old, f.stored = nil, f.sent
	for _, c := range f.asked {
		close(c)
	}
	f.asked = nil
	return nil
}

// forget removes the messages that are part of the stored state, now and then.
func (f *fold) forget(ctx context.Context) {
	if f.stored > f.forgot && time.Since(f.purged) >= purgeEvery {
		f.purged = time.Now()
		if f.Bus.Forget(ctx, f.claim.Dest, f.stored) == nil {
			f.forgot = f.stored
		}
	}
}

// ask starts to answer the questions of the state.
func (f *fold) ask(ctx context.Context, background *sync.WaitGroup) {
	if f.Ask == nil {
		return
	}
	for _, want := range f.state.Wants() {
		background.Go(func() {
			it := f.Ask(ctx, want)
			answer := Result{Apply: func(emit Emit) {
				f.state.Apply(it, time.Now(), emit)
			}}
			select {
			case f.results <- answer:
			case <-ctx.Done():
			}
		})
	}
}
