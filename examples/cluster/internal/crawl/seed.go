package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// Levels of the stream: the share of its bound above which seeds wait, above which the links of pages
// are dropped, and below which they are followed again. The rest is room for items in transit: they
// are stored again by each module before they are removed.
const (
	levelSeeds = 0.4
	levelFull  = 0.75
	levelRoom  = 0.7
)

// Seed sends seeds, in canonical form, to the crawl, and returns when the broker has them.
// It waits while the crawl has no room. The same list can be sent again, for example after the
// program was killed: dedupe knows what has arrived.
func (c *Crawl) Seed(ctx context.Context, urls []string) error {
	return c.send(ctx, urls, false)
}

// Revisit makes pages due now, even those whose visits have ended. Pages that the crawl does not know
// are seeds.
func (c *Crawl) Revisit(ctx context.Context, urls []string) error {
	return c.send(ctx, urls, true)
}

// maxGathered is how many seeds go in one message.
const maxGathered = 256

// send is Seed, or Revisit if the pages are to be visited again.
func (c *Crawl) send(ctx context.Context, urls []string, again bool) error {
	batches := make([][]message.Item, c.Parts)
	flush := func(part int) error {
		if len(batches[part]) == 0 {
			return nil
		}
		if err := c.waitForRoom(ctx, part); err != nil {
			return err
		}
		data := message.Encode(nil, batches[part]...)
		batches[part] = batches[part][:0]
		return c.Bus.Send(ctx, jet.Message{To: message.Dest{To: message.Dedupe, Part: part}, Data: data})
	}
	for _, url := range urls {
		part := c.urlPart(url)
		batches[part] = append(batches[part], message.Item{Kind: message.Page, URL: url, Again: again})
		if len(batches[part]) == maxGathered {
			if err := flush(part); err != nil {
				return err
			}
		}
	}
	for part := range batches {
		if err := flush(part); err != nil {
			return err
		}
	}
	return nil
}

// waitForRoom waits while there is no room for seeds after a partition of dedupe. Its number
// selects the partition of hosts to examine: all are about equally full.
func (c *Crawl) waitForRoom(ctx context.Context, part int) error {
	for !c.hasRoom(ctx, part, true) {
		c.seedWaits.Add(1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// hasRoom examines the bytes of the stream, and the items that wait in the memory of hosts, or will
// when their message arrives: those who do not read it take it for one of seeds. Seeds also wait for
// the pages of dedupe that were postponed or failed, which are in memory, too. Due pages do not: sending
// them out is what makes room.
func (c *Crawl) hasRoom(ctx context.Context, part int, seeds bool) bool {
	level, err := c.Bus.Level(ctx)
	if err != nil || level.Share >= levelSeeds {
		return false
	}
	waiting := uint64(0)
	for _, d := range []message.Dest{{To: message.Dedupe, Part: part}, {To: message.Hosts, Part: part}} {
		end, err := c.Bus.End(ctx, d)
		if err != nil {
			return false
		}
		root, err := engine.ReadRoot(ctx, c.Bus, d)
		if err != nil {
			return false
		}
		if end > root.Seq {
			waiting += level.Held[d] * maxGathered
		}
		switch {
		case d.To == message.Hosts:
			waiting += uint64(root.Open)
		case seeds && float64(root.Open) >= 0.5*float64(c.Waiting):
			return false
		}
	}
	return float64(waiting) < 0.5*float64(c.Waiting)
}

// A Part is the progress of one partition, as of its last commit. It is not safe for concurrent use.
type Part struct {
	message.Dest
	Owner string // "" if it has none
	Epoch uint64
	End   uint64 // sequence of the last message
	Held  uint64 // messages in the stream, also those that are part of the state already
	Root  engine.Root
}

// Lag returns how many messages the state does not reflect; without an owner, at most so many.
func (p *Part) Lag() uint64 {
	switch {
	case p.Owner != "":
		return p.Root.Lag
	case p.End > p.Root.Seq:
		return p.Held
	}
	return 0
}

// Look returns the progress of all partitions, the processes that are alive or were until a moment ago, and
// how full the stream is, in a few requests.
func (c *Crawl) Look(ctx context.Context) (parts []Part, members []Member, full float64, err error) {
	roots, err := engine.ReadRoots(ctx, c.Bus)
	if err != nil {
		return nil, nil, 0, err
	}
	level, err := c.Bus.Level(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	ends, err := c.Bus.Ends(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	alive, leases, err := engine.ReadMembers(ctx, c.Leases)
	if err != nil {
		return nil, nil, 0, err
	}
	for d := range c.dests() {
		lease := leases[engine.LeaseKey(d)]
		if _, lives := alive[lease.Owner]; !lives {
			lease.Owner = "" // and no other process has taken over yet
		}
		parts = append(parts, Part{d, lease.Owner, lease.Epoch, ends[d], level.Held[d], roots[d]})
	}
	members, err = membersOf(alive)
	return parts, members, level.Share, err
}

// dests yields all partitions.
func (c *Crawl) dests() iter.Seq[message.Dest] {
	return func(yield func(message.Dest) bool) {
		for _, m := range message.Modules() {
			for part := range c.Parts {
				if !yield(message.Dest{To: m, Part: part}) {
					return
				}
			}
		}
	}
}

// Finished reports whether nothing is left to do. That remains so unless seeds come.
//
// Nothing may wait in any partition, and the states must reach to the last message of each. These are
// read one after the other, while work may travel from one partition to the next; but what a partition
// sends is stored together with its root. So if the roots are the same before and after, the work was
// nowhere in between.
func (c *Crawl) Finished(ctx context.Context) (bool, error) {
	roots, err := engine.ReadRoots(ctx, c.Bus)
	if err != nil {
		return false, err
	}
	for _, root := range roots {
		if root.Open > 0 {
			return false, nil
		}
	}
	ends, err := c.Bus.Ends(ctx)
	if err != nil {
		return false, err
	}
	for d, end := range ends {
		if end > roots[d].Seq {
			return false, nil
		}
	}
	after, err := engine.ReadRoots(ctx, c.Bus)
	return err == nil && maps.EqualFunc(roots, after, engine.Root.Same), err
}

// Wait returns when nothing is left to do. It looks at intervals, and survives servers that are away for
// a while.
func (c *Crawl) Wait(ctx context.Context, every time.Duration) error {
	for {
		if done, err := c.Finished(ctx); done && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// A Member is a process of the crawl as the others see it.
type Member struct {
	ID string
	Report
}

func membersOf(sessions map[string]engine.Session) (members []Member, err error) {
	for id, s := range sessions {
		m := Member{ID: id}
		if s.Report != nil {
			if err := json.Unmarshal(s.Report, &m.Report); err != nil {
				return nil, fmt.Errorf("crawl: report of %s: %w", id, err)
			}
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return members, nil
}
