package satstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// An owner is the only goroutine that changes some ids, so it always knows what the store must
// return for them, even if others visit them. Visits do not change the data.
type owner struct {
	s      *Store
	name   int
	random *rand.Rand
	want   map[string]string // by id
	lives  int               // tells a record from earlier ones with its id
}

func (o *owner) id() string { return fmt.Sprintf("https://%d.test/%d", o.name, o.random.IntN(25)) }

// step does one random operation and compares. It returns errors, as it runs in another goroutine.
func (o *owner) step() error {
	id := o.id()
	text, there := o.want[id]
	switch n := o.random.IntN(10); {
	case n < 3 && !there:
		o.lives++
		life := fmt.Sprint("life ", o.lives)
		added, err := o.s.Add(id, o.s.Now().Add(time.Duration(o.random.IntN(6))*time.Hour), []byte(life))
		if err != nil || !added {
			return fmt.Errorf("add %s, which is deleted: %v, %w", id, added, err)
		}
		o.want[id] = life
	case n < 6 && there:
		o.lives++
		message := fmt.Sprint("message ", o.lives)
		o.want[id] = text + "+" + message
		return o.s.Update(id, []byte(message))
	case n == 6 && there:
		delete(o.want, id)
		return o.s.Delete(id)
	case n == 7 && there:
		if added, err := o.s.Add(id, at(0), []byte("an impostor")); err != nil || added {
			return fmt.Errorf("add %s, which is known: %v, %w", id, added, err)
		}
	}
	return o.compare(id)
}

func (o *owner) compare(id string) error {
	item, err := o.s.Get(id)
	want, there := o.want[id]
	switch {
	case !there && err == nil:
		return fmt.Errorf("get %s, which is deleted: %q", id, item.Data)
	case there && err != nil:
		return fmt.Errorf("get %s: %w", id, err)
	case there && string(item.Data) != want:
		return fmt.Errorf("get %s: %q, want %q", id, item.Data, want)
	}
	return nil
}

// concurrentOptions are small options with all background goroutines.
func concurrentOptions(pending int) Options {
	o := small(Options{Buffer: 16 << 10})
	o.Start, o.Commit = at(1), time.Millisecond
	o.test.work, o.test.pending = nil, pending
	return o
}

// TestConcurrentOwners lets goroutines add, update, delete and read records while Due hands the
// same ones out, and others return them later. Each message must arrive once, in order, at the
// record that it was sent to; deleted records must not return.
func TestConcurrentOwners(t *testing.T) {
	t.Parallel()
	roomy := concurrentOptions(1 << 20)
	roomy.Buffer = 0
	for name, o := range map[string]Options{"tight": concurrentOptions(8 << 10), "roomy": roomy} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := mustOpen(t, fs, o)
			owners := make([]*owner, 3)
			var working, fetching sync.WaitGroup
			for i := range owners {
				owners[i] = &owner{s: s, name: i, random: rand.New(rand.NewPCG(uint64(i), 9)),
					want: map[string]string{}}
				working.Go(func() {
					for range 400 {
						if err := owners[i].step(); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			done := make(chan struct{})
			go func() { working.Wait(); close(done) }()
			out := make(chan *Record, 40)
			for range 2 {
				fetching.Go(func() { bringBack(t, out) })
			}
			walkUntil(t, s, done, out)
			close(out)
			fetching.Wait()
			require.Zero(t, s.Stats().Out)
			want := map[string]string{}
			for _, o := range owners {
				for id, text := range o.want {
					want[id] = text
				}
			}
			require.Equal(t, want, datasOf(t, s))
			require.NoError(t, s.Check())
			require.NoError(t, s.Sync())
			abandon(s)
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, datasOf(t, killed), "after a kill")
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
		})
	}
}

// walkUntil takes the records of slot after slot, without waiting for those that are out, until the
// others are done.
func walkUntil(t *testing.T, s *Store, done <-chan struct{}, out chan<- *Record) {
	for slot := int64(1); ; slot++ {
		for r, err := range s.Due(t.Context(), at(slot)) {
			if err != nil {
				t.Error(err)
				return
			}
			out <- r
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// bringBack returns records later, in another order.
func bringBack(t *testing.T, out <-chan *Record) {
	var held []*Record
	n := 0
	giveBack := func(i int) {
		r := held[i]
		held[i] = held[len(held)-1]
		held = held[:len(held)-1]
		if n++; n%3 == 0 {
			r = r.Detach()
		}
		if err := r.Reschedule(r.At().Add(time.Duration(1+n%9)*time.Hour), r.Data); err != nil {
			t.Error(err)
		}
	}
	for r := range out {
		if held = append(held, r); len(held) > 15 {
			giveBack(n % len(held))
		}
	}
	for len(held) > 0 {
		giveBack(0)
	}
}

// TestCallbacksRunWithoutALock: Merge and the bodies of loops are the caller's code, and may use
// the store.
func TestCallbacksRunWithoutALock(t *testing.T) {
	var s *Store
	merged := 0
	s = mustOpen(t, vfs.NewMem(), Options{
		Start: at(1), Commit: -1, Merge: func(_ string, data, message []byte) []byte {
			merged++
			require.NoError(t, s.Update("other", nil))
			_, err := s.Add(fmt.Sprint("merged ", merged), at(50), nil)
			require.NoError(t, err)
			require.Positive(t, s.Stats().Records)
			return append(data, message...)
		},
	})
	mustAdd(t, s, "other", 80, "y")
	mustAdd(t, s, "first", 1, "x")
	mustAdd(t, s, "second", 1, "x")
	require.NoError(t, s.Update("first", []byte("!")))
	_, err := s.Get("first")
	require.NoError(t, err)
	require.Equal(t, 1, merged)
	for item, err := range s.Scan() {
		require.NoError(t, err)
		require.NoError(t, s.Sync(), item.ID)
		break // merging leaves more messages to merge
	}
	seen := due(t, s, 1, func(r *Record) {
		require.NoError(t, s.Check())
		require.NoError(t, s.pass(nowOf(s)+1), "a slot may begin while the previous one is read")
		_, err := s.Get(r.ID)
		require.NoError(t, err)
		require.NoError(t, r.Reschedule(at(90), r.Data))
	})
	require.Equal(t, []string{"first", "second"}, seen)
	require.EqualValues(t, 3, nowOf(s))
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestIterationsContinue: however an iteration ends, the next one continues after it, and records
// that were handed out stay with the caller.
func TestIterationsContinue(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(cancel func()) (stop bool)
		err  error // that the iteration yields
	}{
		{"break", func(func()) bool { return true }, nil},
		{"the context ends", func(cancel func()) bool { cancel(); return false }, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustOpen(t, vfs.NewMem(), logged())
			for i := range 20 {
				mustAdd(t, s, fmt.Sprintf("%02d", i), 1, "x")
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ids []string
			var last error
			for r, err := range s.Due(ctx, at(1)) {
				require.NoError(t, last, "an error ends the iteration")
				if last = err; err != nil {
					require.Nil(t, r)
					continue
				}
				ids = append(ids, r.ID)
				if len(ids) == 6 && tt.end(cancel) {
					break
				}
			}
			require.ErrorIs(t, last, tt.err)
			require.Len(t, ids, 6)
			require.EqualValues(t, 6, s.Stats().Out)
			ids = append(ids, due(t, s, 1, nil)...)
			for i, id := range ids {
				require.Equal(t, fmt.Sprintf("%02d", i), id)
			}
			require.Len(t, ids, 20)
			require.EqualValues(t, 20, s.Stats().Out)
		})
	}
}

// TestCloseDuringDue: the iteration ends with an error, and records that were out are due again.
func TestCloseDuringDue(t *testing.T) {
	fs, o := vfs.NewMem(), logged()
	s := mustOpen(t, fs, o)
	for i := range 4 {
		mustAdd(t, s, fmt.Sprint(i), 1, string(make([]byte, extent.BlockSize)))
	}
	var seen []string
	var last error
	for r, err := range s.Due(t.Context(), at(1)) {
		if last = err; err != nil {
			break
		}
		seen = append(seen, r.ID)
		if len(seen) == 1 {
			require.NoError(t, r.Reschedule(at(2), nil))
		} else if len(seen) == 2 {
			require.NoError(t, s.Close())
			require.ErrorIs(t, r.Reschedule(at(2), nil), ErrClosed)
		}
	}
	require.ErrorIs(t, last, ErrClosed)
	require.Equal(t, []string{"0", "1"}, seen)
	s = mustOpen(t, fs, o)
	require.Equal(t, []string{"1", "2", "3"}, due(t, s, 1, nil))
}

func TestOnlyOneDueAtATime(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), logged())
	mustAdd(t, s, "https://a.test/", 0, "")
	due(t, s, 1, func(r *Record) {
		require.ErrorIs(t, firstOf(s.Due(t.Context(), at(1))), ErrBusy)
		require.NoError(t, r.Delete())
	})
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), ErrClosed)
}

// TestPanicsLoseNothing: records handed out before the loop body panics are out, the others are
// not.
func TestPanicsLoseNothing(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), logged())
	for i := range 5 {
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), 0, "x")
	}
	var first []*Record
	require.Panics(t, func() {
		for r := range s.Due(t.Context(), at(1)) {
			if first = append(first, r); len(first) == 2 {
				panic("consumer")
			}
		}
	})
	require.EqualValues(t, 2, s.Stats().Out)
	require.Len(t, due(t, s, 1, func(r *Record) { require.NoError(t, r.Reschedule(at(3), nil)) }), 3)
	for _, r := range first {
		require.NoError(t, r.Reschedule(at(4), nil))
	}
	require.NoError(t, s.Check())
}

// TestLastOneIsDeleted: when the last record of a past slot turns out to be deleted, the bucket is
// dropped, and the records after it, which moved earlier, are not handed out again.
func TestLastOneIsDeleted(t *testing.T) {
	fs, o := vfs.NewMem(), logged()
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "https://a.test/out", 1, "x")
	mustAdd(t, s, "https://a.test/moved", 1, "x")
	due(t, s, 1, func(r *Record) {
		if r.ID == "https://a.test/moved" {
			require.NoError(t, r.Reschedule(at(9), nil))
		}
	})
	require.NoError(t, s.pass(2))
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	require.NoError(t, s.Delete("https://a.test/out"))
	require.Empty(t, due(t, s, 2, nil))
	require.Len(t, contents(t, s), 1)
	require.NoError(t, s.Check())
}

// A balkyFS fails selected reads.
type balkyFS struct {
	*vfs.Mem
	reads  atomic.Int64 // Due reads ahead in goroutines
	failAt int64
}

type balkyFile struct {
	vfs.File
	fs *balkyFS
}

var errBalky = errors.New("cannot read")

func (b *balkyFS) Create(name string) (vfs.File, error) {
	f, err := b.Mem.Create(name)
	return balkyFile{f, b}, err
}

func (f balkyFile) ReadAt(b []byte, at int64) (int, error) {
	if n := f.fs.reads.Add(1) - f.fs.failAt; f.fs.failAt > 0 && (n == 0 || n == 1) { // one is tried again
		return 0, errBalky
	}
	return f.File.ReadAt(b, at)
}

// TestReadsThatFail: an iteration that ended with an error can be retried, and no record that
// was read before counts twice, whichever read failed.
func TestReadsThatFail(t *testing.T) {
	t.Parallel()
	failed, step := 0, int64(8)
	if testing.Short() {
		step = 2
	}
	for nth := int64(1); ; nth += 1 + nth/step {
		fs, o := &balkyFS{Mem: vfs.NewMem()}, small(Options{})
		s := mustOpen(t, fs, o)
		want := map[string]string{}
		for i := range 30 {
			id := fmt.Sprint("https://a.test/", i)
			mustAdd(t, s, id, 1001, "x")
			want[id] = "x"
		}
		for n := range 12 {
			for id := range want {
				text := fmt.Sprintf("%d %50d", n, n)
				require.NoError(t, s.Update(id, []byte(text)))
				want[id] += "+" + text
			}
		}
		fs.failAt = fs.reads.Load() + nth
		got, errs := map[string]string{}, 0
		for try := 0; len(got) < len(want) && try < 3; try++ {
			for r, err := range s.Due(t.Context(), at(1001)) {
				if err != nil {
					require.ErrorIs(t, err, errBalky)
					require.NoError(t, s.Sync(), "a background task may have failed")
					errs++
					break
				}
				require.NotContains(t, got, r.ID)
				got[r.ID] = string(r.Data)
			}
		}
		require.Equal(t, want, got, "read %d failed", nth)
		if fs.reads.Load() <= fs.failAt {
			break
		}
		failed += errs // not if it was read again
	}
	require.Greater(t, failed, 5)
}

// TestScanOfManyMessages: more messages than fit in memory are read several times, but the records come
// once, in their order, and are not read again for each part. Get reads the bucket once.
func TestScanOfManyMessages(t *testing.T) {
	t.Parallel()
	const records = 6000
	s := mustOpen(t, vfs.NewMem(), small(Options{Buffer: 256 << 10}))
	var items []Item
	for i := range records {
		items = append(items, Item{fmt.Sprintf("%05d", i), at(1100), make([]byte, 1000)})
	}
	_, err := s.AddBatch(items)
	require.NoError(t, err)
	for i := range items {
		require.NoError(t, s.Update(items[records-1-i].ID, []byte("m")))
	}
	require.NoError(t, s.checkpointNow())
	b := s.bucketOf(0)
	parts := b.mailBytes()/(s.o.Buffer/4) + 1
	require.Greater(t, parts, int64(10))
	before, n := s.Stats().BytesRead, 0
	for item, err := range s.Scan() {
		require.NoError(t, err)
		require.Equal(t, items[n].ID, item.ID)
		require.Equal(t, "+m", string(item.Data[1000:]))
		n++
	}
	require.Equal(t, records, n)
	read := s.Stats().BytesRead - before
	require.Less(t, read, 5*b.records.Bytes()+2*parts*b.messages.Bytes())
	_, err = s.Get(items[records-1].ID)
	require.NoError(t, err)
	require.Less(t, s.Stats().BytesRead-before-read, 2*(b.records.Bytes()+b.messages.Bytes()))
}
