package satstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A trial is a store in use with data in many places: a record that is out, a due one with a
// message, and others in later slots, some of them on disk.
type trial struct {
	t  *testing.T
	fs *faultyFS
	o  Options
	s  *Store
	r  *Record // that is out
}

func newTrial(t *testing.T, o Options) *trial {
	c := &trial{t: t, fs: &faultyFS{Mem: vfs.NewMem()}, o: o}
	c.s = mustOpen(t, c.fs, o)
	for i := range 8 {
		mustAdd(t, c.s, fmt.Sprint("far ", i), 1001+int64(i*i), strings.Repeat("x", 60))
	}
	mustAdd(t, c.s, "out", 1000, "out")
	due(t, c.s, 1000, func(r *Record) { c.r = r })
	mustAdd(t, c.s, "due", 1000, "due")
	require.NoError(t, c.s.Update("due", []byte("message")))
	require.NoError(t, c.s.Update("far 7", []byte("message")))
	require.NoError(t, c.s.checkpointNow())
	mustAdd(t, c.s, "logged", 1003, "x")
	require.NoError(t, c.s.Sync())
	return c
}

// A visibleState is all that callers can see of a store.
type visibleState struct {
	now  int64
	seen map[string]string
}

func seenOf(t *testing.T, s *Store) visibleState { return visibleState{nowOf(s), contents(t, s)} }

// An operation is carried out while a call fails. If it has several parts, a fault may leave the
// first ones done. After a durable one, everything survives a power failure.
type operation struct {
	name    string
	parts   int
	durable bool
	do      func(c *trial, parts int) error
}

func (c *trial) items(n int) (items []Item) {
	for i := range n {
		items = append(items, Item{fmt.Sprint("new ", i), at(1002 + int64(i)), make([]byte, 400)})
	}
	return items
}

var operations = []operation{
	{"Add", 1, false, func(c *trial, n int) error {
		_, err := c.s.AddBatch(c.items(n))
		return err
	}},
	{"Add of much", 1, false, func(c *trial, n int) error {
		if n == 0 {
			return nil
		}
		_, err := c.s.Add("much", at(1002), make([]byte, 5000))
		return err
	}},
	{"AddBatch", 12, false, func(c *trial, n int) error {
		_, err := c.s.AddBatch(c.items(n))
		return err
	}},
	{"Update", 6, false, func(c *trial, n int) (err error) {
		for i := 0; i < n && err == nil; i++ {
			err = c.s.Update(fmt.Sprint("far ", i), make([]byte, 300))
		}
		return err
	}},
	{"Delete", 1, false, func(c *trial, n int) error {
		if n == 0 {
			return nil
		}
		return c.s.Delete("far 7")
	}},
	{"Reschedule", 1, false, func(c *trial, n int) error {
		if n == 0 {
			return nil
		}
		return c.r.Reschedule(at(1020), make([]byte, 1000))
	}},
	{"Delete of one's own", 1, false, func(c *trial, n int) error {
		if n == 0 {
			return nil
		}
		return c.r.Delete()
	}},
	{"slots", 6, false, func(c *trial, n int) error {
		return c.s.pass(1000 + int64(n))
	}},
	{"Due", 1, false, func(c *trial, _ int) error {
		return firstOf(c.s.Due(c.t.Context(), at(1000)))
	}},
	{"Scan", 1, false, func(c *trial, _ int) (err error) {
		for _, err = range c.s.Scan() {
		}
		return err
	}},
	{"Get", 1, false, func(c *trial, _ int) error { _, err := c.s.Get("far 3"); return err }},
	{"Check", 1, false, func(c *trial, _ int) error { return c.s.Check() }},
	{"Sync", 4, true, func(c *trial, n int) error {
		_, err := c.s.AddBatch(c.items(n))
		return errors.Join(err, c.s.Sync())
	}},
	{"a checkpoint", 4, true, func(c *trial, n int) error {
		_, err := c.s.AddBatch(c.items(n))
		if err == nil {
			err = c.s.checkpointNow()
		}
		return err
	}},
}

// faultOptions are so small that nearly everything involves the disk.
func faultOptions() Options {
	o := small(Options{})
	o.test.pending = 1 << 10
	return o
}

// outcomes returns the states after each part of an operation without faults.
func (d operation) outcomes(t *testing.T, o Options) (all []visibleState) {
	for n := range d.parts + 1 {
		c := newTrial(t, o)
		require.NoError(t, d.do(c, n))
		all = append(all, seenOf(t, c.s))
	}
	return all
}

func requireOneOf(t *testing.T, all []visibleState, got visibleState, why string, args ...any) {
	t.Helper()
	for _, want := range all {
		if reflect.DeepEqual(want, got) {
			return
		}
	}
	require.Fail(t, fmt.Sprintf(why, args...), "%+v is none of %+v", got, all)
}

// eachOperation runs a test for every operation.
func eachOperation(
	t *testing.T, test func(t *testing.T, o Options, d operation, all []visibleState),
) {
	for _, d := range operations {
		t.Run(strings.ReplaceAll(d.name, " ", "-"), func(t *testing.T) {
			o := faultOptions()
			test(t, o, d, d.outcomes(t, o))
		})
	}
}

// TestFaultAtEachCall makes each call to the file system fail in turn, once, during an operation.
// Acknowledged changes are there, others may be there, and none is there in part. After a Sync that
// succeeds, or after reopening, the store works normally.
func TestFaultAtEachCall(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, o Options, d operation, all []visibleState) {
		for nth := 1; ; nth++ {
			c := newTrial(t, o)
			c.fs.failAt.Store(c.fs.calls.Load() + int64(nth))
			err := d.do(c, d.parts)
			if !c.fs.hit() {
				require.NoError(t, err)
				break
			}
			if err != nil {
				require.ErrorIs(t, err, errFault, "call %d", nth)
			}
			c.afterFault(all, err == nil, fmt.Sprint("call ", nth))
		}
	})
}

// afterFault checks a store after a fault that it may not have reported.
func (c *trial) afterFault(all []visibleState, done bool, why string) {
	t := c.t
	t.Helper()
	if done {
		all = all[len(all)-1:]
	}
	c.fs.failAt.Store(0)
	requireOneOf(t, all, seenOf(t, c.s), "%s", why)
	synced := c.s.Sync()
	if synced == nil {
		all = []visibleState{seenOf(t, c.s)}
		require.NoError(t, c.s.Check(), why)
	} else {
		require.ErrorIs(t, synced, ErrReadOnly, why)
	}
	killed := mustOpen(t, c.fs.Clone(), c.o)
	requireOneOf(t, all, seenOf(t, killed), "%s, and a kill", why)
	require.NoError(t, killed.Check(), why)
	if synced == nil {
		mustAdd(t, c.s, "more", 1030, "more")
		all[0].seen["more"] = "1030 more"
	}
	closed := c.s.Close()
	require.Zero(t, c.fs.open.Load(), "%s: files stay open", why)
	if synced == nil {
		require.NoError(t, closed, why)
	}
	requireOneOf(t, all, seenOf(t, mustOpen(t, c.fs.Mem, c.o)), "%s, and Close", why)
}

// TestPowerFailsAtEachStep cuts the power at each change of the disk in turn, during an operation.
// The store recovers the state after one of its parts.
func TestPowerFailsAtEachStep(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, o Options, d operation, all []visibleState) {
		for nth := 1; ; nth++ {
			c := newTrial(t, o)
			at := c.fs.Steps() + nth
			c.fs.FailAt(at, vfs.ErrPower)
			err := d.do(c, d.parts)
			if c.fs.Steps() < at {
				require.NoError(t, err)
				break
			}
			may := all
			if err == nil && d.durable { // then the fault came after the sync
				may = all[len(all)-1:]
			}
			for seed := range uint64(1 + nth%2) {
				found := c.fs.Crash(rand.New(rand.NewPCG(seed, uint64(nth))))
				s := mustOpen(t, found, o)
				requireOneOf(t, may, seenOf(t, s), "step %d, seed %d", nth, seed)
				require.NoError(t, s.Check(), "step %d, seed %d", nth, seed)
			}
		}
	})
}

// TestOpenFailsAtEachCall: an Open that fails leaves no file open and no lock, loses nothing, and
// can be retried, for a new store as well as for one with a log to replay.
func TestOpenFailsAtEachCall(t *testing.T) {
	t.Parallel()
	o := faultOptions()
	logged := newTrial(t, o)
	require.NoError(t, logged.s.pass(1001))
	want := seenOf(t, logged.s)
	for name, disk := range map[string]*vfs.Mem{"new": vfs.NewMem(), "killed": logged.fs.Mem} {
		t.Run(name, func(t *testing.T) {
			for nth := int64(1); ; nth++ {
				fs := &faultyFS{Mem: disk.Clone()}
				fs.failAt.Store(nth)
				s, err := open(fs, o)
				if !fs.hit() {
					require.NoError(t, err)
					break
				}
				if err == nil { // it can at least be read
					if name == "killed" {
						require.Equal(t, want, seenOf(t, s), "call %d", nth)
					}
					_ = s.Close()
				} else {
					require.ErrorIs(t, err, errFault, "call %d", nth)
				}
				require.Zero(t, fs.open.Load(), "call %d: files stay open", nth)
				fs.failAt.Store(0)
				s = mustOpen(t, fs, o)
				if name == "killed" {
					require.Equal(t, want, seenOf(t, s), "call %d, opened again", nth)
				}
				require.NoError(t, s.Check())
				require.NoError(t, s.Close())
			}
		})
	}
}

// TestCloseFailsAtEachCall: a Close that fails has closed all files, and earlier changes are there.
func TestCloseFailsAtEachCall(t *testing.T) {
	t.Parallel()
	for nth := int64(1); ; nth++ {
		c := newTrial(t, faultOptions())
		mustAdd(t, c.s, "last", 1009, "x")
		want := seenOf(t, c.s)
		c.fs.failAt.Store(c.fs.calls.Load() + nth)
		err := c.s.Close()
		if !c.fs.hit() {
			require.NoError(t, err)
			break
		}
		require.Zero(t, c.fs.open.Load(), "call %d: files stay open", nth)
		require.ErrorIs(t, c.s.Close(), ErrClosed)
		c.fs.failAt.Store(0)
		require.Equal(t, want, seenOf(t, mustOpen(t, c.fs, c.o)), "call %d", nth)
	}
}

// firstOf returns the error that an iteration yields.
func firstOf[T any](walk func(func(T, error) bool)) (err error) {
	for _, err = range walk {
		break
	}
	return err
}
