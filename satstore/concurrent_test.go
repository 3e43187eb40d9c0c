package satstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestFetchersReschedule reads slots while several goroutines return records late and out of order,
// and others add, send messages, sync, read and write checkpoints. Each visit must count once.
func TestFetchersReschedule(t *testing.T) {
	t.Parallel()
	const records, fetchers, slots = 400, 4, 30
	o := concurrentOptions(64 << 10)
	o.Merge = func(_ string, data, _ []byte) []byte { return data }
	s := mustOpen(t, vfs.NewMem(), o)
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
		mustAdd(t, s, fmt.Sprint("https://a.test/", i), int64(1+i%5), "0")
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { disturb(t, s, stop) })
	for slot := range int64(slots) {
		for r, err := range s.Due(t.Context(), at(slot)) {
			require.NoError(t, err)
			work <- r
		}
	}
	close(work)
	running.Wait()
	close(visits)
	counting.Wait()
	close(stop)
	others.Wait()
	require.NoError(t, s.Check())
	for id, text := range datasOf(t, s) {
		require.Equal(t, fmt.Sprint(want[id]), text, id)
		delete(want, id)
	}
	require.Empty(t, want)
	require.Zero(t, s.Stats().Out)
	require.NoError(t, s.Close())
}

func visitOnce(t *testing.T, r *Record) string {
	id, n := r.ID, 0
	_, err := fmt.Sscan(string(r.Data), &n)
	if err == nil {
		err = r.Reschedule(r.At().Add(time.Duration(1+n%7)*time.Hour), fmt.Append(r.Data[:0], n+1))
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
			_, err = s.Add(id, at(0), nil)
		}
		if err == nil && i%20 == 0 {
			err = s.Sync()
		}
		if err == nil && i%30 == 0 {
			err = s.checkpointNow()
		}
		if err == nil && i%50 == 0 {
			_, err = s.Get(id)
		}
		if err == nil && i%200 == 0 {
			contents(t, s)
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

// TestCloseDuringCalls closes a store while all of its methods are in use. Each call succeeds or
// returns ErrClosed, and acknowledged changes are there.
func TestCloseDuringCalls(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		dir := t.TempDir()
		o := Options{Start: at(1), Buffer: 32 << 10}
		o.test = testOptions{page: 1 << 10, pending: 16 << 10, shape: small(Options{}).test.shape}
		s, err := Open(dir, o)
		require.NoError(t, err)
		for i := range 200 {
			mustAdd(t, s, fmt.Sprint(i), int64(1+i%5), strings.Repeat("x", 300))
		}
		var users sync.WaitGroup
		var added sync.Map
		enough := make(chan struct{})
		closeEnough := sync.OnceFunc(func() { close(enough) })
		for name, use := range map[string]func(i int) error{
			"Add": func(i int) error {
				id := fmt.Sprint("new ", i)
				_, err := s.Add(id, at(int64(i%50)), make([]byte, 200))
				if err == nil {
					added.Store(id, true)
				}
				if err != nil || i == 60 {
					closeEnough()
				}
				return err
			},
			"Update": func(i int) error { return s.Update(fmt.Sprint(i%200), []byte("message")) },
			"Get":    func(i int) error { _, err := s.Get(fmt.Sprint(i % 200)); return err },
			"Sync":   func(int) error { return s.Sync() },
			"Check":  func(int) error { return s.Check() },
			"Scan": func(int) (err error) {
				for _, err = range s.Scan() {
				}
				return err
			},
			"Due": func(i int) error {
				for r, err := range s.Due(t.Context(), at(int64(i))) {
					if err == nil {
						err = r.Reschedule(r.At().Add(3*time.Hour), r.Data)
					}
					if err != nil {
						return err
					}
				}
				return nil
			},
		} {
			users.Go(func() {
				var err error
				for i := 0; err == nil; i++ {
					s.Stats()
					err = use(i)
				}
				if !errors.Is(err, ErrClosed) {
					t.Errorf("round %d: %s: %v", round, name, err)
				}
			})
		}
		<-enough
		require.NoError(t, s.Close())
		users.Wait()
		s, err = Open(dir, o)
		require.NoError(t, err)
		got := contents(t, s)
		added.Range(func(id, _ any) bool { require.Contains(t, got, id); return true })
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
		require.NoError(t, os.RemoveAll(dir))
	}
}
