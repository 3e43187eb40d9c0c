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

// outbox gathers what the workers of one partition of fetch have for other partitions. Its methods
// are safe for concurrent use.
type outbox struct {
	bus   *jet.Bus
	claim engine.Claim

	mu    sync.Mutex
	boxes map[address]*box
	// recent remembers what was passed on: most links of a site are on all of its pages. What it
	// forgets is sent once more, and dedupe knows it.
	recent *dedupe.Filter
}

// recentLinks remembers 100,000 links in 0.9 MB. Of a billion links that were not passed on it takes
// at most one for one that was, and no site can choose which.
var recentLinks = dedupe.Options{Capacity: 100_000, Rate: 1e-9, Recent: -1, Generations: 2}

type address struct {
	module message.Module
	part   int
}

// A box is what is gathered for one partition.
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

// sentLately says whether a link was passed on a short while ago, and notes that it was.
func (o *outbox) sentLately(url string) bool { return !o.recent.Add(url) }

// put gathers an item for a partition.
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

// maxBytes is how much a message has at most, but for a last item.
const maxBytes = 64 << 10

// send hands over what is gathered. It requires that b.mu is held.
func (b *box) send(ctx context.Context) error {
	if b.n == 0 {
		return nil
	}
	items, n := b.items, b.n
	b.items, b.n = nil, 0
	return b.pipe.Send(ctx, n, items)
}

// flush returns when all that was put before for a partition is with the broker.
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

// sent returns how many messages were sent to whom.
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
