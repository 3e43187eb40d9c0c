package satstore

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

var (
	torture = flag.Duration("torture", 0, "how long TestTorture runs; 0 means a few rounds")
	seed    = flag.Uint64("seed", 0, "the first seed of TestTorture; 0 means one from the clock")
)

// TestTorture uses a store from several goroutines at once: writers that add, send messages, delete
// and add again; one that takes what is due and returns it late; readers; and checkpoints. Meanwhile
// the disk loses power, fails once, or fills up, at a random step. Each record must then be in a
// state that its writer put it in since the last Sync. Then the next round begins with this disk.
func TestTorture(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	end, least := time.Now().Add(*torture), uint64(4)
	if testing.Short() {
		least = 1
	}
	for n := uint64(0); n < least || time.Now().Before(end); n++ {
		if ok := t.Run(fmt.Sprint("seed=", first+n), func(t *testing.T) {
			newTorturer(t, first+n).run(6)
		}); !ok {
			return
		}
	}
}

// A torturer tortures one store. Each writer has ids of its own, so that it knows their states.
type torturer struct {
	t       *testing.T
	random  *rand.Rand
	o       Options
	fs      *vfs.Mem
	s       *Store
	writers []*writer
	stop    chan struct{}
	once    sync.Once
}

// A writer owns some ids. For each it has the texts that a crash may leave: those since the last
// Sync, and "" for no record. The last one is the current one.
type writer struct {
	mu     sync.Mutex
	random *rand.Rand
	name   string
	states map[string][]string
	n      int
}

func newTorturer(t *testing.T, seed uint64) *torturer {
	random := rand.New(rand.NewPCG(seed, 7))
	o := concurrentOptions(int(1+random.IntN(16)) << 10)
	o.Buffer = int64(16+random.IntN(100)) << 10
	o.Merge = func(_ string, data, m []byte) []byte { return fmt.Appendf(data, "+%s", m) }
	o.Commit = []time.Duration{-1, time.Millisecond}[random.IntN(2)]
	c := &torturer{t: t, random: random, o: o, fs: vfs.NewMem()}
	for i := range 3 {
		c.writers = append(c.writers, &writer{
			random: rand.New(rand.NewPCG(seed, uint64(100+i))), name: fmt.Sprint("w", i),
			states: map[string][]string{},
		})
	}
	return c
}

func (c *torturer) run(rounds int) {
	var err error
	c.s = mustOpen(c.t, c.fs, c.o)
	for range rounds {
		c.stop, c.once = make(chan struct{}), sync.Once{}
		kind := c.random.IntN(4)
		c.s.mu.Lock()
		switch step := c.fs.Steps() + 1 + c.random.IntN(600); kind {
		case 0:
			c.fs.FailAt(step, vfs.ErrPower)
		case 1:
			c.fs.FailAt(step, errBad)
		case 2:
			c.fs.SetSpace(c.fs.Used() + int64(c.random.IntN(100_000)))
		}
		c.s.mu.Unlock()
		c.work()
		crash := kind == 0 || c.random.IntN(2) == 0
		closed := false
		c.fs.FailAt(0, nil)
		c.fs.SetSpace(-1)
		if kind != 0 {
			if c.s.Sync() == nil { // it works on
				c.synced()
				require.NoError(c.t, c.s.Check())
				c.compare(c.s, false)
			}
			if !crash {
				closed = c.s.Close() == nil
			}
		}
		if crash {
			abandon(c.s)
			c.fs = c.fs.Crash(rand.New(rand.NewPCG(c.random.Uint64(), 0)))
		} else if !closed {
			c.fs = c.fs.Clone()
		}
		c.s, err = open(c.fs, c.o)
		require.NoError(c.t, err, "kind %d", kind)
		require.NoError(c.t, c.s.Sync())
		require.NoError(c.t, c.s.Check())
		c.compare(c.s, true)
		c.repairs()
	}
	require.NoError(c.t, c.s.Close())
}

// work runs all goroutines until each has done its work, or the store fails.
func (c *torturer) work() {
	var running sync.WaitGroup
	for _, w := range c.writers {
		running.Go(func() {
			for range 300 {
				if err := c.write(w); err != nil {
					c.fail(err)
					return
				}
			}
		})
	}
	var others sync.WaitGroup
	for name, use := range map[string]func(i int) error{
		"due":        c.visit,
		"checkpoint": func(int) error { return c.s.checkpointNow() },
		"get": func(i int) error {
			_, err := c.s.Get(fmt.Sprintf("w%d/%d", i%3, i%40))
			if errors.Is(err, ErrUnknown) {
				err = nil
			}
			return err
		},
		"scan": func(int) (err error) {
			twice := map[string]bool{}
			for item, err := range c.s.Scan() {
				if err != nil {
					return err
				}
				if twice[item.ID] {
					return fmt.Errorf("%s is there twice", item.ID)
				}
				twice[item.ID] = true
			}
			return nil
		},
		"stats": func(int) error { c.s.Stats(); c.s.Upcoming(at(2000)); return nil },
	} {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-c.stop:
					return
				default:
				}
				if err := use(i); err != nil {
					c.fail(fmt.Errorf("%s: %w", name, err))
					return
				}
			}
		})
	}
	running.Wait()
	c.once.Do(func() { close(c.stop) })
	others.Wait()
}

// fail stops everything. Only the planned faults are expected.
func (c *torturer) fail(err error) {
	c.once.Do(func() { close(c.stop) })
	if !errors.Is(err, ErrReadOnly) && !errors.Is(err, vfs.ErrPower) && !errors.Is(err, errBad) {
		c.t.Error(err)
	}
}

// write changes one of a writer's ids.
func (c *torturer) write(w *writer) error {
	select {
	case <-c.stop:
		return nil
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	id := fmt.Sprintf("%s/%d", w.name, w.random.IntN(40))
	was := w.states[id]
	if was == nil {
		was = []string{""}
	}
	now := was[len(was)-1]
	text := fmt.Sprint(w.n, strings.Repeat("x", w.random.IntN(300)))
	maybe := func(next string) { w.states[id] = append(slices.Clip(was), next) } // in case of an error
	switch {
	case now == "":
		maybe(text)
		slot := nowOf(c.s) + int64(w.random.IntN([]int{2, 10, 100, 2000}[w.random.IntN(4)]))
		added, err := c.s.Add(id, at(slot), []byte(text))
		if err == nil && !added {
			return fmt.Errorf("%s is known, but was deleted", id)
		}
		return err
	case w.random.IntN(3) == 0:
		maybe("")
		return c.s.Delete(id)
	case w.random.IntN(20) == 0:
		// What came before is durable, if no other call has failed in between.
		if err := c.s.Sync(); err != nil {
			return err
		}
		for id, states := range w.states {
			w.states[id] = states[len(states)-1:]
		}
		return nil
	}
	maybe(now + "+" + text)
	return c.s.Update(id, []byte(text))
}

// visit takes what is due, and returns most of it, some of it late.
func (c *torturer) visit(int) error {
	random := rand.New(rand.NewPCG(uint64(nowOf(c.s)), 3))
	var late []*Record
	for r, err := range c.s.Due(c.t.Context(), c.s.Now().Add(3*time.Hour)) {
		if err != nil {
			return err
		}
		if random.IntN(3) == 0 {
			late = append(late, r.Detach())
			continue
		}
		if err := r.Reschedule(r.At().Add(time.Duration(1+random.IntN(90))*time.Hour), r.Data); err != nil {
			return err
		}
	}
	for _, r := range late {
		if err := r.Reschedule(r.At().Add(time.Duration(1+random.IntN(900))*time.Hour), r.Data); err != nil {
			return err
		}
	}
	return nil
}

func (c *torturer) synced() {
	for _, w := range c.writers {
		for id, states := range w.states {
			// The change that has failed may have been made or not.
			w.states[id] = states[max(0, len(states)-2):]
		}
	}
}

// compare compares a store with the states of all writers. If settle is true, the state found is
// the only one from now on.
func (c *torturer) compare(s *Store, settle bool) {
	got := datasOf(c.t, s)
	for _, w := range c.writers {
		for id, states := range w.states {
			text := got[id]
			require.Contains(c.t, states, text, id)
			delete(got, id)
			if settle {
				w.states[id] = []string{text}
			}
		}
	}
	require.Empty(c.t, got)
	if settle {
		require.EqualValues(c.t, s.Stats().Records, len(datasOf(c.t, s)))
	}
}

// repairs damages a copy of the disk, and repairs that. It loses at most what it reports, and
// invents nothing. An intact copy loses nothing.
func (c *torturer) repairs() {
	want := datasOf(c.t, c.s)
	for flips := range 3 {
		c.s.mu.Lock()
		damaged := c.fs.Clone()
		c.s.mu.Unlock()
		if size := len(damaged.Data("buckets")); size > 4096 {
			for range flips {
				damaged.Flip("buckets", int64(4096+c.random.IntN(size-4096)), c.random.IntN(8))
			}
		}
		to := vfs.NewMem()
		done, err := repair(damaged, to, c.o)
		require.NoError(c.t, err)
		s := mustOpen(c.t, to, c.o)
		got := datasOf(c.t, s)
		require.NoError(c.t, s.Check())
		require.NoError(c.t, s.Close())
		if len(done.Findings) == 0 {
			require.True(c.t, maps.Equal(want, got), "%d and %d records", len(want), len(got))
			continue
		}
		require.NotZero(c.t, flips)
		require.GreaterOrEqual(c.t, len(got)+int(done.Lost), len(want))
		for id := range got {
			require.Contains(c.t, want, id)
		}
	}
}
