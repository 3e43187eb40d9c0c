package jet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// broker starts a broker with a stream of a given size in bytes.
func broker(t *testing.T, bytes int64) *Bus {
	t.Helper()
	s, err := StartServer(ServerOptions{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	b, err := Connect(t.Context(), Options{URL: s.URL(), MaxBytes: bytes})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	require.NoError(t, b.CreateStream(t.Context()))
	return b
}

// here is the partition of most tests.
var here = message.Dest{To: message.Dedupe}

// tell sends a message to the partition.
func tell(t *testing.T, b *Bus, data string) {
	t.Helper()
	require.NoError(t, b.Send(t.Context(), Message{here, []byte(data)}))
}

// read returns the content of n messages to a partition.
func read(t *testing.T, b *Bus, d message.Dest, n int) (all []string) {
	t.Helper()
	r := b.Read(d, 1)
	defer r.Stop()
	for range n {
		d, err := r.Next(t.Context())
		require.NoError(t, err)
		all = append(all, string(d.Data))
	}
	return all
}

// TestABatchIsStoredAsAWhole has two owners of the same partition, each of which has another one, too.
func TestABatchIsStoredAsAWhole(t *testing.T) {
	for name, start := range map[string]func() *Bus{
		"one broker":    func() *Bus { return broker(t, 0) },
		"three brokers": func() *Bus { return brokers(t) },
	} {
		t.Run(name, func(t *testing.T) {
			b := start()
			other := message.Dest{To: message.Hosts, Part: 3}
			first := []Record{{Of: here, Value: []byte("1")}, {Of: other, Value: []byte("2")}}
			stored, fenced, err := b.Commit(t.Context(), first, []Message{{here, []byte("a")}, {other, []byte("b")}})
			require.NoError(t, err)
			require.True(t, stored)
			require.Empty(t, fenced)
			for _, r := range first {
				value, revision, err := b.Record(t.Context(), r.Of)
				require.NoError(t, err)
				require.Equal(t, r.Value, value)
				require.Equal(t, r.Revision, revision)
			}
			second := []Record{{Of: here, Value: []byte("3"), Revision: first[0].Revision}}
			_, _, err = b.Commit(t.Context(), second, []Message{{here, []byte("c")}})
			require.NoError(t, err)
			first[0].Value, first[1].Value = []byte("4"), []byte("5")
			stored, fenced, err = b.Commit(t.Context(), first, []Message{{here, []byte("d")}})
			require.NoError(t, err)
			require.False(t, stored)
			require.Equal(t, []message.Dest{here}, fenced)
			_, _, err = b.Commit(t.Context(), first[1:], []Message{{here, []byte("e")}})
			require.NoError(t, err, "nothing of the refused batch was stored")

			require.Equal(t, []string{"a", "c", "e"}, read(t, b, here, 3))
			records, err := b.Records(t.Context())
			require.NoError(t, err)
			require.Equal(t, map[message.Dest][]byte{here: []byte("3"), other: []byte("5")}, records)
			ends, err := b.Ends(t.Context())
			require.NoError(t, err)
			end, err := b.End(t.Context(), other)
			require.NoError(t, err)
			require.Len(t, ends, 2)
			require.Equal(t, end, ends[other])
			stream, err := b.js.Stream(t.Context(), b.crawl)
			require.NoError(t, err)
			require.EqualValues(t, 4+2, stream.CachedInfo().State.Msgs, "only the latest record is kept")
		})
	}
}

// TestARepeatedBatchIsStoredOnce loses an answer: the batch is stored, and its writer does not know.
func TestARepeatedBatchIsStoredOnce(t *testing.T) {
	b := broker(t, 0)
	for want := range 2 {
		records := []Record{{Of: here, Value: []byte("mine")}}
		stored, fenced, err := b.Commit(t.Context(), records, []Message{{here, []byte("a")}})
		require.NoError(t, err)
		require.True(t, stored, want)
		require.Empty(t, fenced)
		require.EqualValues(t, 2, records[0].Revision)
	}
	tell(t, b, "b")
	require.Equal(t, []string{"a", "b"}, read(t, b, here, 2))
	// Meanwhile another owner has replaced one of two records.
	other := message.Dest{To: message.Hosts}
	batch := []Record{{Of: other, Value: []byte("x")}, {Of: here, Value: []byte("y"), Revision: 2}}
	_, _, err := b.Commit(t.Context(), batch, []Message{{here, []byte("c")}})
	require.NoError(t, err)
	_, _, err = b.Commit(t.Context(), []Record{{here, []byte("new"), batch[1].Revision}}, nil)
	require.NoError(t, err)
	batch[0].Revision, batch[1].Revision = 0, 2
	stored, fenced, err := b.Commit(t.Context(), batch, []Message{{here, []byte("c")}})
	require.NoError(t, err)
	require.True(t, stored)
	require.Equal(t, []message.Dest{here}, fenced)
	tell(t, b, "d")
	require.Equal(t, []string{"a", "b", "c", "d"}, read(t, b, here, 4))
}

// TestARecordHasOneWriterAtATime has several writers that increment a value as fast as they can, and
// send each number. A write that is lost or repeated would show.
func TestARecordHasOneWriterAtATime(t *testing.T) {
	const writers, writes = 4, 25
	b := brokers(t)
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for done := 0; done < writes && t.Context().Err() == nil; {
				value, revision, err := b.Record(t.Context(), here)
				if !assert.NoError(t, err) {
					return
				}
				n := 0
				_, _ = fmt.Sscan(string(value), &n) // empty at first
				stored, fenced, err := b.Commit(t.Context(),
					[]Record{{here, fmt.Append(nil, n+1, " ", writer, " ", done), revision}},
					[]Message{{here, fmt.Append(nil, n+1)}})
				if !assert.NoError(t, err) || !assert.NotEqual(t, stored, len(fenced) > 0) {
					return
				}
				if stored {
					done++
				}
			}
		})
	}
	writing.Wait()
	var want []string
	for i := range writers * writes {
		want = append(want, fmt.Sprint(i+1))
	}
	require.Equal(t, want, read(t, b, here, len(want)))
}

// TestAFullStreamRefusesABatch fills the stream, and frees space after a refusal.
func TestAFullStreamRefusesABatch(t *testing.T) {
	waits := make(chan error, 100)
	b := broker(t, 150_000)
	b.opts.Waiting = func(why error) { waits <- why }
	big := strings.Repeat("y", 60_000)
	tell(t, b, big)
	tell(t, b, big)
	commit := func() error {
		_, _, err := b.Commit(t.Context(), []Record{{Of: here, Value: []byte("1")}}, []Message{{here, []byte(big)}})
		return err
	}
	require.ErrorIs(t, commit(), ErrFull)
	require.Error(t, <-waits)
	level, err := b.Level(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 0.8, level.Share, 0.01)
	require.Equal(t, map[message.Dest]uint64{here: 2}, level.Held)
	require.NoError(t, b.Forget(t.Context(), here, 1))
	require.NoError(t, commit())
}

// TestRecordsAreCompleteWhileOthersCommit reads the records while all of them are replaced again and
// again, in any order.
func TestRecordsAreCompleteWhileOthersCommit(t *testing.T) {
	const partitions = 300
	b := broker(t, 0)
	records := make([]Record, partitions)
	for i := range records {
		records[i].Of = message.Dest{To: message.Dedupe, Part: i}
	}
	commit := func(round int) error {
		rand.Shuffle(partitions, func(i, j int) { records[i], records[j] = records[j], records[i] })
		for i := range records {
			records[i].Value = fmt.Appendf(nil, "%d %s %4000d", round, records[i].Of, 0)
		}
		_, _, err := b.Commit(t.Context(), records, nil)
		return err
	}
	require.NoError(t, commit(0))
	looked, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for round := 1; err == nil; round++ {
			select {
			case <-looked:
				failed <- nil
				return
			case <-time.After(10 * time.Millisecond):
				err = commit(round)
			}
		}
		failed <- err
	}()
	for range 30 {
		found, err := b.Records(t.Context())
		require.NoError(t, err)
		require.Len(t, found, partitions)
	}
	close(looked)
	require.NoError(t, <-failed)
}

func TestAReaderContinuesWhereItStopped(t *testing.T) {
	b := broker(t, 0)
	for range 6 {
		tell(t, b, "x")
		require.NoError(t, b.Send(t.Context(), Message{message.Dest{To: message.Fetch}, []byte("y")}))
	}
	r := b.Read(here, 5)
	defer r.Stop()
	for want := uint64(5); want <= 11; want += 2 {
		d, err := r.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, d.Seq)
		require.Equal(t, (11-want)/2, d.Pending)
		require.False(t, d.Time.IsZero())
		r.Stop()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// TestAReaderStopsEvenIfItCannotRead ends the context of a reader that cannot read on. A process
// that has lost a partition must stop reading, whatever the servers do.
func TestAReaderStopsEvenIfItCannotRead(t *testing.T) {
	b := broker(t, 0)
	tell(t, b, "x")
	r := b.Read(here, 1)
	defer r.Stop()
	_, err := r.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.js.DeleteStream(t.Context(), b.crawl))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(2*readHeartbeat, cancel) // by then the reader has noticed
	_, err = r.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestRemovedMessagesAreNotRead(t *testing.T) {
	b := broker(t, 0)
	for range 5 {
		tell(t, b, "x")
	}
	require.NoError(t, b.Forget(t.Context(), here, 3))
	level, err := b.Level(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, level.Held[here])
	r := b.Read(here, 1)
	defer r.Stop()
	d, err := r.Next(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4, d.Seq)
}

// brokers starts three brokers with three replicas of everything.
func brokers(t *testing.T) *Bus {
	t.Helper()
	var held []net.Listener // until all three ports are known, so that they differ
	var routes []string
	for range 3 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		held, routes = append(held, l), append(routes, l.Addr().String())
	}
	for _, l := range held {
		require.NoError(t, l.Close())
	}
	var urls []string
	for i, address := range routes {
		s, err := StartServer(ServerOptions{
			Dir: t.TempDir(), Name: fmt.Sprint("n", i), Cluster: address, Routes: routes,
		})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		urls = append(urls, s.URL())
	}
	b, err := Connect(t.Context(), Options{URL: strings.Join(urls, ","), Replicas: len(routes)})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	require.NoError(t, b.CreateStream(t.Context()))
	return b
}

func TestAWatcherSeesOldAndNewValues(t *testing.T) {
	b := broker(t, 0)
	table, err := b.MakeTable(t.Context(), "test")
	require.NoError(t, err)
	require.NoError(t, table.Put(t.Context(), "old", []byte("1")))
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan *Entry, 16)
	ended := make(chan struct{})
	go func() { defer close(ended); table.Watch(ctx, func(e *Entry) { seen <- e }) }()
	require.Equal(t, "old", (<-seen).Key)
	require.Nil(t, <-seen, "the end of the old values")
	require.NoError(t, table.Put(t.Context(), "new", []byte("2")))
	e := <-seen
	require.Equal(t, "new", e.Key)
	require.Equal(t, []byte("2"), e.Value)
	require.NoError(t, table.kv.Purge(t.Context(), "old")) // as an operator might
	e = <-seen
	require.Equal(t, "old", e.Key)
	require.Nil(t, e.Value)
	ok, _ := table.Try(t.Context(), "new", []byte("3"), e.Revision)
	require.False(t, ok, "the revision belongs to another key")
	cancel()
	<-ended
}

// TestDeletedValuesLeaveNothing requires that a table does not grow by values that are deleted
// again. A crawl deletes a chunk of state every few seconds, and never writes the same key again.
func TestDeletedValuesLeaveNothing(t *testing.T) {
	b := broker(t, 0)
	table, err := b.MakeTable(t.Context(), "test")
	require.NoError(t, err)
	for _, key := range []string{"a.1", "a.2", "a.22"} {
		require.NoError(t, table.Put(t.Context(), key, []byte("x")))
	}
	require.NoError(t, table.Delete(t.Context(), "a.2"))
	require.NoError(t, table.Delete(t.Context(), "never.there"))
	stream, err := b.js.Stream(t.Context(), "KV_"+table.kv.Bucket())
	require.NoError(t, err)
	require.EqualValues(t, 2, stream.CachedInfo().State.Msgs)
	for key, want := range map[string][]byte{"a.1": []byte("x"), "a.2": nil, "a.22": []byte("x")} {
		value, err := table.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, want, value, key)
	}
}

func TestTheStreamIsCreatedOnce(t *testing.T) {
	b := broker(t, 0)
	tell(t, b, "x")
	require.NoError(t, b.CreateStream(t.Context()))
	level, err := b.Level(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, level.Held[here])
}

func TestNamesThatWouldBreakSubjectsAreRejected(t *testing.T) {
	for _, name := range []string{"a.b", "a b", "*", "a>", "a/b"} {
		_, err := Connect(t.Context(), Options{Crawl: name})
		require.ErrorContains(t, err, "crawl name", name)
	}
}

// TestReadersTakeLittleMemory opens as many readers as a process of a small crawl has. Even unused
// buffers would make the garbage collector run later.
func TestReadersTakeLittleMemory(t *testing.T) {
	b := broker(t, 0)
	tell(t, b, "x")
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	const readers = 16
	for range readers {
		r := b.Read(here, 1)
		defer r.Stop()
		_, err := r.Next(t.Context())
		require.NoError(t, err)
	}
	require.Less(t, live(), before+readers<<20)
}

// TestMissingBrokersAreReported stops a broker while a table is in use, and starts it again.
func TestMissingBrokersAreReported(t *testing.T) {
	dir := t.TempDir()
	s, err := StartServer(ServerOptions{Dir: dir})
	require.NoError(t, err)
	address, err := url.Parse(s.URL())
	require.NoError(t, err)
	port, err := strconv.Atoi(address.Port())
	require.NoError(t, err)
	told := make(chan error, 100)
	b, err := Connect(t.Context(), Options{URL: s.URL(), Waiting: func(why error) { told <- why }})
	require.NoError(t, err)
	defer b.Close()
	table, err := b.MakeTable(t.Context(), "test")
	require.NoError(t, err)
	require.NoError(t, table.Put(t.Context(), "x", []byte("1")))
	require.Empty(t, told, "no call had to wait")
	s.Close()
	got := make(chan error, 1)
	go func() {
		_, err := table.Get(t.Context(), "x")
		got <- err
	}()
	require.Error(t, <-told)
	s, err = StartServer(ServerOptions{Dir: dir, Port: port})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, <-got)
	for why := range told {
		if why == nil {
			break
		}
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	require.Equal(t, "tls://worker:xxxxx@n1:4222,nats://n2:4222",
		Redacted("tls://worker:secret@n1:4222,nats://n2:4222"))
	require.NotContains(t, Redacted("tls://worker:%secret@n1"), "secret")
}

// TestATableIsCreatedWithItsReplicas requires that opening a table never creates one with fewer
// replicas than the crawl should have.
func TestATableIsCreatedWithItsReplicas(t *testing.T) {
	b := brokers(t)
	_, err := b.Table(t.Context(), "test")
	require.ErrorIs(t, err, ErrNoTable)
	replicas := b.opts.Replicas
	b.opts.Replicas = 1 // an attempt with other options
	_, err = b.MakeTable(t.Context(), "test")
	require.NoError(t, err)
	b.opts.Replicas = replicas
	made, err := b.MakeTable(t.Context(), "test")
	require.NoError(t, err)
	require.NoError(t, made.Put(t.Context(), "x", []byte("1")))
	stream, err := b.js.Stream(t.Context(), "KV_crawl-test")
	require.NoError(t, err)
	require.Equal(t, 3, stream.CachedInfo().Config.Replicas)
	table, err := b.Table(t.Context(), "test")
	require.NoError(t, err)
	value, err := table.Get(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, []byte("1"), value)
}
