package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A State is a partition of a module that consists only of state. Its behavior must depend only on
// the items that it gets and on their times: a new owner reads the same messages, and must reach
// the same state and send the same messages.
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

// A Timed state also has tasks that become due. An owner that finds one due sends a message to its
// own partition. All owners see the time of that message, so they agree on what was done when.
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
	// New returns an empty state. It is required; nil means none.
	New func(part int) State
	// Ask answers the questions of a State. It is called for all of them at the same time, so it
	// bounds its work itself. nil means that a State has no questions.
	Ask func(ctx context.Context, want string) message.Item
	// Room reports whether the crawl has room for the due tasks of a partition. nil means that it
	// always has.
	Room func(ctx context.Context, part int) bool
	// Every is the interval between checkpoints while messages arrive. The last messages are
	// committed sooner. 0 means a second.
	Every time.Duration
}

// Bounds of how the items of one partition for another are gathered. The paper's modules send
// single URLs; a broker takes fifty at nearly the price of one.
const (
	maxBatch      = 64
	maxBatchBytes = 64 << 10

	// flushEvery bounds the messages after which collected items are sent. It counts in the
	// stream's sequence, so all owners send at the same positions.
	flushEvery = 64

	idleTick   = 10 * time.Millisecond
	timedEvery = 200 * time.Millisecond // the interval at which a Timed state is told the time
	quietTicks = 10                     // without a message, after which a checkpoint is made
	minChanges = 64                     // fewer chunks of changes never cause a rewrite of the state
	quitFlush  = 2 * time.Second
	deliveries = 256
)

// CountLost is the name of the count of messages that the broker acknowledged and never delivered.
const CountLost = "messages lost by the broker"

// Fold returns a runner for partitions that consist only of state.
func Fold(o FoldOptions) Runner {
	if o.Every == 0 {
		o.Every = time.Second
	}
	return func(ctx context.Context, c Claim) error {
		f := &fold{FoldOptions: o, claim: c, dests: map[dest]*outbox{}, sent: map[dest]uint64{}}
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

	seq      uint64    // of the last applied message
	gathered int       // items not sent yet
	asked    bool      // a flush was requested and has not arrived
	ticked   time.Time // when a Timed state was last told the time
	saved    time.Time
	whole    int // chunks of the whole state when this owner wrote it; 0 before

	dests   map[dest]*outbox
	sent    map[dest]uint64 // numbers of the last messages, as of the last checkpoint
	answers *jet.Pipe
}

type dest struct {
	module message.Module
	part   int
}

// An outbox collects the items of a fold for one partition.
type outbox struct {
	pipe  *jet.Pipe
	n     int
	items []byte
}

func (f *fold) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := f.restore(ctx); err != nil {
		return err
	}
	var background sync.WaitGroup
	defer f.closePipes()
	defer background.Wait()
	defer cancel()

	if f.Ask != nil {
		from := message.Source{Module: message.Lookup, Part: uint32(f.claim.Part)}
		f.answers = f.Bus.NewPipe(
			f.claim.Module, f.claim.Part, from, f.claim.Epoch, 1, f.claim.Guard)
	}
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
	root := &f.keeper.Root
	if root.Marks != nil {
		if f.marks, err = message.DecodeMarks(string(root.Marks)); err != nil {
			return err
		}
	}
	maps.Copy(f.state.Counts(), root.Counts)
	for _, s := range root.Sent {
		f.sent[dest{s.To, s.Part}] = s.Number
	}
	level, err := f.Bus.LevelFrom(ctx, f.claim.Module, f.claim.Part, root.Seq)
	if err != nil {
		return err
	}
	// A broker that has lost its disk numbers messages from the start. The lost ones are gone; new
	// ones must not be taken for old ones.
	root.Seq = min(root.Seq, level.Last)
	f.seq, f.saved = root.Seq, time.Now()
	return nil
}

func (f *fold) loop(
	ctx context.Context, incoming <-chan jet.Delivery, background *sync.WaitGroup,
) error {
	ticks := time.NewTicker(idleTick)
	defer ticks.Stop()
	quit, deadline := f.claim.Quit, (<-chan time.Time)(nil)
	still := 0 // ticks without a message
	for {
		f.ask(ctx, background)
		select {
		case d := <-incoming:
			still = 0
			done, err := f.take(ctx, d, quit == nil)
			if done || err != nil {
				return err
			}
		case <-ticks.C:
			f.tick(ctx)
			if still > 0 || quit == nil {
				done, err := f.idle(ctx, still, quit == nil)
				if done || err != nil {
					return err
				}
			}
			still++
		case <-quit:
			quit, deadline = nil, time.After(quitFlush)
		case <-deadline: // the broker is unreachable, or messages keep arriving
			return nil // the next owner reads the rest
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take applies one message. It returns done after a checkpoint when the partition is given up.
func (f *fold) take(ctx context.Context, d jet.Delivery, leaving bool) (done bool, err error) {
	f.seq = d.Seq
	emit := func(to message.Module, part int, it message.Item) {
		if err == nil {
			err = f.emit(ctx, dest{to, part}, it)
		}
	}
	m, garbled := message.Decode(d.Data)
	if garbled == nil && f.marks.Take(&m) { // a message that cannot be decoded is skipped
		for _, it := range m.Items {
			f.state.Apply(it, d.Time, emit)
		}
	}
	if timed, ok := f.state.(Timed); ok && m.Tick {
		timed.Advance(d.Time, emit)
	}
	if err != nil || !m.Flush && d.Seq%flushEvery != 0 {
		return false, err
	}
	if err := f.sendOn(ctx); err != nil {
		return false, err
	}
	if leaving || time.Since(f.saved) >= f.Every {
		err = f.checkpoint(ctx)
	}
	return leaving, err
}

// idle ensures that collected items are sent on even if no messages arrive. This process cannot
// simply choose when: the next owner would not know where it did. So it sends a message to its own
// partition, which all owners see at the same position.
//
// A polite crawl brings a partition a few messages per second. If the state were committed after
// each of them, the broker would have more work with states than with messages.
func (f *fold) idle(ctx context.Context, still int, leaving bool) (done bool, err error) {
	due := still >= quietTicks || time.Since(f.saved) >= f.Every
	switch {
	case f.gathered > 0 && !f.asked:
		m := message.Message{
			From: message.Source{Module: f.claim.Module, Part: uint32(f.claim.Part)}, Flush: true,
		}
		if f.claim.Guard() != nil {
			return false, ErrLost
		}
		// If it cannot be sent now, the next tick tries again.
		f.asked = f.Bus.Tell(ctx, f.claim.Module, f.claim.Part, m.Append(nil)) == nil
	case f.gathered == 0 && (leaving || due && f.seq > f.keeper.Root.Seq):
		if err := f.checkpoint(ctx); err != nil {
			return false, err
		}
		return leaving, nil
	}
	return false, nil
}

// tick tells a Timed state the time if a task is due. Due tasks wait while the crawl has no room
// for them: they are not urgent, and pages that already wait come first.
func (f *fold) tick(ctx context.Context) {
	timed, ok := f.state.(Timed)
	if !ok || time.Since(f.ticked) < timedEvery {
		return
	}
	next := timed.Next()
	if next.IsZero() || time.Now().Before(next) || f.claim.Guard() != nil {
		return
	}
	f.ticked = time.Now()
	if f.Room != nil && !f.Room(ctx, f.claim.Part) {
		return
	}
	m := message.Message{
		From:  message.Source{Module: f.claim.Module, Part: uint32(f.claim.Part)},
		Flush: true, Tick: true,
	}
	_ = f.Bus.Tell(ctx, f.claim.Module, f.claim.Part, m.Append(nil)) // or the next time
}

// emit collects an item for a partition.
func (f *fold) emit(ctx context.Context, to dest, it message.Item) error {
	box := f.dests[to]
	if box == nil {
		from := message.Source{Module: f.claim.Module, Part: uint32(f.claim.Part)}
		// All owners send the same messages, so the messages need no epoch.
		box = &outbox{pipe: f.Bus.NewPipe(to.module, to.part, from, 0, f.sent[to]+1, f.claim.Guard)}
		f.dests[to] = box
	}
	box.items = it.Append(box.items)
	box.n++
	f.gathered++
	if box.n >= maxBatch || len(box.items) >= maxBatchBytes {
		return f.send(ctx, box)
	}
	return nil
}

func (f *fold) send(ctx context.Context, box *outbox) error {
	items, n := box.items, box.n
	box.items, box.n = make([]byte, 0, len(items)), 0
	f.gathered -= n
	return box.pipe.Send(ctx, n, items)
}

// sendOn sends all collected items.
func (f *fold) sendOn(ctx context.Context) error {
	for _, box := range f.dests {
		if box.n > 0 {
			if err := f.send(ctx, box); err != nil {
				return err
			}
		}
	}
	f.asked = false
	return nil
}

// checkpoint commits the state. It requires that no items are collected. First the messages that
// the state has caused must be with the broker. Only after the commit may the stream delete the
// messages that are part of the state.
func (f *fold) checkpoint(ctx context.Context) error {
	root := &f.keeper.Root
	for to, box := range f.dests {
		if err := box.pipe.Flush(ctx); err != nil {
			return err
		}
		f.sent[to] = box.pipe.Next() - 1
	}
	root.Sent = root.Sent[:0]
	for to, number := range f.sent {
		root.Sent = append(root.Sent, Sent{To: to.module, Part: to.part, Number: number})
	}
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
	root.Seq, root.Open, root.Counts = f.seq, f.state.Open(), maps.Clone(f.state.Counts())
	if lost := f.marks.Lost(); lost > 0 {
		root.Counts[CountLost] = int64(lost)
	}
	root.Marks = f.marks.Append(nil)
	// This one write makes all of the above effective, or none of it.
	if err := f.keeper.Store(ctx); err != nil {
		return err
	}
	f.saved = time.Now()
	f.keeper.Drop(ctx, old)
	_ = f.Bus.Forget(ctx, f.claim.Module, f.claim.Part, f.seq) // or after the next checkpoint
	return nil
}

// ask starts to answer the questions of the state. The answers arrive as messages, like all input
// of the state.
func (f *fold) ask(ctx context.Context, background *sync.WaitGroup) {
	if f.Ask == nil {
		return
	}
	for _, want := range f.state.Wants() {
		background.Go(func() {
			it := f.Ask(ctx, want)
			if ctx.Err() == nil {
				_ = f.answers.Send(ctx, 1, it.Append(nil)) // fails only with the ownership
			}
		})
	}
}

func (f *fold) closePipes() {
	for _, box := range f.dests {
		box.pipe.Close()
	}
	if f.answers != nil {
		f.answers.Close()
	}
}
