package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// maxOutbox bounds the items of a partition that are not committed; those that follow from one message
// may exceed it. A few robots.txt can release all that waits in a partition of hosts, so beyond
// maxUsual messages are larger, lest a batch has too many.
const (
	maxOutbox = 192 << 10
	maxUsual  = 16 << 20
)

// An Outbox has the items that have resulted from messages since the last commit. They are sent
// together with the state that has caused them. It is not safe for concurrent use.
type Outbox struct {
	pieces map[message.Dest][][]byte // encoded items, each of about the size of a message
	size   int
}

// Put adds an item.
func (o *Outbox) Put(to message.Module, part int, it message.Item) {
	if o.pieces == nil {
		o.pieces = map[message.Dest][][]byte{}
	}
	d, item, limit := message.Dest{To: to, Part: part}, message.Encode(nil, it), jet.MaxMessage
	if o.size > maxUsual {
		limit = jet.LargestMessage
	}
	pieces := o.pieces[d]
	n := len(pieces)
	if n == 0 || len(pieces[n-1])+len(item) > limit {
		pieces, n = append(pieces, nil), n+1
	}
	pieces[n-1] = append(pieces[n-1], item...)
	o.size += len(item)
	o.pieces[d] = pieces
}

// Full reports whether the partition has to commit before it goes on.
func (o *Outbox) Full() bool { return o.size > maxOutbox }

// A Post commits what the partitions of one process have done, all together: with many partitions,
// each has only an item or two for another one each second, and only together do they fill messages.
// So partitions commit in step, at the ticks of the post. Its methods are safe for concurrent use.
type Post struct {
	bus   *jet.Bus
	every time.Duration

	mu     sync.Mutex
	queue  []*commit
	ticked chan struct{} // closed at the next tick
	soon   chan struct{} // has a value if the queue is not empty
}

// A commit is what one partition wants to be committed.
type commit struct {
	keeper *Keeper
	record jet.Record
	pieces map[message.Dest][][]byte
	size   int // of the pieces
	done   chan error
}

// fullPause is how long a commit for which the stream has no room waits for its next attempt.
const fullPause = 500 * time.Millisecond

// gather is how long partitions wait for others that have heard the same tick.
const gather = 20 * time.Millisecond

// NewPost returns a post with ticks at an interval. It works while Run runs.
func NewPost(bus *jet.Bus, every time.Duration) *Post {
	return &Post{bus: bus, every: every, ticked: make(chan struct{}), soon: make(chan struct{}, 1)}
}

// Ticked returns a channel that is closed when it is time to commit.
func (p *Post) Ticked() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ticked
}

// Commit stores the keeper's root and sends what is in the outbox, which is empty afterwards, a moment
// later, together with others. The channel gets the result: [ErrFenced] if the partition has a new owner.
// Until then the keeper must not commit again.
func (p *Post) Commit(k *Keeper, o *Outbox) <-chan error {
	c := &commit{keeper: k, pieces: o.pieces, size: o.size, done: make(chan error, 1)}
	var err error
	if c.record, err = k.record(); err != nil {
		c.done <- err
		return c.done
	}
	*o = Outbox{}
	p.enqueue(c)
	return c.done
}

func (p *Post) enqueue(c *commit) {
	p.mu.Lock()
	p.queue = append(p.queue, c)
	p.mu.Unlock()
	select {
	case p.soon <- struct{}{}:
	default:
	}
}

// Run commits until ctx ends.
func (p *Post) Run(ctx context.Context) {
	var ticking sync.WaitGroup
	defer ticking.Wait()
	ticking.Go(func() { p.tick(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.soon:
			pause(ctx, min(gather, p.every/4))
			p.flush(ctx)
		}
	}
}

// tick ticks until ctx ends, also while a commit waits for brokers that are away.
func (p *Post) tick(ctx context.Context) {
	ticks := time.NewTicker(p.every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		p.mu.Lock()
		close(p.ticked)
		p.ticked = make(chan struct{})
		p.mu.Unlock()
	}
}

// flush commits what is queued.
func (p *Post) flush(ctx context.Context) {
	p.mu.Lock()
	queue := p.queue
	p.queue = nil
	p.mu.Unlock()
	for len(queue) > 0 {
		n := fitting(queue)
		p.commit(ctx, queue[:n])
		queue = queue[n:]
	}
}

// fitting returns how many commits fit into one batch. One always does: the number of partitions is
// bounded, and so is an outbox.
func fitting(queue []*commit) int {
	parts, size := 0, 0
	for i, c := range queue {
		parts++
		size += c.size
		for _, pieces := range c.pieces {
			parts += len(pieces)
		}
		if (parts > jet.MaxBatch || size > maxUsual) && i > 0 {
			return i
		}
	}
	return len(queue)
}

// commit commits a batch. Partitions that were lost meanwhile are left out, and the others commit
// without them.
func (p *Post) commit(ctx context.Context, batch []*commit) {
	for {
		batch = slices.DeleteFunc(batch, func(c *commit) bool { return c.ends(c.keeper.claim.Guard()) })
		if len(batch) == 0 {
			return
		}
		records := make([]jet.Record, len(batch))
		for i, c := range batch {
			records[i] = c.record
		}
		stored, fenced, err := p.bus.Commit(ctx, records, messages(batch))
		if errors.Is(err, jet.ErrFull) {
			p.split(ctx, batch)
			return
		}
		for i, c := range batch {
			c.keeper.revision = records[i].Revision
		}
		batch = slices.DeleteFunc(batch, func(c *commit) bool {
			return slices.Contains(fenced, c.record.Of) && c.ends(ErrFenced)
		})
		if stored || err != nil {
			for _, c := range batch {
				c.done <- err
			}
			return
		}
	}
}

// split commits a batch for which the stream has no room in smaller ones, and first what needs the
// least: partitions that have only taken messages let them be removed once they have committed, which
// makes room for the others. A commit that does not fit by itself waits, and does not hold up others.
func (p *Post) split(ctx context.Context, batch []*commit) {
	if c := batch[0]; len(batch) == 1 {
		time.AfterFunc(fullPause, func() { p.enqueue(c) })
		return
	}
	slices.SortStableFunc(batch, func(a, b *commit) int { return cmp.Compare(a.size, b.size) })
	half := len(batch) / 2
	p.commit(ctx, batch[:half])
	p.commit(ctx, batch[half:])
}

// ends reports an error, and whether there is one.
func (c *commit) ends(err error) bool {
	if err != nil {
		c.done <- err
	}
	return err != nil
}

// messages joins the items of all partitions for the same one.
func messages(batch []*commit) (all []jet.Message) {
	last := map[message.Dest]int{} // place of the last message, from 1
	for _, c := range batch {
		for d, pieces := range c.pieces {
			for _, piece := range pieces {
				at := last[d] - 1
				if at < 0 || len(all[at].Data)+len(piece) > jet.MaxMessage {
					at = len(all)
					all = append(all, jet.Message{To: d})
					last[d] = at + 1
				}
				all[at].Data = append(all[at].Data, piece...)
			}
		}
	}
	return all
}
