package satstore

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

var rounds = flag.Uint64("rounds", 2, "seeds of each random test")

// optionSets are small in every way, so that each history meets every path.
var optionSets = map[string]Options{
	"full":       {},
	"flat":       {Radix: -1, Horizon: 100},
	"large":      {Flush: FlushLarge},
	"naive":      {Mode: Naive},
	"basic":      {Mode: Basic},
	"nolog":      {NoLog: true},
	"nolarge":    {NoLog: true, Flush: FlushLarge},
	"s2":         {Compression: S2},
	"zstd":       {Compression: Zstd},
	"roomy":      {Buffer: 1 << 20},
	"basicNoLog": {Mode: Basic, NoLog: true},
}

func small(o Options) Options {
	o.Start, o.Commit = 1000, -1
	if o.Radix == 0 {
		o.Radix, o.Horizon = 4, 3000
	}
	if o.Buffer == 0 {
		o.Buffer = 4 << 10
	}
	if o.Page == 0 {
		o.Page = 512
	}
	if o.pending == 0 {
		o.pending = 32 << 10
	}
	o.writers, o.inline = 1, true // so that a seed always leads to the same steps
	o.Merge = func(_, data, m []byte) []byte { return fmt.Appendf(data, "+%s", m) }
	return o
}

// A model is what a store should be.
type model struct {
	now     int64
	records map[string]*modelRecord
}

// A modelRecord is never changed, but replaced: so models of many moments can share it.
type modelRecord struct {
	slot int64
	data string
	mail []string
}

func (m *model) clone() *model {
	return &model{m.now, maps.Clone(m.records)}
}

func (r *modelRecord) merged() string {
	data := r.data
	for _, m := range r.mail {
		data += "+" + m
	}
	return data
}

func (m *model) contents() map[string]string {
	all := map[string]string{}
	for id, r := range m.records {
		all[id] = fmt.Sprint(r.slot, " ", r.merged())
	}
	return all
}

// A player does random things to a store and to a model. What a crash may go back to is in past.
type player struct {
	t      testing.TB
	o      Options
	random *rand.Rand
	fs     *vfs.Mem
	s      *Store
	m      *model
	past   []*model // since the last Sync, the present one included
	out    map[string]*held
	ids    int  // added so far
	late   bool // over maxDue slots were skipped: due records may be said to be of an earlier one
}

// seen returns what can be compared of a store's contents or a model's.
func (p *player) seen(contents map[string]string, now int64) map[string]string {
	if p.late {
		return sinceNow(p.t, contents, now)
	}
	return contents
}

type held struct {
	r     *Record
	taken int // messages
}

func newPlayer(t testing.TB, o Options, seed uint64) *player {
	p := &player{
		t: t, o: small(o), random: rand.New(rand.NewPCG(seed, 1)), fs: vfs.NewMem(),
		m: &model{1000, map[string]*modelRecord{}}, out: map[string]*held{},
	}
	p.s = mustOpen(t, p.fs, p.o)
	p.synced()
	return p
}

func (p *player) synced() { p.past = []*model{p.m.clone()} }

func (p *player) done() { p.past = append(p.past, p.m.clone()) }

// play does one thing. The error is the store's.
func (p *player) play() error {
	switch n := p.random.IntN(100); {
	case n < 25:
		return p.add(1)
	case n < 30:
		return p.add(p.random.IntN(30))
	case n < 55:
		return p.due()
	case n < 65:
		return p.giveBack()
	case n < 75:
		return p.update()
	case n < 79:
		return p.delete()
	case n < 96:
		return p.advance()
	}
	if err := p.s.Sync(); err != nil {
		return err
	}
	p.synced()
	return nil
}

func (p *player) id() string { return fmt.Sprint("https://a.test/", p.random.IntN(60)) }

func (p *player) slot() int64 {
	far := []int{2, 10, 100, 1000, 9000}
	return p.m.now - 1 + int64(p.random.IntN(far[p.random.IntN(len(far))]))
}

func (p *player) add(n int) error {
	var items []Item
	for range n {
		item := Item{p.id(), p.slot(), fmt.Append(nil, "v", p.ids)}
		if p.o.Mode == Basic {
			item.ID = fmt.Sprint("https://a.test/", p.ids)
		}
		p.ids++
		if p.random.IntN(20) == 0 {
			item.Data = fmt.Appendf(item.Data, "%*d", p.random.IntN(3000), 0)
		}
		items = append(items, item)
	}
	added, err := p.s.AddBatch(items)
	for _, item := range items {
		if p.m.records[item.ID] == nil && added > 0 {
			added--
			r := &modelRecord{slot: max(item.Slot, p.m.now), data: string(item.Data)}
			p.m.records[item.ID] = r
			p.done()
		}
	}
	require.Zero(p.t, added)
	return err
}

// due takes some records, gives most of them back, and holds the others.
func (p *player) due() error {
	most := p.random.IntN(40)
	last := int64(-1 << 62)
	if most == 0 {
		return nil
	}
	for r, err := range p.s.Due(p.t.Context()) {
		if err != nil {
			return err
		}
		id := string(r.ID)
		want := p.m.records[id]
		require.NotNil(p.t, want, "%s is due, but it is not there", id)
		require.Equal(p.t, want.merged(), string(r.Data), "%s in slot %d", id, p.m.now)
		require.LessOrEqual(p.t, want.slot, p.m.now)
		require.GreaterOrEqual(p.t, r.Slot, last)
		require.Nil(p.t, p.out[id])
		last = r.Slot
		p.out[id] = &held{r, len(want.mail)}
		if p.random.IntN(4) == 0 {
			if p.random.IntN(2) == 0 {
				r.Detach()
			}
		} else if err := p.reschedule(id); err != nil {
			return err
		}
		if most--; most == 0 {
			return nil
		}
	}
	for id, r := range p.m.records {
		require.True(p.t, r.slot > p.m.now || p.out[id] != nil, "%s was left out", id)
	}
	return nil
}

func (p *player) reschedule(id string) error {
	h, slot := p.out[id], p.slot()
	data := append(h.r.Data, fmt.Sprint(p.random.IntN(10))...)
	switch p.random.IntN(5) {
	case 0:
		data = data[:p.random.IntN(len(data))]
	case 1:
		data = h.r.Data
		if len(data) > 0 {
			data[p.random.IntN(len(data))] = 'x'
		}
	}
	m := p.m.records[id]
	if p.random.IntN(15) == 0 {
		if err := h.r.Delete(); err != nil {
			return err
		}
		delete(p.out, id)
		delete(p.m.records, id)
		p.done()
		return nil
	}
	want := string(data)
	if err := h.r.Reschedule(slot, data); err != nil {
		return err
	}
	require.Error(p.t, h.r.Reschedule(slot, data), "it was returned before")
	delete(p.out, id)
	if m != nil { // else it was deleted meanwhile
		p.m.records[id] = &modelRecord{max(slot, p.m.now+1), want, m.mail[h.taken:]}
	}
	p.done()
	return nil
}

func (p *player) giveBack() error {
	for _, id := range slices.Sorted(maps.Keys(p.out)) {
		if p.random.IntN(3) > 0 {
			continue
		}
		if err := p.reschedule(id); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) update() error {
	id, text := p.id(), fmt.Sprint("m", p.random.IntN(1000))
	err := p.s.Update(id, []byte(text))
	r := p.m.records[id]
	switch {
	case p.o.Mode == Basic:
		require.ErrorIs(p.t, err, ErrNoIndex)
		return nil
	case errors.Is(err, ErrUnknown):
		require.Nil(p.t, r)
		return nil
	case err == nil:
		require.NotNil(p.t, r, id)
		p.m.records[id] = &modelRecord{r.slot, r.data, append(slices.Clip(r.mail), text)}
		p.done()
	}
	return err
}

// delete does not touch what is out: the model could not tell it from one that is added again.
func (p *player) delete() error {
	id := p.id()
	if p.out[id] != nil || p.o.Mode == Basic {
		return nil
	}
	err := p.s.Delete(id)
	switch {
	case errors.Is(err, ErrUnknown):
		require.Nil(p.t, p.m.records[id])
		return nil
	case err == nil:
		require.NotNil(p.t, p.m.records[id])
		delete(p.m.records, id)
		p.done()
	}
	return err
}

func (p *player) advance() error {
	for range 1 + p.random.IntN(5) {
		err := p.s.Advance()
		if p.s.Now() > p.m.now {
			p.m.now++
			p.done()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *player) check() {
	p.t.Helper()
	require.Equal(p.t, p.m.now, p.s.Now())
	require.Equal(p.t, p.seen(p.m.contents(), p.m.now), p.seen(contents(p.t, p.s), p.m.now))
	p.checkStats()
	if p.o.Mode != Basic && !p.late {
		id := p.id()
		item, err := p.s.Get(id)
		if r := p.m.records[id]; r == nil {
			require.ErrorIs(p.t, err, ErrUnknown)
		} else {
			require.NoError(p.t, err)
			require.Equal(p.t, Item{id, r.slot, []byte(r.merged())}, item)
		}
	}
}

// checkStats compares what is counted. Deleted records count until they would be due.
func (p *player) checkStats() {
	p.t.Helper()
	got, due := p.s.Stats(), 0
	for _, r := range p.m.records {
		if r.slot <= p.m.now {
			due++
		}
	}
	require.EqualValues(p.t, len(p.out), got.Out)
	require.Equal(p.t, p.m.now, got.Slot)
	require.GreaterOrEqual(p.t, got.Records, int64(len(p.m.records)))
	require.GreaterOrEqual(p.t, got.Due, int64(due))
	require.LessOrEqual(p.t, got.Due, got.Records)
	if p.o.Mode == Basic { // where nothing is deleted but what is out
		require.EqualValues(p.t, len(p.m.records), got.Records)
		require.EqualValues(p.t, due, got.Due)
	}
}

// kill opens what a kill of the process would leave behind. All that was done must be there, synced
// or not.
func (p *player) kill() {
	p.t.Helper()
	if p.o.NoLog {
		return
	}
	s := mustOpen(p.t, p.fs.Clone(), p.o)
	require.Equal(p.t, p.m.now, s.Now())
	require.Equal(p.t, p.seen(p.m.contents(), p.m.now), p.seen(contents(p.t, s), p.m.now))
	require.NoError(p.t, s.Check())
	require.NoError(p.t, s.Close())
}

// reopen closes and opens the store. Records that were out are due again.
func (p *player) reopen() {
	require.NoError(p.t, p.s.Close())
	p.s = mustOpen(p.t, p.fs, p.o)
	p.out = map[string]*held{}
	p.synced()
}

func TestModel(t *testing.T) {
	t.Parallel()
	sets := maps.Clone(optionSets)
	sets["tight"] = Options{pending: 1 << 10} // so that changes have to be written at once
	for name, o := range sets {
		for seed := range *rounds {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				p := newPlayer(t, o, seed)
				for i := range 250 {
					require.NoError(t, p.play(), "step %d", i)
					if i%10 == 0 {
						p.check()
					}
					if i%30 == 0 {
						p.kill()
					}
					if i%97 == 0 {
						p.reopen()
						p.check()
					}
				}
				p.reopen()
				p.check()
				require.NoError(t, p.s.Close())
			})
		}
	}
}
