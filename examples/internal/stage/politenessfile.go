package stage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/scheduler"
)

// An entryOwner is the host or the address that an entry of the scheduler is about.
type entryOwner struct {
	host string
	addr netip.Addr
}

func ownerOf(e scheduler.Entry) entryOwner { return entryOwner{e.Host, e.Addr} }

// Save saves the state of the queue, for the Restore of a later crawl. It looks at all hosts that are
// not in their default state, and writes those that have changed since. Only one call of Save may run
// at a time.
func (p *Politeness) Save(to *Journal) error {
	saved := make(map[entryOwner]uint32, len(p.saved))
	var changed []scheduler.Entry
	for e := range p.Queue.All(time.Now()) {
		compared := e
		compared.RetryAfter = e.RetryAfter.Round(time.Second) // it is computed anew each time
		text, err := json.Marshal(compared)
		if err != nil {
			return fmt.Errorf("stage: write the state of %s: %w", e.Host, err)
		}
		owner, sum := ownerOf(e), durable.Sum(text)
		if before, known := p.saved[owner]; !known || before != sum {
			changed = append(changed, e)
		}
		saved[owner] = sum
	}
	for owner := range p.saved {
		if _, stays := saved[owner]; !stays { // it is in its default state again
			changed = append(changed, scheduler.Entry{Host: owner.host, Addr: owner.addr})
		}
	}
	all := func() ([]byte, error) { return AppendEntries(nil, p.Queue.All(time.Now())) }
	if err := SaveEntries(to, changed, all); err != nil {
		return err
	}
	p.saved = saved
	return nil
}

// Restore restores the state of an earlier queue. If the state is damaged, it restores the entries
// before the damage. In any case, even without a state, hosts count as just visited: the visits
// before a crash are not recorded. So a back-off begins again, and failures that make it longer than
// Patience are forgotten: a short crawl would end before it, however often it is resumed.
func (p *Politeness) Restore(state []byte) error {
	now := time.Now() // one for all, as each new time costs a look at all hosts
	if err := p.Queue.Restore(scheduler.Entry{}, now); err != nil {
		return err
	}
	latest := map[entryOwner]scheduler.Entry{}
	var damage error
	for entry, err := range Entries[scheduler.Entry](state) {
		if damage = err; err == nil {
			latest[ownerOf(entry)] = entry
		}
	}
	most := 0
	for backoff := cmp.Or(p.Backoff, max(scheduler.DefaultBackoff, 2*p.Delay)); most < math.MaxUint8 && backoff+backoff/10 <= p.Patience; most++ {
		backoff *= 2
	}
	for _, entry := range latest {
		entry.Failures = min(entry.Failures, most)
		if err := p.Queue.Restore(entry, now); err != nil {
			return err
		}
	}
	return damage
}
