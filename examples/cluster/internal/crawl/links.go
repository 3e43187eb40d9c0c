package crawl

import (
	"context"
	"sync"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// maxGathered is how many items go in one message.
const maxGathered = 64

// outbox collects the items that the workers of one partition of fetch send to other partitions.
// Its methods are safe for concurrent use.
type outbox struct {
	bus   *jet.Bus
	claim engine.Claim

	mu    sync.Mutex
	boxes map[address]*box
	// recent remembers the links that were sent: most links of a site are on all of its pages. A
	// forgotten link is sent again, and dedupe drops it.
	recent *dedupe.Filter
}

// recentLinks remembers 100,000 links in 0.9 MB. At most one of a billion new links is taken for an
// old one, and no site can choose which.
var recentLinks = dedupe.Options{Capacity: 100_000, Rate: 1e-9, Generations: 2}

type address struct {
	module message.Module
	part   int
}

// A box has the items for one partition.
type box struct {
	pipe  *jet.Pipe
	n     int
	items []byte
	mu    sync.Mutex // held while a message is handed over, which keeps them in order
}

func newOutbox(bus *jet.Bus, c engine.Claim) *outbox {
	return &outbox{bus: bus, claim: c, boxes: map[address]*box{}, recent: dedupe.New(recentLinks)}
}

// box returns the box for a partition.
func (o *outbox) box(to address) *box {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.boxes[to]
	if b == nil {
		from := message.Source{Module: o.claim.Module, Part: uint32(o.claim.Part)}
		b = &box{pipe: o.bus.NewPipe(to.module, to.part, from, o.claim.Epoch, 1, o.claim.Guard)}
		o.boxes[to] = b
	}
	return b
}

// sentRecently reports whether a link was sent recently, and remembers it.
func (o *outbox) sentRecently(url string) bool { return !o.recent.Add(url) }

// put adds an item for a partition.
func (o *outbox) put(ctx context.Context, to address, it message.Item) error {
	b := o.box(to)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = it.Append(b.items)
	b.n++
	if b.n >= maxGathered || len(b.items) >= maxBytes {
		return b.send(ctx)
	}
	return nil
}

// maxBytes bounds a message, not counting its last item.
const maxBytes = 64 << 10

// send sends the collected items. It requires that b.mu is held.
func (b *box) send(ctx context.Context) error {
	if b.n == 0 {
		return nil
	}
	items, n := b.items, b.n
	b.items, b.n = nil, 0
	return b.pipe.Send(ctx, n, items)
}

// flush returns when all items that were put for a partition are with the broker.
func (o *outbox) flush(ctx context.Context, to address) error {
	b := o.box(to)
	b.mu.Lock()
	err := b.send(ctx)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.pipe.Flush(ctx)
}

// sent returns the number of messages per destination.
func (o *outbox) sent() (all []engine.Sent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for to, b := range o.boxes {
		all = append(all, engine.Sent{
			To: to.module, Part: to.part, Epoch: o.claim.Epoch, Number: b.pipe.Next() - 1,
		})
	}
	return all
}

// close ends all pipes.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.boxes {
		b.pipe.Close()
	}
}
