package satstore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// TestScanIsASnapshot changes the store at random during a scan, including checkpoints and new
// slots. The scan yields the state at its beginning.
func TestScanIsASnapshot(t *testing.T) {
	t.Parallel()
	for name, o := range optionSets {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, o, 11)
			for range 5 {
				for range 20 {
					require.NoError(t, p.play())
				}
				p.synced() // there is no crash, so earlier states are not needed
				want, got := p.m.contents(), map[string]string{}
				for item, err := range p.s.Scan() {
					require.NoError(t, err)
					require.NotContains(t, got, item.ID)
					got[item.ID] = fmt.Sprint(slotAt(item.At), " ", string(item.Data))
					if len(got) > 20 { // additions must not outrun the scan
						continue
					}
					require.NoError(t, p.play())
					if p.random.IntN(10) == 0 {
						require.NoError(t, p.s.checkpointNow())
						p.synced()
					}
				}
				require.Equal(t, want, got)
				p.check()
			}
			require.NoError(t, p.s.Close())
		})
	}
}

// TestMoreMailThanMemory: a bucket with more messages than fit into memory is spread over several.
// Each is read with its own messages. All messages are merged once, including those that arrive
// during the split, and wherever a kill interrupts it.
func TestMoreMailThanMemory(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	send := func(id string, text any) {
		require.NoError(t, s.Update(id, fmt.Append(nil, text)))
		want[id] += fmt.Sprint("+", text)
	}
	for i := range 60 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 1003, "x")
		want[id] = "x"
	}
	for n := range 20 {
		for i := range 60 {
			send(fmt.Sprint("https://a.test/", i), n)
		}
	}
	for n, more := 0, true; more; n++ { // each step of the split can be the last one before a kill
		if !testing.Short() || n%8 == 0 {
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, datasOf(t, killed))
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
		}
		send("https://a.test/7", len(want["https://a.test/7"]))
		var err error
		more, err = s.advanceTo(t.Context(), 1003)
		require.NoError(t, err)
	}
	require.Greater(t, len(s.due), 5)
	next := 0
	left := map[string]bool{}
	for id := range want {
		left[id] = true
	}
	due(t, s, 1003, func(r *Record) {
		require.Equal(t, want[r.ID], string(r.Data), r.ID)
		require.Equal(t, fmt.Sprint("https://a.test/", next), r.ID, "the order of arrival")
		next++
		delete(left, r.ID)
		if len(left)%7 == 0 {
			for id := range left {
				seq, err := s.seqOf(idset.KeyOf(id))
				require.NoError(t, err)
				// A record whose block was read counts as out.
				if b := s.numbers[s.places.get(seq)]; b.next == 0 && b != r.bucket {
					send(id, "in time")
				}
			}
		}
		most := 0
		for _, b := range s.due {
			most = max(most, len(b.mail))
		}
		require.Less(t, most, 30, "of 60")
		require.NoError(t, r.Reschedule(at(1010), r.Data))
	})
	require.Empty(t, left)
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestMessagesDuringASplit: messages for records that are being moved to a finer bucket arrive once
// and in order, before and after the record moves, in any order of moves.
func TestMessagesDuringASplit(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{Buffer: 1 << 20})
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	n := 0
	send := func(i int) {
		n++
		id := fmt.Sprint("https://a.test/", i)
		require.NoError(t, s.Update(id, fmt.Append(nil, n)))
		want[id] += fmt.Sprint("+", n)
	}
	for i := range 200 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 1000+int64(60+i%4), strings.Repeat("x", 2000))
		want[id] = strings.Repeat("x", 2000)
		send(i)
	}
	s.o.test.work = nil // so that only this test moves entries
	r := extent.NewReader(s.file, &s.mu, nil)
	steps := 0
	for nowOf(s) < 1060 {
		if s.split == nil {
			_, err := s.advanceTo(t.Context(), s.reach(1060))
			require.NoError(t, err)
			continue
		}
		for i := range 200 {
			if i%17 == steps%17 {
				send(i)
			}
		}
		next, _, err := s.split.read(r, s.split.phase(), 1<<32)
		require.NoError(t, err)
		require.NoError(t, s.moveBatch(next, 0, nil))
		if steps++; steps%4 == 0 {
			require.Equal(t, want, datasOf(t, s), "a concurrent scan")
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, datasOf(t, killed), "after a kill")
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
		}
	}
	require.Greater(t, steps, 10)
	require.NoError(t, s.Check())
	s.o.test.work = workNow
	due(t, s, 1070, func(r *Record) {
		require.Equal(t, want[r.ID], string(r.Data))
		delete(want, r.ID)
	})
	require.Empty(t, want)
}

// TestKillDuringASplit: a kill at any step of a split loses nothing, neither for Open nor for Repair,
// which also does not revive deleted records. The checkpoint is from before or during the split.
func TestKillDuringASplit(t *testing.T) {
	t.Parallel()
	every := 3 // steps from one kill to the next
	if testing.Short() {
		every = 16
	}
	// The large buffer needs splits to finer buckets only. With the small one, the messages also
	// have to be spread.
	for _, buffer := range []int64{1 << 20, 24 << 10} {
		fs, o := vfs.NewMem(), small(Options{Buffer: buffer})
		s := mustOpen(t, fs, o)
		for i := range 100 {
			id := fmt.Sprint("https://a.test/", i)
			mustAdd(t, s, id, 1000+int64(60+i%4), strings.Repeat("x", 300))
			for n := range 10 {
				require.NoError(t, s.Update(id, fmt.Append(nil, n, strings.Repeat("m", 50))))
			}
			if i%5 == 0 {
				require.NoError(t, s.Delete(id))
			}
			if i%10 == 0 {
				mustAdd(t, s, id, 1500, "again")
			}
		}
		want := datasOf(t, s)
		s.splitter.run = func() error { return nil } // so that only this test moves entries
		r := extent.NewReader(s.file, &s.mu, nil)
		steps := 0
		for nowOf(s) < 1063 {
			if s.split == nil {
				_, err := s.advanceTo(t.Context(), s.reach(1063))
				require.NoError(t, err)
				continue
			}
			next, _, err := s.split.read(r, s.split.phase(), 17)
			require.NoError(t, err)
			require.NoError(t, s.moveBatch(next, 0, nil))
			if steps++; steps%7 == 0 {
				require.NoError(t, s.checkpointNow())
			}
			require.EqualValues(t, len(want), s.Upcoming(at(1 << 40))[0], "each record counts once")
			require.EqualValues(t, len(want), s.Stats().Records)
			if steps%every > 0 {
				continue
			}
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, datasOf(t, killed), "after step %d", steps)
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
			to := vfs.NewMem()
			done, err := repair(fs.Clone(), to, o)
			require.NoError(t, err)
			require.Empty(t, done.Findings)
			repaired := mustOpen(t, to, o)
			require.Equal(t, want, datasOf(t, repaired), "after step %d", steps)
			require.NoError(t, repaired.Close())
		}
		require.Greater(t, steps, 100)
		require.NoError(t, s.Close())
	}
}

// TestSplitsBesideTheFlusher: far buckets are split while their entries move to the disk, and messages
// arrive for them. A kill at any time finds a log that fits.
func TestSplitsBesideTheFlusher(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := concurrentOptions(32 << 10)
	o.Buffer = 96 << 10
	s := mustOpen(t, fs, o)
	stop := make(chan struct{})
	var working sync.WaitGroup
	for worker := range 3 {
		working.Go(func() {
			for n := 0; n < 3000; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id, now := fmt.Sprintf("https://%d.test/%d", worker, n), nowOf(s)
				_, err := s.Add(id, at(now+40+int64(n%400)), bytes.Repeat([]byte("x"), 700))
				if err == nil {
					err = s.Update(fmt.Sprintf("https://%d.test/%d", worker, n*7/8), bytes.Repeat([]byte("m"), 50))
				}
				if err != nil && !errors.Is(err, ErrUnknown) { // it was due already
					t.Error(err)
					return
				}
			}
		})
	}
	for slot := int64(2); slot < 200; slot++ {
		for r, err := range s.Due(t.Context(), at(slot)) {
			require.NoError(t, err)
			require.NoError(t, r.Delete())
		}
		if slot%40 == 0 {
			s.mu.Lock() // the race detector does not know that a kill is no access
			left := fs.Clone()
			s.mu.Unlock()
			killed, err := open(left, o)
			require.NoError(t, err, "after a kill at %d", slot)
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
		}
	}
	close(stop)
	working.Wait()
	require.Positive(t, s.Stats().Split)
	require.NoError(t, s.Close())
}

// TestOrderWhileABucketIsSpread: records that are added while the bucket of the current slot is being
// spread come after its own, also after a kill.
func TestOrderWhileABucketIsSpread(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{Buffer: 24 << 10})
	s := mustOpen(t, fs, o)
	var want []string
	for i := range 100 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 1003, "x")
		for n := range 10 {
			require.NoError(t, s.Update(id, fmt.Append(nil, n, strings.Repeat("m", 50))))
		}
		want = append(want, id)
	}
	s.splitter.run = func() error { return nil } // so that only this test moves entries
	for s.split == nil {
		_, err := s.advanceTo(t.Context(), s.reach(1003))
		require.NoError(t, err)
	}
	require.Greater(t, len(s.split.into), 3)
	r := extent.NewReader(s.file, &s.mu, nil)
	for n := 0; s.split != nil; n++ {
		if n%5 == 0 {
			id := fmt.Sprint("https://late.test/", n)
			mustAdd(t, s, id, 1000, "x")
			want = append(want, id)
		}
		if n%7 == 0 {
			require.NoError(t, s.checkpointNow())
		}
		if !testing.Short() || n%8 == 0 {
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, due(t, killed, 1003, nil))
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
		}
		next, _, err := s.split.read(r, s.split.phase(), 17)
		require.NoError(t, err)
		require.NoError(t, s.moveBatch(next, 0, nil))
	}
	require.Equal(t, want, due(t, s, 1003, nil))
	require.NoError(t, s.Close())
}
