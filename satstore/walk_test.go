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
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// An owner is the only one to change some ids, so it knows at any time what the store must say of
// them, whoever else visits them. Visits do not touch the data.
type owner struct {
	s      *Store
	name   int
	random *rand.Rand
	want   map[string]string // by id
	lives  int               // so that a record can be told from its predecessor
}

func (o *owner) id() string { return fmt.Sprintf("https://%d.test/%d", o.name, o.random.IntN(25)) }

// step does one random thing and compares. It returns errors, as it runs beside the test.
func (o *owner) step() error {
	id := o.id()
	text, there := o.want[id]
	switch n := o.random.IntN(10); {
	case n < 3 && !there:
		o.lives++
		life := fmt.Sprint("life ", o.lives)
		added, err := o.s.Add(id, o.s.Now()+o.random.Int64N(6), []byte(life))
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
		if added, err := o.s.Add(id, 0, []byte("an impostor")); err != nil || added {
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

// TestOwnersBesideAWalk lets goroutines add, update, delete and look at records while Due hands the
// same ones out, and others give them back later. Each message must arrive once, in order, and at
// the life of the record that it was sent to; what is deleted must not come back.
func TestOwnersBesideAWalk(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"tight": {Buffer: 16 << 10, Page: 512, Radix: 4, Horizon: 300, pending: 8 << 10},
		"roomy": {Radix: 4, Horizon: 300},
		"nolog": {Buffer: 16 << 10, Page: 512, Radix: 4, Horizon: 300, NoLog: true},
		"zstd":  {Buffer: 16 << 10, Page: 512, Radix: 4, Horizon: 300, Compression: Zstd},
	} {
		t.Run(name, func(t *testing.T) {
			o.Start, o.Commit = 1, time.Millisecond
			o.Merge = func(_, data, m []byte) []byte { return fmt.Appendf(data, "+%s", m) }
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
			killed := mustOpen(t, fs.Clone(), o)
			require.Equal(t, want, datasOf(t, killed), "after a kill")
			require.NoError(t, killed.Check())
			require.NoError(t, killed.Close())
			require.NoError(t, s.Close())
		})
	}
}

// walkUntil works slots off, without waiting for what is out, until the others are done.
func walkUntil(t *testing.T, s *Store, done <-chan struct{}, out chan<- *Record) {
	for {
		for r, err := range s.Due(t.Context()) {
			if err != nil {
				t.Error(err)
				return
			}
			out <- r
		}
		if err := s.Advance(); err != nil {
			t.Error(err)
			return
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// bringBack gives records back later and in another order than they came.
func bringBack(t *testing.T, out <-chan *Record) {
	var held []*Record
	n := 0
	giveBack := func(i int) {
		r := held[i]
		held[i] = held[len(held)-1]
		held = held[:len(held)-1]
		if n++; n%3 == 0 {
			r.Detach()
		}
		if err := r.Reschedule(r.Slot+1+int64(n%9), r.Data); err != nil {
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

// datasOf returns the data of all records, in whatever slot they are.
func datasOf(t *testing.T, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for item, err := range s.Scan() {
		require.NoError(t, err)
		require.NotContains(t, all, item.ID)
		all[item.ID] = string(item.Data)
	}
	return all
}

// TestNobodyHoldsALock: Merge and the bodies of walks are the caller's code, and may use the store.
func TestNobodyHoldsALock(t *testing.T) {
	var s *Store
	merged := 0
	s = mustOpen(t, vfs.NewMem(), Options{
		Start: 1, Commit: -1, Merge: func(_, data, message []byte) []byte {
			merged++
			require.NoError(t, s.Update("other", nil))
			_, err := s.Add(fmt.Sprint("merged ", merged), 50, nil)
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
		break // as what is merged leaves more to merge
	}
	for r, err := range s.Due(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, s.Check())
		require.NoError(t, s.Advance(), "a slot may begin while the one before is read")
		_, err := s.Get(string(r.ID))
		require.NoError(t, err)
		require.NoError(t, r.Reschedule(90, r.Data))
	}
	require.EqualValues(t, 3, s.Now())
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestWalksGoOn: whatever ends a walk, the next one goes on behind it, and what was handed out stays
// with the caller.
func TestWalksGoOn(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(cancel func()) (stop bool)
		err  error // that the walk yields
	}{
		{"break", func(func()) bool { return true }, nil},
		{"the context ends", func(cancel func()) bool { cancel(); return false }, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustOpen(t, vfs.NewMem(), Options{Start: 1, Commit: -1})
			// More than a block, as a context is looked at between blocks.
			filler := make([]byte, blockSize/4)
			for i := range 20 {
				_, err := s.Add(fmt.Sprintf("%02d", i), 1, filler)
				require.NoError(t, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ids []string
			var last error
			for r, err := range s.Due(ctx) {
				require.NoError(t, last, "an error is the last thing of a walk")
				if last = err; err != nil {
					require.Nil(t, r)
					continue
				}
				ids = append(ids, string(r.ID))
				if len(ids) >= 6 && tt.end(cancel) {
					break
				}
			}
			require.ErrorIs(t, last, tt.err)
			require.Less(t, len(ids), 20)
			require.EqualValues(t, len(ids), s.Stats().Out)
			ids = append(ids, dueIDs(t, s, nil)...)
			for i, id := range ids {
				require.Equal(t, fmt.Sprintf("%02d", i), id)
			}
			require.Len(t, ids, 20)
			require.EqualValues(t, 20, s.Stats().Out)
		})
	}
}

// TestCloseInTheMidst ends a walk with an error, and what was out is due again.
func TestCloseInTheMidst(t *testing.T) {
	fs, o := vfs.NewMem(), Options{Start: 1, Commit: -1}
	s := mustOpen(t, fs, o)
	filler := make([]byte, blockSize)
	for i := range 4 {
		_, err := s.Add(fmt.Sprint(i), 1, filler)
		require.NoError(t, err)
	}
	var seen []string
	var last error
	for r, err := range s.Due(t.Context()) {
		if last = err; err != nil {
			break
		}
		seen = append(seen, string(r.ID))
		if len(seen) == 1 {
			require.NoError(t, r.Reschedule(2, nil))
		} else if len(seen) == 2 {
			require.NoError(t, s.Close())
			require.ErrorIs(t, r.Reschedule(2, nil), ErrClosed)
		}
	}
	require.ErrorIs(t, last, ErrClosed)
	require.Equal(t, []string{"0", "1"}, seen)
	s = mustOpen(t, fs, o)
	require.Equal(t, []string{"1", "2", "3"}, dueIDs(t, s, nil))
}

// TestMessagesForALaterPass: a bucket with more messages than fit into memory is read several times.
// A message that comes during one pass for a record of the next is merged once, behind the others.
func TestMessagesForALaterPass(t *testing.T) {
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	for i := range 60 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 1001, "x")
		want[id] = "x"
	}
	send := func(id string, text any) {
		require.NoError(t, s.Update(id, fmt.Append(nil, text)))
		want[id] += fmt.Sprint("+", text)
	}
	for n := range 20 {
		for i := range 60 {
			send(fmt.Sprint("https://a.test/", i), n)
		}
	}
	require.NoError(t, s.Advance())
	left := map[string]bool{}
	for id := range want {
		left[id] = true
	}
	passes := uint64(0)
	ids := dueIDs(t, s, func(r *Record) {
		id := string(r.ID)
		require.Equal(t, want[id], string(r.Data), "record %d", 60-len(left))
		delete(left, id)
		passes = max(passes, s.due[0].pass+1)
		if len(left)%7 == 0 { // to those that come in this pass and those that come later
			for id := range left {
				if s.due[0].passOf(r.seq) != s.due[0].passOf(seqOf(t, s, id)) {
					send(id, fmt.Sprint("during ", len(left)))
				}
			}
		}
		require.NoError(t, r.Reschedule(1005, r.Data))
	})
	require.Len(t, ids, 60)
	require.Greater(t, passes, uint64(3))
	require.Equal(t, want, datasOf(t, s))
	require.Equal(t, want, datasOf(t, mustOpen(t, fs.Clone(), o)), "after a kill")
	require.NoError(t, s.Check())
}

func seqOf(t *testing.T, s *Store, id string) uint64 {
	t.Helper()
	s.idsMu.Lock()
	defer s.idsMu.Unlock()
	seq, err := s.seqOf(idset.KeyOf(id))
	require.NoError(t, err)
	require.NotEqual(t, uint64(idset.None), seq)
	return seq
}

// A balkyFS cannot read some of the times. It has to be told which.
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
	if f.fs.reads.Add(1) == f.fs.failAt {
		return 0, errBalky
	}
	return f.File.ReadAt(b, at)
}

// TestReadsThatFailOnce: a walk that ended with an error can be tried again, and nothing of what the
// first one had read counts twice, at whichever read it failed.
func TestReadsThatFailOnce(t *testing.T) {
	t.Parallel()
	failed := 0
	for nth := int64(1); ; nth += 1 + nth/8 {
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
		require.NoError(t, s.Advance())
		fs.failAt = fs.reads.Load() + nth
		got, errs := map[string]string{}, 0
		for try := 0; len(got) < len(want) && try < 3; try++ {
			for r, err := range s.Due(t.Context()) {
				if err != nil {
					require.ErrorIs(t, err, errBalky)
					errs++
					break
				}
				require.NotContains(t, got, string(r.ID))
				got[string(r.ID)] = string(r.Data)
			}
		}
		require.Equal(t, want, got, "read %d failed", nth)
		if errs == 0 { // there were not so many
			break
		}
		failed++
	}
	require.Greater(t, failed, 5)
}

// TestScanIsOfOneMoment changes the store at random while it is scanned, checkpoints and new slots
// included. What is seen is what was there when the scan began.
func TestScanIsOfOneMoment(t *testing.T) {
	t.Parallel()
	for name, o := range optionSets {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, o, 11)
			for range 5 {
				for range 20 {
					require.NoError(t, p.play())
				}
				p.synced() // no crash comes, so no other state is asked for
				want, got := p.m.contents(), map[string]string{}
				for item, err := range p.s.Scan() {
					require.NoError(t, err)
					require.NotContains(t, got, item.ID)
					got[item.ID] = fmt.Sprint(item.Slot, " ", string(item.Data))
					if len(got) > 20 { // what is added must not outrun the scan
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

// TestRecoveredTwice: opening what a crash left, without doing anything, changes nothing, however
// often.
func TestRecoveredTwice(t *testing.T) {
	t.Parallel()
	for name, o := range optionSets {
		t.Run(name, func(t *testing.T) {
			disk, o, want := filled(t, o, false)
			for n := range 4 {
				s := mustOpen(t, disk, o)
				require.Equal(t, want, contents(t, s), "opened %d times", n+1)
				require.NoError(t, s.Check())
				size := s.Stats().DiskSize
				if n%2 == 0 {
					disk = disk.Clone() // as a kill leaves it
				} else {
					require.NoError(t, s.Close())
				}
				require.LessOrEqual(t, size, int64(4<<20))
			}
		})
	}
}
