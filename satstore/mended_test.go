package satstore

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// damagedSplit returns a closed store whose records, each with a message if updated, are to be
// split, with a damaged block of records.
func damagedSplit(t *testing.T, updated bool) (*vfs.Mem, Options) {
	fs, o := vfs.NewMem(), small(Options{Buffer: 256 << 10})
	s := mustOpen(t, fs, o)
	for i := range 300 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 1060, strings.Repeat("x", 1000))
		if updated {
			require.NoError(t, s.Update(id, []byte("m")))
		}
	}
	require.NoError(t, s.Close())
	require.True(t, flipBlock(fs, extent.Records, 1))
	return fs, o
}

// TestMessagesOfRecordsAside: the messages for records in a damaged block do not go round for ever
// in the bucket that is split. The damage is reported then, by each later Open, and by Repair.
func TestMessagesOfRecordsAside(t *testing.T) {
	t.Parallel()
	for _, updated := range []bool{true, false} {
		fs, o := damagedSplit(t, updated)
		s := mustOpen(t, fs, o)
		for slot := int64(1001); s.stats.Split == 0; slot++ {
			require.NoError(t, s.pass(slot))
		}
		require.Less(t, nowOf(s), int64(1060))
		require.Len(t, s.aside, 1)
		left := 300 - int(s.aside[0].left())
		require.Less(t, left, 300)
		for range 3 {
			killed := mustOpen(t, fs.Clone(), o)
			ids, damage := take(t, killed, 1061)
			require.Len(t, ids, left)
			require.Len(t, damage, 1)
			require.NoError(t, killed.Close())
			require.NoError(t, s.Close())
			s = mustOpen(t, fs, o)
		}
		require.ErrorContains(t, s.Check(), "use Repair")
		require.NoError(t, s.Close())
		done, err := repair(fs, vfs.NewMem(), o)
		require.NoError(t, err)
		require.EqualValues(t, left, done.Records)
		require.EqualValues(t, 300-left, done.Lost)
		require.NotEmpty(t, done.Findings)
	}
}

// TestDueEndsWithItsContext: even while it waits for a split.
func TestDueEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small(Options{})
		o.test.work = nil
		s, err := load(vfs.NewMem(), o)
		require.NoError(t, err)
		s.splitter.run = func() error { return nil }
		s.start()
		ctx, cancel := context.WithCancel(t.Context())
		mustAdd(t, s, "a", 1060, "x")
		ended := make(chan error)
		go func() {
			var last error
			for _, err := range s.Due(ctx, at(1061)) {
				last = err
			}
			ended <- last
		}()
		synctest.Wait() // it waits for the splitter
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, s.Close())
	})
}

// TestSpreadEndsBetweenTwoLooks: Due has seen that the records due are being spread. When it looks
// again, they have been.
func TestSpreadEndsBetweenTwoLooks(t *testing.T) {
	o := small(Options{})
	looks := 0
	o.test.work = func(s *Store) { // the splitter has not run at the first look
		s.mu.Lock()
		spreading := s.split != nil && len(s.split.into) > 0
		s.mu.Unlock()
		if !spreading {
			looks = 0
		} else if looks++; looks < 2 {
			return
		}
		workNow(s)
	}
	s := mustOpen(t, vfs.NewMem(), o)
	for i := range 40 {
		mustAdd(t, s, fmt.Sprint(i), 1001, "x")
		require.NoError(t, s.Update(fmt.Sprint(i), bytes.Repeat([]byte("m"), 100)))
	}
	require.Len(t, due(t, s, 1001, nil), 40)
}

// TestStaleReadAhead: Due does not take what it has read ahead from an extent that is gone for the
// extent that a checkpoint has moved there since.
func TestStaleReadAhead(t *testing.T) {
	o := small(Options{Buffer: 256 << 10})
	s := mustOpen(t, vfs.NewMem(), o)
	fill := func(name string, slot int64, size int) {
		for i := range 257 {
			mustAdd(t, s, fmt.Sprintf("%s %04d", name, i), slot, strings.Repeat("x", size))
		}
		require.NoError(t, s.write(s.takeAll()))
	}
	erase := func(name string) {
		for i := range 257 {
			require.NoError(t, s.Delete(fmt.Sprintf("%s %04d", name, i)))
		}
		workNow(s)
	}
	checkpoints := func(n int) {
		for range n {
			require.NoError(t, s.checkpointNow())
		}
	}
	for i := range 200 {
		mustAdd(t, s, fmt.Sprint("now", i), 1000, "x")
	}
	fill("D", 1004, 200)
	fill("J", 1002, 6000)
	erase("D") // its space becomes free, and that of X follows
	checkpoints(2)
	fill("X", 1001, 200)
	fill("Y", 1003, 200)
	checkpoints(1)
	ids, damage := take(t, s, 1000)
	require.Len(t, ids, 200)
	require.Empty(t, damage)
	erase("X")
	erase("J")
	checkpoints(2)
	require.NoError(t, s.Check())
	ids, damage = take(t, s, 1003)
	require.Empty(t, damage)
	require.Len(t, ids, 257)
}

// TestChangesBeforeHandOut: a record shows all that happened to it before it was handed out, even
// after its block was read.
func TestChangesBeforeHandOut(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), small(Options{}))
	for i := range 5 {
		mustAdd(t, s, fmt.Sprint(i), 1000, "old")
	}
	var got []string
	for r, err := range s.Due(t.Context(), at(1000)) {
		require.NoError(t, err)
		if got = append(got, r.ID+" "+string(r.Data)); r.ID == "0" {
			require.NoError(t, s.Delete("1"))
			require.NoError(t, s.Delete("2"))
			mustAdd(t, s, "2", 1000, "new")
			require.NoError(t, s.Update("3", []byte("message")))
			require.NoError(t, s.Delete("4"))
		}
	}
	require.Equal(t, []string{"0 old", "3 old+message", "2 new"}, got)
	require.EqualValues(t, 3, s.Stats().Out)
}

// TestPanicInMerge: the message is merged at the next attempt.
func TestPanicInMerge(t *testing.T) {
	o, panics := small(Options{}), true
	o.Merge = func(_ string, data, message []byte) []byte {
		if panics {
			panic("Merge")
		}
		return append(data, message...)
	}
	s := mustOpen(t, vfs.NewMem(), o)
	mustAdd(t, s, "a", 1000, "x")
	require.NoError(t, s.Update("a", []byte("1")))
	require.NoError(t, s.Update("a", []byte("2")))
	require.Panics(t, func() { due(t, s, 1000, nil) })
	require.Zero(t, s.Stats().Out)
	panics = false
	for r, err := range s.Due(t.Context(), at(1000)) {
		require.NoError(t, err)
		require.Equal(t, "x12", string(r.Data))
	}
}

// TestEachDamageOfMessages: Due yields one error for each damaged block.
func TestEachDamageOfMessages(t *testing.T) {
	fs, o := vfs.NewMem(), small(Options{Buffer: 1 << 20})
	s := mustOpen(t, fs, o)
	for i := range 300 {
		mustAdd(t, s, fmt.Sprint(i), 1000, "x")
		require.NoError(t, s.Update(fmt.Sprint(i), bytes.Repeat([]byte("m"), 600)))
	}
	require.NoError(t, s.Close())
	require.True(t, flipBlock(fs, extent.Messages, 2))
	require.True(t, flipBlock(fs, extent.Messages, 0))
	s = mustOpen(t, fs, o)
	ids, damage := take(t, s, 1000)
	require.Len(t, ids, 300)
	require.Len(t, damage, 2)
}

// TestRecordsAfterTheRestIsGone: records are handed out that are added after a read has found
// nothing more in their bucket.
func TestRecordsAfterTheRestIsGone(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), small(Options{}))
	mustAdd(t, s, "a", 1000, "x")
	require.Len(t, due(t, s, 1000, nil), 1)
	b := s.due[0]
	r := extent.NewReader(s.file, &s.mu, extent.NoMore)
	defer r.Close()
	r.Open(&b.records, b.id, extent.Records)
	found, err := r.Next(1)
	require.NoError(t, err)
	mustAdd(t, s, "b", 1000, "x")
	c, err := s.newChunk(b, found, r)
	require.NoError(t, err)
	require.Nil(t, c)
	require.Equal(t, []string{"b"}, due(t, s, 1000, nil))
}

// TestDeletedWhileMessagesAreRead: messages for a record that is deleted while Due reads them do not count
// as waiting, whether or not its unit ends with it.
func TestDeletedWhileMessagesAreRead(t *testing.T) {
	for _, others := range []int{0, 1} {
		fs := &faultyFS{Mem: vfs.NewMem()}
		o := small(Options{Buffer: 2 << 20, test: testOptions{page: 4 << 10, pending: 2 << 20}})
		s := mustOpen(t, fs, o)
		mustAdd(t, s, "a", 1001, "x")
		for i := range others {
			mustAdd(t, s, fmt.Sprint("other", i), 1001, "x")
		}
		mustAdd(t, s, "b", 1002, "x")
		take(t, s, 1002)
		require.NoError(t, s.Close())
		s = mustOpen(t, fs, o)
		for range 3 { // extents
			for range 3 {
				require.NoError(t, s.Update("a", make([]byte, 100<<10)))
			}
			require.NoError(t, s.checkpointNow())
		}
		extents, deleted := s.bucketOf(0).messages.Extents(), false
		fs.beforeRead = func(name string, at int64) {
			if !deleted && name == extent.Name && at == extents[len(extents)-1].Offset() {
				deleted = true
				require.NoError(t, s.Delete("a"))
			}
		}
		ids, damage := take(t, s, 1002)
		require.True(t, deleted)
		require.Empty(t, damage)
		require.Len(t, ids, 1+others)
		require.Zero(t, s.waiting)
		require.NoError(t, s.Close())
	}
}
