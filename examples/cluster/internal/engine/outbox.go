package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A Dest is a partition of a module.
type Dest struct {
	To   message.Module
	Part int
}

// othersLinger is how much longer items for partitions of other processes wait than those for the
// process's own. A process has few partitions, so items for the own ones fill a message sooner; and
// a site's links mostly lead to pages of the same site.
const othersLinger = 5

// MessageRate returns how many messages per second all processes send to the partitions of a module
// that get that many items per second in all. From the first item for a partition on, a process waits
// for others; so between two messages are that time, and the time until the next item comes.
func MessageRate(items, processes, partitions float64, every time.Duration) float64 {
	if items <= 0 {
		return 0
	}
	pairs := processes * partitions
	gap := pairs / items
	own := 1 / (every.Seconds() + gap)
	others := 1 / (othersLinger*every.Seconds() + gap)
	return partitions*own + (pairs-partitions)*others
}

// A Post sends what the partitions of one process have for others. It gathers items for a while:
// with many partitions, each has only an item or two for another one each second, and only together
// do they fill messages. Its methods are safe for concurrent use.
type Post struct {
	bus   *jet.Bus
	every time.Duration
	own   func(d Dest) bool

	mu    sync.Mutex
	pipes map[Dest]*jet.Pipe
}

// NewPost returns a post that gathers items for the time every if their destination is one of the
// process's own partitions, and five times as long otherwise.
func NewPost(bus *jet.Bus, every time.Duration, own func(d Dest) bool) *Post {
	return &Post{bus: bus, every: every, own: own, pipes: map[Dest]*jet.Pipe{}}
}

func (p *Post) pipe(d Dest) *jet.Pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	pipe := p.pipes[d]
	if pipe == nil {
		pipe = p.bus.NewPipe(d.To, d.Part, func() time.Duration {
			if p.own(d) {
				return p.every
			}
			return othersLinger * p.every
		})
		p.pipes[d] = pipe
	}
	return pipe
}

// Full reports whether a partition had no room for the last message.
func (p *Post) Full(d Dest) bool { return p.pipe(d).Full() }

// Close ends the post. What it has not sent is in the states of the partitions, whose next owners
// send it.
func (p *Post) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pipe := range p.pipes {
		pipe.Close()
	}
}

// maxOutbox bounds the items of a partition that the broker has not acknowledged. They are part of
// its root, which has to fit into a message.
const maxOutbox = 192 << 10

// An Outbox has the items that a partition has sent and the broker has not acknowledged. They are
// committed together with the state that has caused them, and only then sent. So whoever owns the
// partition sends the same items with the same numbers, and an owner that was replaced can send
// nothing that its successor does not know. Its methods are not safe for concurrent use.
type Outbox struct {
	post  *Post
	from  message.Source
	boxes map[Dest]*box
	size  atomic.Int64  // bytes that are not acknowledged
	moved chan struct{} // has a value after an acknowledgement
}

// A box has the items for one partition.
type box struct {
	last  uint64       // number of the last item
	fresh []jet.Parcel // not committed, each of about the size of a message

	mu   sync.Mutex
	sent []jet.Parcel // not acknowledged
}

// maxParcel bounds a parcel, not counting its last item.
const maxParcel = 64 << 10

func newOutbox(post *Post, c Claim) *Outbox {
	return &Outbox{
		post: post, from: message.Source{Module: c.Module, Part: uint32(c.Part)},
		boxes: map[Dest]*box{}, moved: make(chan struct{}, 1),
	}
}

// restore adds what the previous owner had sent to a partition.
func (o *Outbox) restore(s Sent) error {
	items, err := message.DecodeItems(append(binary.AppendUvarint(nil, uint64(s.N)), s.Items...))
	if err != nil {
		return fmt.Errorf("engine: items for %s %d: %w", s.To, s.Part, err)
	}
	o.boxes[s.Dest] = &box{last: s.Number - uint64(s.N)}
	for _, it := range items {
		o.Put(s.To, s.Part, it)
	}
	return nil
}

// Put adds an item.
func (o *Outbox) Put(to message.Module, part int, it message.Item) {
	d := Dest{to, part}
	b := o.boxes[d]
	if b == nil {
		b = &box{}
		o.boxes[d] = b
	}
	b.last++
	if n := len(b.fresh); n == 0 || len(b.fresh[n-1].Items) >= maxParcel {
		b.fresh = append(b.fresh, jet.Parcel{From: o.from, First: b.last, Acked: func() { o.acked(b) }})
	}
	p := &b.fresh[len(b.fresh)-1]
	before := len(p.Items)
	p.Items = it.Append(p.Items)
	p.N++
	o.size.Add(int64(len(p.Items) - before))
}

// Full reports whether the partition has to wait for acknowledgements before it goes on.
func (o *Outbox) Full() bool { return o.size.Load() > maxOutbox }

// Empty reports whether everything is acknowledged.
func (o *Outbox) Empty() bool { return o.size.Load() == 0 }

// Moved has a value after an acknowledgement.
func (o *Outbox) Moved() <-chan struct{} { return o.moved }

// Sent returns the content for the root.
func (o *Outbox) Sent() (all []Sent) {
	for d, b := range o.boxes {
		s := Sent{Dest: d, Number: b.last}
		b.mu.Lock()
		for _, p := range slices.Concat(b.sent, b.fresh) {
			s.N += p.N
			s.Items = append(s.Items, p.Items...)
		}
		b.mu.Unlock()
		all = append(all, s)
	}
	return all
}

// Committed sends what was put before the last call of Sent: a root with it is stored.
func (o *Outbox) Committed() {
	for d, b := range o.boxes {
		b.mu.Lock()
		b.sent = append(b.sent, b.fresh...)
		b.mu.Unlock()
		for _, parcel := range b.fresh {
			o.post.pipe(d).Send(parcel)
		}
		b.fresh = nil
	}
}

// acked forgets the first parcel of a box: acknowledgements come in order.
func (o *Outbox) acked(b *box) {
	b.mu.Lock()
	o.size.Add(-int64(len(b.sent[0].Items)))
	b.sent = b.sent[1:]
	b.mu.Unlock()
	select {
	case o.moved <- struct{}{}:
	default:
	}
}
