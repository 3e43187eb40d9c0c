package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// levelSeeds is how full the streams may be for seeds to be sent: well below the level for links,
// so that seeds wait first.
const levelSeeds = 0.5

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
	batches := make([][]message.Item, c.DedupeParts)
	flush := func(part int) error {
		if len(batches[part]) == 0 {
			return nil
		}
		if err := c.waitForRoom(ctx, part); err != nil {
			return err
		}
		pipe := c.Bus.NewPipe(message.Dedupe, part, nil)
		defer pipe.Close()
		parcel := jet.Parcel{From: message.Source{Module: message.Seeder}, N: len(batches[part])}
		for i := range batches[part] {
			parcel.Items = batches[part][i].Append(parcel.Items)
		}
		pipe.Send(parcel)
		batches[part] = batches[part][:0]
		return pipe.Flush(ctx)
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
// selects the partitions of other modules to examine: all are about equally full.
func (c *Crawl) waitForRoom(ctx context.Context, part int) error {
	for !c.hasRoom(ctx, part) || !c.planHasRoom(ctx, part) {
		c.seedWaits.Add(1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// hasRoom examines the bytes of the streams, and the items that wait in the memory of hosts, or
// will when their message arrives. A message may move on in the meantime. Since hasRoom goes in the
// direction of the flow, such a message may be counted twice but is never missed.
func (c *Crawl) hasRoom(ctx context.Context, part int) bool {
	parts := c.Parts()
	onTheWay, waiting := 0, 0
	for _, m := range message.Partitioned() {
		level, err := c.Bus.Level(ctx, m, part%parts[m])
		if err != nil || level.Share >= levelSeeds {
			return false
		}
		if m == message.Fetch {
			break
		}
		root, err := engine.ReadRoot(ctx, c.States, m, part%parts[m])
		if err != nil {
			return false
		}
		lag := level.Last - min(level.Last, root.Seq)
		onTheWay += (int(lag)*itemsGuess + root.Waiting()) * parts[m] / parts[message.Hosts]
		waiting = root.Open
	}
	return float64(waiting+onTheWay) < levelSeeds*float64(c.Waiting)
}

// itemsGuess is how many items a message is taken to have by those who do not read it.
const itemsGuess = 64

// planHasRoom examines the pages of a partition of dedupe that were postponed or failed. They are
// in memory, like those that wait in hosts. Due pages do not wait for this room: sending them out
// is what makes room.
func (c *Crawl) planHasRoom(ctx context.Context, part int) bool {
	root, err := engine.ReadRoot(ctx, c.States, message.Dedupe, part)
	return err == nil && float64(root.Open) < levelSeeds*float64(c.Waiting)
}

// SeedWaits returns how often a seed had to wait because the crawl had no room.
func (c *Crawl) SeedWaits() int64 { return c.seedWaits.Load() }

// A Part is the progress of one partition, as of its last commit. It is not safe for concurrent use.
type Part struct {
	Module message.Module
	Part   int
	Owner  string // "" if it has none
	Epoch  uint64
	Root   engine.Root
}

// Lag returns how many messages the state does not reflect.
func (p *Part) Lag() uint64 { return p.Root.Last - min(p.Root.Seq, p.Root.Last) }

// Look returns the progress of all partitions, in a few requests.
func (c *Crawl) Look(ctx context.Context) (parts []Part, err error) {
	roots, err := engine.ReadRoots(ctx, c.States)
	if err != nil {
		return nil, err
	}
	leases, err := engine.ReadLeases(ctx, c.Leases)
	for _, m := range message.Partitioned() {
		for part := range c.Parts()[m] {
			lease := leases[engine.LeaseKey(m, part)]
			parts = append(parts, Part{m, part, lease.Owner, lease.Epoch, roots[engine.RootKey(m, part)]})
		}
	}
	return parts, err
}

// Finished reports whether nothing is left to do. That remains so unless seeds come.
//
// In a first pass each partition must be idle: its state reaches to the end of its stream, nothing
// waits, and the brokers have all that it has sent. In a second pass no stream may have grown. An
// idle partition gets work only through a message in its stream. So if there was work left at the
// end of the first pass, then its partition got a message after it was examined, and its stream is
// longer than its state says.
//
// A server that has just become the leader of a stream may not know its end yet. So the items that
// partitions have sent to each other are also counted: all must have been received. It fails if a
// partition has received more than was sent: then a message was forged, and hides genuine ones.
func (c *Crawl) Finished(ctx context.Context) (bool, error) {
	first, err := c.Look(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range first {
		if p.Lag() > 0 || p.Root.Open > 0 || p.Root.Waiting() > 0 {
			return false, nil
		}
	}
	if all, err := allTaken(first); !all || err != nil {
		return false, err
	}
	for _, p := range first {
		level, err := c.Bus.Level(ctx, p.Module, p.Part)
		if err != nil || level.Last != p.Root.Seq {
			return false, err
		}
	}
	return true, nil
}

// allTaken reports whether every item between partitions has been received.
func allTaken(parts []Part) (bool, error) {
	marks := map[engine.Dest]message.Marks{}
	for _, p := range parts {
		if p.Root.Marks == nil {
			continue
		}
		m, err := message.DecodeMarks(string(p.Root.Marks))
		if err != nil {
			return false, err
		}
		marks[engine.Dest{To: p.Module, Part: p.Part}] = m
	}
	for _, p := range parts {
		from := message.Source{Module: p.Module, Part: uint32(p.Part)}
		for _, s := range p.Root.Sent {
			m := marks[s.Dest]
			switch got := m.Last(from); {
			case got < s.Number:
				return false, nil
			case got > s.Number:
				return false, fmt.Errorf("%w: %s %d has %d items of %s %d, which has sent %d",
					ErrForged, s.To, s.Part, got, p.Module, p.Part, s.Number)
			}
		}
	}
	return true, nil
}

// ErrForged means that a partition has received items that no partition has sent.
var ErrForged = errors.New("crawl: forged messages: pages may be missing; change the workers' " +
	"credentials and start a new crawl")

// waitAtMost is how long Wait relies on reports: a process that was killed sends no more.
const waitAtMost = 15 * time.Second

// Wait returns when nothing is left to do. It survives servers that are away for a while. It looks
// into the streams only when all processes report that they have nothing to do.
func (c *Crawl) Wait(ctx context.Context, look time.Duration) error {
	for {
		watch, stop := context.WithTimeout(ctx, waitAtMost)
		err := engine.WatchSessions(watch, c.Leases, func(alive map[string]engine.Session) bool {
			for _, s := range alive {
				if !s.Idle {
					return false
				}
			}
			return true
		})
		stop()
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return err
		}
		switch done, err := c.Finished(ctx); {
		case done && err == nil:
			return nil
		case errors.Is(err, ErrForged):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

// A Member is a process of the crawl as the others see it.
type Member struct {
	ID string
	Report
}

// Members returns the processes that are alive, or were until a moment ago.
func (c *Crawl) Members(ctx context.Context) (members []Member, err error) {
	sessions, err := engine.ReadSessions(ctx, c.Leases)
	if err != nil {
		return nil, err
	}
	return membersOf(sessions)
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
