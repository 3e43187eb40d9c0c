package engine

import (
	"context"
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

// Emit sends an item on to a partition of a module.
type Emit func(to message.Module, part int, it message.Item)

// FoldOptions are the options of a [Fold].
type FoldOptions struct {
	// Bus has the streams. It is required; nil means none.
	Bus *jet.Bus
	// States stores the states. It is required; nil means none.
	States *jet.Table
	// Post sends what the states emit. It is required; nil means none.
	Post *Post
	// New returns an empty state. It is required; nil means none.
	New func(part int) State
	// Ask answers the questions of a State. It is called for all of them at the same time, so it
	// bounds its work itself. nil means that a State has no questions.
	Ask func(ctx context.Context, want string) message.Item
	// Room reports whether the crawl has room for the due tasks of a partition. nil means that it
	// always has.
	Room func(ctx context.Context, part int) bool
	// Every is how long a change waits for others until they are committed together. 0 means
	// DefaultEvery.
	Every time.Duration
}

// DefaultEvery is how long a change waits to be committed. A killed process repeats what it has done
// in that time.
const DefaultEvery = time.Second

const (
	timedEvery = 200 * time.Millisecond // the interval at which a Timed state is told the time
	minChanges = 64                     // fewer chunks of changes never cause a rewrite of the state
	deliveries = 256
	purgeAfter = 5 // times Every, the interval at which read messages are deleted
)

// CountLost is the name of the count of items that the broker acknowledged and never delivered.
const CountLost = "items lost by the broker"

// CountForged is the name of the count of parcels that no partition has sent.
const CountForged = "forged parcels ignored"

// Fold returns a runner for partitions that consist only of state.
func Fold(o FoldOptions) Runner {
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	return func(ctx context.Context, c Claim) error {
		f := &fold{FoldOptions: o, claim: c, answers: make(chan message.Item, deliveries)}
		return f.run(ctx)
	}
}

// A fold is one partition while this process owns it.
type fold struct {
	FoldOptions
	claim  Claim
	keeper *Keeper
	state  State
	marks  message.Marks
	out    *Outbox

	seq     uint64    // of the last applied message
	last    uint64    // of the last one in the stream, as far as it is known
	dirty   time.Time // since when there is a change that is not committed; zero: there is none
	ticked  time.Time // when a Timed state was last told the time
	purged  time.Time
	asking  int // questions without an answer
	whole   int // chunks of the whole state when this owner wrote it; 0 before
	answers chan message.Item
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
	// Reading runs ahead of applying, so that the network and the state do not wait for each other.
	incoming := make(chan jet.Delivery, deliveries)
	reader := f.Bus.Read(f.claim.Module, f.claim.Part, f.seq+1)
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
	if f.keeper, err = Keep(ctx, f.States, f.claim); err != nil {
		return err
	}
	f.state = f.New(f.claim.Part)
	if err := f.keeper.Load(ctx, f.state.Load); err != nil {
		return err
	}
	if f.marks, f.last, err = f.keeper.Position(ctx, f.Bus); err != nil {
		return err
	}
	maps.Copy(f.state.Counts(), f.keeper.Root.Counts)
	f.seq = f.keeper.Root.Seq
	f.out, err = f.keeper.OpenOutbox(ctx, f.Post)
	return err
}

func (f *fold) loop(
	ctx context.Context, incoming <-chan jet.Delivery, background *sync.WaitGroup,
) error {
	ticks := time.NewTicker(min(f.Every, timedEvery))
	defer ticks.Stop()
	quit := f.claim.Quit
	for {
		f.ask(ctx, background)
		f.claim.Report(f.dirty.IsZero() && f.seq >= f.last && f.asking == 0 &&
			f.out.Empty() && f.state.Open() == 0)
		read := incoming
		if f.out.Full() || quit == nil {
			read = nil
		}
		select {
		case d := <-read:
			if err := f.take(ctx, d); err != nil {
				return err
			}
		case it := <-f.answers:
			f.asking--
			f.state.Apply(it, time.Now(), f.out.Put)
			f.changed()
		case <-f.out.Moved():
			f.changed()
		case <-ticks.C:
			f.tick(ctx)
		case <-quit:
			quit = nil
		case <-ctx.Done():
			return ctx.Err()
		}
		if quit == nil || !f.dirty.IsZero() && (time.Since(f.dirty) >= f.Every || f.out.Full()) {
			if err := f.checkpoint(ctx); err != nil || quit == nil {
				return err
			}
		}
	}
}

// changed notes that there is something to commit.
func (f *fold) changed() {
	if f.dirty.IsZero() {
		f.dirty = time.Now()
	}
}

// take applies one message.
func (f *fold) take(ctx context.Context, d jet.Delivery) error {
	f.seq, f.last = d.Seq, max(f.last, d.Seq+d.Pending)
	f.changed()
	m, garbled := message.Decode(d.Data)
	if garbled != nil {
		return nil // it can never be decoded
	}
	forged, err := Expose(ctx, f.States, f.claim, &f.marks, &m)
	if err != nil {
		return err
	}
	f.state.Counts()[CountForged] += forged
	for _, p := range m.Parcels {
		for _, it := range p.Items[f.marks.Take(p, len(p.Items)):] {
			f.state.Apply(it, d.Time, f.out.Put)
		}
	}
	return nil
}

// Expose finds the parcels of a message that continue after a gap although their source has not sent
// so many items. They are forged, and would hide the items that the source is going to send, so they
// lose their Head: then the marks ignore them. Gaps are rare, so this rarely asks the brokers.
func Expose(
	ctx context.Context, states *jet.Table, c Claim, marks *message.Marks, m *message.Message,
) (forged int64, err error) {
	for i := range m.Parcels {
		p := &m.Parcels[i]
		if !marks.Gap(*p) {
			continue
		}
		source, err := ReadRoot(ctx, states, p.From.Module, int(p.From.Part))
		if err != nil {
			return 0, err
		}
		if p.First+uint64(len(p.Items))-1 > source.SentTo(Dest{c.Module, c.Part}) {
			p.Head = false
			forged++
		}
	}
	return forged, nil
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
		f.changed()
	}
}

// checkpoint commits the state and what it has emitted. Only after the commit may the stream delete
// the messages that are part of the state.
func (f *fold) checkpoint(ctx context.Context) error {
	root := &f.keeper.Root
	var old []Chunk
	// Each checkpoint adds a chunk, and a new owner must read them all. Once there are as many as
	// the whole state needs, the whole state replaces them. Earlier would not pay: a large state
	// would be written again and again for a few changes.
	anew := len(root.Chunks)-f.whole >= max(minChanges, f.whole)
	if anew {
		old, root.Chunks = root.Chunks, nil
	}
	for _, data := range f.state.Changes(anew, maxChunk) {
		if err := f.keeper.AddChunk(ctx, data); err != nil {
			return err
		}
	}
	if anew {
		f.whole = len(root.Chunks)
	}
	root.Seq, root.Open, root.Last = f.seq, f.state.Open(), f.last
	root.Counts = Counted(f.state.Counts(), &f.marks)
	root.Marks = f.marks.Append(nil)
	f.dirty = time.Time{}
	// This one write makes all of the above effective, or none of it.
	if err := f.keeper.Commit(ctx, f.out); err != nil {
		return err
	}
	f.keeper.Drop(ctx, old)
	if time.Since(f.purged) >= purgeAfter*f.Every {
		f.purged = time.Now()
		_ = f.Bus.Forget(ctx, f.claim.Module, f.claim.Part, f.seq) // or after a later checkpoint
	}
	return nil
}

// Counted returns a copy of counts for the root, without zeros and with what the broker has lost.
func Counted(counts map[string]int64, marks *message.Marks) map[string]int64 {
	all := maps.Clone(counts)
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n == 0 })
	if lost := marks.Lost(); lost > 0 {
		all[CountLost] = int64(lost)
	}
	return all
}

// ask starts to answer the questions of the state.
func (f *fold) ask(ctx context.Context, background *sync.WaitGroup) {
	if f.Ask == nil {
		return
	}
	for _, want := range f.state.Wants() {
		f.asking++
		background.Go(func() {
			it := f.Ask(ctx, want)
			select {
			case f.answers <- it:
			case <-ctx.Done():
			}
		})
	}
}
