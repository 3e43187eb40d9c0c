package satstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestFetchersReschedule reads slots while several goroutines give records back late and out of
// order, others add, send messages and sync. Each visit must count once.
func TestFetchersReschedule(t *testing.T) {
	t.Parallel()
	const records, fetchers, slots = 400, 4, 30
	fs := vfs.NewMem()
	o := Options{
		Start: 1, Buffer: 64 << 10, Page: 1 << 10, Radix: 4, Horizon: 2000,
		Commit: time.Millisecond,
		Merge:  func(_, data, _ []byte) []byte { return data },
	}
	s := mustOpen(t, fs, o)
	visits := make(chan string, records)
	work := make(chan *Record, 50)
	var running, counting sync.WaitGroup
	for range fetchers {
		running.Go(func() {
			var late []*Record
			for r := range work {
				if late = append(late, r); len(late) > 20 {
					visits <- visitOnce(t, late[0])
					late = late[1:]
				}
			}
			for _, r := range late {
				visits <- visitOnce(t, r)
			}
		})
	}
	want := map[string]int{}
	counting.Go(func() {
		for id := range visits {
			want[id]++
		}
	})
	for i := range records {
		_, err := s.Add(fmt.Sprint("https://a.test/", i), int64(1+i%5), []byte("0"))
		require.NoError(t, err)
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { disturb(t, s, stop) })
	for range slots {
		for r, err := range s.Due(t.Context()) {
			require.NoError(t, err)
			work <- r
		}
		require.NoError(t, s.Advance())
	}
	close(work)
	running.Wait()
	close(visits)
	counting.Wait()
	close(stop)
	others.Wait()
	require.NoError(t, s.Check())
	for id, text := range contents(t, s) {
		var slot int64
		var n int
		_, err := fmt.Sscan(text, &slot, &n)
		require.NoError(t, err)
		require.Equal(t, want[id], n, id)
		delete(want, id)
	}
	require.Empty(t, want)
	require.Zero(t, s.Stats().Out)
	require.NoError(t, s.Close())
}

func visitOnce(t *testing.T, r *Record) string {
	id := string(r.ID)
	n, err := strconv.Atoi(string(r.Data))
	if err == nil {
		err = r.Reschedule(r.Slot+1+int64(n%7), strconv.AppendInt(r.Data[:0], int64(n+1), 10))
	}
	if err != nil {
		t.Error(err)
	}
	return id
}

// disturb uses the other methods until it is stopped.
func disturb(t *testing.T, s *Store, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		id := fmt.Sprint("https://a.test/", i%400)
		err := s.Update(id, []byte("hello"))
		if err == nil {
			_, err = s.Add(id, 0, nil)
		}
		if err == nil && i%20 == 0 {
			err = s.Sync()
		}
		if err == nil && i%50 == 0 {
			_, err = s.Get(id)
		}
		if err == nil && i%200 == 0 {
			err = seesEachOnce(s)
		}
		if err == nil {
			s.Stats()
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// seesEachOnce backs the store up, and looks at all of it, while it is being changed.
func seesEachOnce(s *Store) error {
	seen := map[string]bool{}
	for item, err := range s.Scan() {
		if err != nil {
			return err
		}
		if seen[item.ID] {
			return fmt.Errorf("%s is there twice", item.ID)
		}
		seen[item.ID] = true
	}
	to := vfs.NewMem()
	if err := s.backup(to); err != nil {
		return err
	}
	copied, err := open(to, Options{Radix: s.o.Radix, Horizon: s.o.Horizon, Merge: s.o.Merge})
	if err != nil {
		return err
	}
	for item, err := range copied.Scan() {
		if err != nil {
			return err
		}
		delete(seen, item.ID)
	}
	if len(seen) > 0 {
		return fmt.Errorf("%d records are not in the backup", len(seen))
	}
	return errors.Join(copied.Check(), copied.Close())
}

func TestOnlyOneDueAtATime(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), Options{Start: 1})
	_, err := s.Add("https://a.test/", 0, nil)
	require.NoError(t, err)
	for r, err := range s.Due(t.Context()) {
		require.NoError(t, err)
		for _, err := range s.Due(t.Context()) {
			require.ErrorIs(t, err, ErrBusy)
		}
		require.NoError(t, r.Delete())
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), ErrClosed)
}

// TestGroupCommit: what is done survives a power failure once Options.Commit has passed, and not
// for sure before.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		s := mustOpen(t, fs, Options{Start: 1, Commit: time.Second, pending: 4 << 10})
		_, err := s.Add("https://a.test/", 5, []byte("x"))
		require.NoError(t, err)
		synctest.Wait()
		time.Sleep(time.Second - 1)
		synctest.Wait()
		require.Equal(t, 0, fewestAfterCrash(t, s, fs))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 1, fewestAfterCrash(t, s, fs))
		require.NoError(t, s.Close())
	})
}

// fewestAfterCrash returns how many records the unluckiest of some power failures leaves.
func fewestAfterCrash(t *testing.T, s *Store, fs *vfs.Mem) int {
	fewest := 1 << 30
	for seed := range uint64(20) {
		s.lockAll() // what is mapped is written to under these locks
		found := fs.Crash(rand.New(rand.NewPCG(seed, 0)))
		s.unlockAll()
		s := mustOpen(t, found, Options{Start: 1, Commit: -1, pending: 4 << 10})
		fewest = min(fewest, len(contents(t, s)))
		require.NoError(t, s.Close())
	}
	return fewest
}
