package satstore

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
)

var rounds = flag.Uint64("rounds", 2, "seeds of each random test")

// optionSets are small in every way, so that each history covers every path.
var optionSets = map[string]Options{
	"full":   {},
	"coarse": {test: testOptions{shape: calendar.Shape{First: 4, More: 3}}},
	"roomy":  {Buffer: 1 << 20},
	"tight":  {test: testOptions{pending: 1 << 10}}, // so that changes must be written immediately
}

func small(o Options) Options {
	o.Start, o.Commit = at(1000), -1
	if o.test.shape == (calendar.Shape{}) {
		o.test.shape = calendar.Shape{First: 2, More: 2}
	}
	if o.Buffer == 0 {
		o.Buffer = 4 << 10
	}
	if o.test.page == 0 {
		o.test.page = 512
	}
	if o.test.pending == 0 {
		o.test.pending = 32 << 10
	}
	o.test.work, o.test.writers = workNow, 1 // so that a seed always produces the same steps
	o.Merge = func(_ string, data, m []byte) []byte { return fmt.Appendf(data, "+%s", m) }
	return o
}

// workNow does the background work of a store that has no goroutines, except for tasks that run
// already and wait for room.
func workNow(s *Store) {
	for again := true; again; {
		again = false
		for _, t := range s.all() {
			s.mu.Lock()
			refused := s.refusal() != nil
			s.mu.Unlock()
			if _, runs := working.Load(t); refused || runs {
				continue
			}
			select {
			case <-t.ask:
				working.Store(t, true)
				s.runTask(t)
				working.Delete(t)
				again = true
			default:
			}
		}
	}
}

var working sync.Map // of *task, by workNow

// at returns the start of a slot of an hour, and slotAt is its inverse.
func at(slot int64) time.Time { return timeOf(slot, time.Hour) }

func slotAt(t time.Time) int64 { return slotOf(t, time.Hour) }

// A model is the expected content of a store.
type model map[string]*modelRecord

// A modelRecord is immutable, so that models of many moments can share it.
type modelRecord struct {
	slot int64
	data string
	mail []string
}

func (r *modelRecord) merged() string {
	data := r.data
	for _, m := range r.mail {
		data += "+" + m
	}
	return data
}

func (m model) contents() map[string]string {
	all := map[string]string{}
	for id, r := range m {
		all[id] = fmt.Sprint(r.slot, " ", r.merged())
	}
	return all
}

// A player applies random operations to a store and to a model. past has the states that a crash
// may restore.
type player struct {
	t      testing.TB
	o      Options
	random *rand.Rand
	fs     *vfs.Mem
	s      *Store
	m      model
	past   []model // since the last Sync, including the current one
	out    map[string]*held
	erased []*held // out, and deleted by their ids
	ids    int     // added so far
	unsure func()  // makes the change that failed in the model; nil if none did
}

type held struct {
	r     *Record
	taken int // messages
}

func newPlayer(t testing.TB, o Options, seed uint64) *player {
	p := &player{
		t: t, o: small(o), random: rand.New(rand.NewPCG(seed, 1)), fs: vfs.NewMem(),
		m: model{}, out: map[string]*held{},
	}
	p.s = mustOpen(t, p.fs, p.o)
	p.synced()
	return p
}

func (p *player) synced() { p.past = []model{maps.Clone(p.m)} }

func (p *player) done() { p.past = append(p.past, maps.Clone(p.m)) }

func (p *player) now() int64 { return slotAt(p.s.Now()) }

// play does one operation. The error is the store's.
func (p *player) play() error {
	switch n := p.random.IntN(100); {
	case n < 25:
		return p.add(1)
	case n < 30:
		return p.add(p.random.IntN(30))
	case n < 70:
		return p.due()
	case n < 80:
		return p.giveBack()
	case n < 90:
		return p.update()
	case n < 95:
		return p.delete()
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
	return p.now() - 1 + int64(p.random.IntN(far[p.random.IntN(len(far))]))
}

func (p *player) add(n int) error {
	var items []Item
	now := p.now()
	for range n {
		item := Item{p.id(), at(p.slot()), fmt.Append(nil, "v", p.ids)}
		p.ids++
		if p.random.IntN(20) == 0 {
			item.Data = fmt.Appendf(item.Data, "%*d", p.random.IntN(3000), 0)
		}
		items = append(items, item)
	}
	added, err := p.s.AddBatch(items)
	for _, item := range items {
		if p.m[item.ID] == nil && added > 0 {
			added--
			p.m[item.ID] = &modelRecord{slot: max(slotAt(item.At), now), data: string(item.Data)}
			p.done()
		}
	}
	require.Zero(p.t, added)
	return err
}

// due takes some records, returns most of them, and holds the others.
func (p *player) due() error {
	most := p.random.IntN(40)
	if most == 0 {
		return nil
	}
	until := p.now() + int64(p.random.IntN(9)) - 2
	last := int64(-1 << 62)
	for r, err := range p.s.Due(p.t.Context(), at(until).Add(time.Minute)) {
		if err != nil {
			return err
		}
		want := p.m[r.ID]
		require.NotNil(p.t, want, "%s is due, but it is not there", r.ID)
		require.Equal(p.t, want.merged(), string(r.Data), "%s in slot %d", r.ID, p.now())
		require.Equal(p.t, want.slot, slotAt(r.At()))
		require.LessOrEqual(p.t, want.slot, p.now())
		require.GreaterOrEqual(p.t, want.slot, last)
		require.Nil(p.t, p.out[r.ID])
		last = want.slot
		p.out[r.ID] = &held{r, len(want.mail)}
		if p.random.IntN(4) == 0 {
			p.detach(r)
		} else if err := p.reschedule(r.ID); err != nil {
			return err
		}
		if most--; most == 0 {
			return nil
		}
	}
	require.GreaterOrEqual(p.t, p.now(), until)
	for id, r := range p.m {
		require.True(p.t, r.slot > p.now() || p.out[id] != nil, "%s was skipped", id)
	}
	return nil
}

// detach detaches every other record.
func (p *player) detach(r *Record) {
	if p.random.IntN(2) == 0 {
		own := r.Detach()
		p.out[r.ID].r = own
		if err := r.Reschedule(at(0), nil); !errors.Is(err, ErrReadOnly) {
			require.ErrorIs(p.t, err, ErrDone)
		}
		require.Equal(p.t, r.ID, own.ID)
		require.Equal(p.t, r.At(), own.At())
		require.Same(p.t, own, own.Detach())
	}
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
	m := p.m[id]
	if p.random.IntN(15) == 0 {
		return p.changed(h.r.Delete(), func() {
			delete(p.out, id)
			delete(p.m, id)
		})
	}
	want, now := string(data), p.now()
	err := h.r.Reschedule(at(slot), data)
	if err == nil {
		require.Error(p.t, h.r.Reschedule(at(slot), data), "the record has already been returned")
	}
	return p.changed(err, func() {
		delete(p.out, id)
		p.m[id] = &modelRecord{max(slot, now+1), want, m.mail[h.taken:]}
	})
}

// changed makes a change in the model unless it has failed. Then its outcome is unknown.
func (p *player) changed(err error, apply func()) error {
	done := func() {
		apply()
		p.done()
	}
	if err != nil {
		p.unsure = done
	} else {
		done()
	}
	return err
}

// settle finds out whether the change that failed was made.
func (p *player) settle() {
	p.t.Helper()
	apply := p.unsure
	if p.unsure = nil; apply != nil && !reflect.DeepEqual(p.m.contents(), contents(p.t, p.s)) {
		apply()
	}
}

func (p *player) giveBack() error {
	for len(p.erased) > 0 && p.random.IntN(2) == 0 {
		r := p.erased[0].r
		var err error
		if p.random.IntN(2) == 0 {
			err = r.Delete()
		} else {
			err = r.Reschedule(at(p.slot()), []byte("erased"))
		}
		if err != nil {
			return err
		}
		require.ErrorIs(p.t, r.Delete(), ErrDone)
		p.erased = p.erased[1:]
	}
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
	r := p.m[id]
	if r == nil {
		return p.unknown(err)
	}
	return p.changed(err, func() {
		p.m[id] = &modelRecord{r.slot, r.data, append(slices.Clip(r.mail), text)}
	})
}

// unknown checks the error of a change of an id that is not there.
func (p *player) unknown(err error) error {
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	require.Error(p.t, err)
	return err
}

// delete deletes an id. If its record is out, what happens to it then has no effect.
func (p *player) delete() error {
	id := p.id()
	err := p.s.Delete(id)
	if p.m[id] == nil {
		return p.unknown(err)
	}
	return p.changed(err, func() {
		delete(p.m, id)
		if h := p.out[id]; h != nil {
			p.erased = append(p.erased, h)
			delete(p.out, id)
		}
	})
}

func (p *player) check() {
	p.t.Helper()
	require.Equal(p.t, p.m.contents(), contents(p.t, p.s))
	p.checkStats()
	id := p.id()
	item, err := p.s.Get(id)
	if r := p.m[id]; r == nil {
		require.ErrorIs(p.t, err, ErrUnknown)
	} else {
		require.NoError(p.t, err)
		require.Equal(p.t, Item{id, at(r.slot), []byte(r.merged())}, item)
	}
}

// checkStats compares the counts.
func (p *player) checkStats() {
	p.t.Helper()
	got, due := p.s.Stats(), 0
	for _, r := range p.m {
		if r.slot <= p.now() {
			due++
		}
	}
	require.EqualValues(p.t, len(p.out)+len(p.erased), got.Out)
	require.EqualValues(p.t, len(p.m), got.Records)
	require.EqualValues(p.t, due, got.Due)
	require.EqualValues(p.t, len(p.m), p.s.Upcoming(at(1 << 40))[0])
	// Merged files of ids are kept until the next checkpoint.
	rest := p.fs.Used() - got.DiskSize - int64(p.rest())
	require.GreaterOrEqual(p.t, rest, int64(0))
	require.Less(p.t, rest, int64(20_000))
}

// rest returns the bytes of files that DiskSize leaves out.
func (p *player) rest() int {
	return len(p.fs.Data("CHECKPOINT")) + len(p.fs.Data("pending"))
}

// kill opens the state after a kill of the process. All changes must be there, synced or not.
func (p *player) kill() {
	p.t.Helper()
	s := mustOpen(p.t, p.fs.Clone(), p.o)
	require.Equal(p.t, p.s.Now(), s.Now())
	require.Equal(p.t, p.m.contents(), contents(p.t, s))
	require.NoError(p.t, s.Check())
	require.NoError(p.t, s.Close())
}

// reopen closes and opens the store. Records that were out are due again.
func (p *player) reopen() {
	require.NoError(p.t, p.s.Close())
	p.s = mustOpen(p.t, p.fs, p.o)
	p.out, p.erased = map[string]*held{}, nil
	p.synced()
}

func TestModel(t *testing.T) {
	t.Parallel()
	for name, o := range optionSets {
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
