package jet

import (
	"context"
	"encoding/binary"
	"fmt"
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

// broker starts a broker with one partition of dedupe of a given size in bytes.
func broker(t *testing.T, bytes int64) *Bus {
	t.Helper()
	s, err := StartServer(ServerOptions{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	b, err := Connect(t.Context(), Options{URL: s.URL(), MaxBytes: bytes})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	require.NoError(t, b.CreateStreams(t.Context(), message.Dedupe, 1))
	return b
}

var source = message.Source{Module: message.Hosts, Part: 3}

// parcelOf returns a parcel with the item of a number.
func parcelOf(n uint64) Parcel {
	it := message.Item{Kind: message.Page, URL: string(binary.BigEndian.AppendUint64(nil, n))}
	return Parcel{From: source, First: n, N: 1, Items: it.Append(nil)}
}

// numbersIn is the inverse of parcelOf for the accepted items of a message.
func numbersIn(t *testing.T, d Delivery, marks *message.Marks) (all []uint64) {
	t.Helper()
	m, err := message.Decode(d.Data)
	require.NoError(t, err)
	for _, p := range m.Parcels {
		require.Equal(t, source, p.From)
		for _, it := range p.Items[marks.Take(p, len(p.Items)):] {
			all = append(all, binary.BigEndian.Uint64([]byte(it.URL)))
		}
	}
	return all
}

func TestAPipeKeepsOrder(t *testing.T) {
	b := broker(t, 0)
	p := b.NewPipe(message.Dedupe, 0, nil)
	defer p.Close()
	const n = 500
	acked := 0
	for i := uint64(1); i <= n; i++ {
		parcel := parcelOf(i)
		parcel.Acked = func() { acked++ }
		p.Send(parcel)
	}
	require.NoError(t, p.Flush(t.Context()))
	require.Equal(t, n, acked)
	r := b.Read(message.Dedupe, 0, 1)
	defer r.Stop()
	var marks message.Marks
	for next := uint64(1); next <= n; {
		d, err := r.Next(t.Context())
		require.NoError(t, err)
		for _, got := range numbersIn(t, d, &marks) {
			require.Equal(t, next, got)
			next++
		}
	}
	require.Zero(t, marks.Lost())
}

// TestAPipeGathersParcels requires that what comes within the time that parcels wait goes in one
// message, that a full message does not wait, and that a hurry ends waiting.
func TestAPipeGathersParcels(t *testing.T) {
	b := broker(t, 0)
	p := b.NewPipe(message.Dedupe, 0, func() time.Duration { return time.Hour })
	defer p.Close()
	for i := uint64(1); i <= 300; i++ {
		p.Send(parcelOf(i))
	}
	require.Zero(t, b.Sent())
	require.NoError(t, p.Flush(t.Context()))
	require.EqualValues(t, 1, b.Sent())
	big := parcelOf(301)
	big.Items = (&message.Item{Kind: message.Answer, URL: "x", Body: strings.Repeat("y", maxMessage)}).Append(nil)
	p.Send(big)
	for b.Sent() < 2 {
		time.Sleep(time.Millisecond)
	}
}

func TestAReaderContinuesWhereItStopped(t *testing.T) {
	b := broker(t, 0)
	for i := range uint64(6) {
		require.NoError(t, b.Tell(t.Context(), message.Dedupe, 0, []byte{byte(i)}))
	}
	r := b.Read(message.Dedupe, 0, 3)
	defer r.Stop()
	for want := uint64(3); want <= 6; want++ {
		d, err := r.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, d.Seq)
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
	require.NoError(t, b.Tell(t.Context(), message.Dedupe, 0, []byte("x")))
	r := b.Read(message.Dedupe, 0, 1)
	defer r.Stop()
	_, err := r.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.js.DeleteStream(t.Context(), b.stream(message.Dedupe, 0)))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(2*readHeartbeat, cancel) // by then the reader has noticed
	_, err = r.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestRemovedMessagesAreNotRead(t *testing.T) {
	b := broker(t, 0)
	for range 5 {
		require.NoError(t, b.Tell(t.Context(), message.Dedupe, 0, []byte("x")))
	}
	require.NoError(t, b.Forget(t.Context(), message.Dedupe, 0, 3))
	level, err := b.Level(t.Context(), message.Dedupe, 0)
	require.NoError(t, err)
	require.EqualValues(t, 4, level.First)
	require.EqualValues(t, 5, level.Last)
	require.EqualValues(t, 2, level.Messages)
	r := b.Read(message.Dedupe, 0, 1)
	defer r.Stop()
	d, err := r.Next(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4, d.Seq)
}

func TestAStreamThatLostItsEndIsReported(t *testing.T) {
	b := broker(t, 0)
	require.NoError(t, b.Tell(t.Context(), message.Dedupe, 0, []byte("x")))
	level, err := b.LevelFrom(t.Context(), message.Dedupe, 0, 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, level.Last)
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() { sent <- b.Tell(ctx, message.Dedupe, 0, []byte("y")) }()
	level, err = b.LevelFrom(t.Context(), message.Dedupe, 0, 2)
	require.NoError(t, err)
	require.EqualValues(t, 2, level.Last, "it only took a while")
	require.NoError(t, <-sent)
	cancel()
	_, err = b.LevelFrom(ctx, message.Dedupe, 0, 9)
	require.Error(t, err)
}

// TestAFullStreamMakesThePipeWait fills a stream, and frees space only when the pipe has noticed.
func TestAFullStreamMakesThePipeWait(t *testing.T) {
	b := broker(t, 150_000)
	p := b.NewPipe(message.Dedupe, 0, nil)
	defer p.Close()
	const n = 100
	big := (&message.Item{Kind: message.Answer, URL: "x", Body: strings.Repeat("y", 2000)}).Append(nil)
	sent := make(chan error, 1)
	go func() {
		for i := range uint64(n) {
			p.Send(Parcel{From: source, First: i + 1, N: 1, Items: big})
		}
		sent <- p.Flush(t.Context())
	}()
	for !p.Full() {
		time.Sleep(time.Millisecond)
	}
	level, err := b.Level(t.Context(), message.Dedupe, 0)
	require.NoError(t, err)
	require.LessOrEqual(t, level.Bytes, uint64(150_000), "the broker accepted no more than its bound")

	r := b.Read(message.Dedupe, 0, 1)
	defer r.Stop()
	var marks message.Marks
	for taken := 0; taken < n; {
		d, err := r.Next(t.Context())
		require.NoError(t, err)
		m, err := message.Decode(d.Data)
		require.NoError(t, err)
		for _, p := range m.Parcels {
			taken += len(p.Items) - marks.Take(p, len(p.Items))
		}
		require.NoError(t, b.Forget(t.Context(), message.Dedupe, 0, d.Seq))
	}
	require.NoError(t, <-sent)
	require.Zero(t, marks.Lost())
}

// TestAPipeContinuesWhenABrokerStartsAnew deletes everything from a stream, as when servers lose
// their disks. The pipe sends each message once, whatever the sequences were before.
func TestAPipeContinuesWhenABrokerStartsAnew(t *testing.T) {
	b := broker(t, 0)
	p := b.NewPipe(message.Dedupe, 0, nil)
	defer p.Close()
	for i := uint64(1); i < 9; i++ {
		p.Send(parcelOf(i))
	}
	require.NoError(t, p.Flush(t.Context()))
	require.NoError(t, b.js.DeleteStream(t.Context(), b.stream(message.Dedupe, 0)))
	require.NoError(t, b.CreateStreams(t.Context(), message.Dedupe, 1))
	p.Send(parcelOf(9))
	require.NoError(t, p.Flush(t.Context()))
	level, err := b.Level(t.Context(), message.Dedupe, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, level.Messages)
}

func TestAClosedPipeSendsNothing(t *testing.T) {
	b := broker(t, 0)
	p := b.NewPipe(message.Dedupe, 0, func() time.Duration { return time.Hour })
	p.Send(parcelOf(1))
	p.Close()
	require.ErrorIs(t, p.Flush(t.Context()), ErrClosed)
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
	return b
}

func TestACellIsReplacedOnlyAtItsRevision(t *testing.T) {
	for name, start := range map[string]func() *Bus{
		"one broker":    func() *Bus { return broker(t, 0) },
		"three brokers": func() *Bus { return brokers(t) },
	} {
		t.Run(name, func(t *testing.T) { replaceCell(t, start()) })
	}
}

func replaceCell(t *testing.T, b *Bus) {
	t.Helper()
	table, err := b.MakeTable(t.Context(), "test")
	require.NoError(t, err)
	first, value, err := table.Cell(t.Context(), "x")
	require.NoError(t, err)
	require.Nil(t, value)
	require.NoError(t, first.Store(t.Context(), []byte("1")))
	second, value, err := table.Cell(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, []byte("1"), value)
	require.NoError(t, second.Store(t.Context(), []byte("2")))
	require.ErrorIs(t, first.Store(t.Context(), []byte("3")), ErrFenced)
	require.NoError(t, second.Store(t.Context(), []byte("4")))
	value, err = table.Get(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, []byte("4"), value)
}

// TestACellHasOneWriterAtATime has several writers that increment a value as fast as they can. A
// write that is lost or repeated would show in the count.
func TestACellHasOneWriterAtATime(t *testing.T) {
	const writers, writes = 4, 25
	table, err := brokers(t).MakeTable(t.Context(), "test")
	require.NoError(t, err)
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for done := 0; done < writes && t.Context().Err() == nil; {
				cell, value, err := table.Cell(t.Context(), "x")
				if !assert.NoError(t, err) {
					return
				}
				n := 0
				_, _ = fmt.Sscan(string(value), &n) // empty at first
				err = cell.Store(t.Context(), fmt.Append(nil, n+1, " ", writer))
				if err == nil {
					done++
				} else if !assert.ErrorIs(t, err, ErrFenced) {
					return
				}
			}
		})
	}
	writing.Wait()
	value, err := table.Get(t.Context(), "x")
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf("^%d ", writers*writes), string(value))
}

// TestACellRecognizesItsOwnValue loses an answer: the value is stored, and its writer does not
// know.
func TestACellRecognizesItsOwnValue(t *testing.T) {
	b := broker(t, 0)
	table, err := b.MakeTable(t.Context(), "test")
	require.NoError(t, err)
	cell, _, err := table.Cell(t.Context(), "x")
	require.NoError(t, err)
	require.NoError(t, table.Put(t.Context(), "x", []byte("mine")))
	require.NoError(t, cell.Store(t.Context(), []byte("mine")))
	require.NoError(t, cell.Store(t.Context(), []byte("next")))
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

func TestStreamsAreCreatedOnce(t *testing.T) {
	b := broker(t, 0)
	require.NoError(t, b.Tell(t.Context(), message.Dedupe, 0, []byte("x")))
	require.NoError(t, b.CreateStreams(t.Context(), message.Dedupe, 1))
	level, err := b.Level(t.Context(), message.Dedupe, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, level.Messages)
}

func TestNamesThatWouldBreakSubjectsAreRejected(t *testing.T) {
	for _, name := range []string{"a.b", "a b", "*", "a>", "a/b"} {
		_, err := Connect(t.Context(), Options{Crawl: name})
		require.ErrorContains(t, err, "crawl name", name)
	}
}

func TestAServerNeedsADirectory(t *testing.T) {
	_, err := StartServer(ServerOptions{})
	require.Error(t, err)
	_, err = StartServer(ServerOptions{Dir: t.TempDir(), Cluster: "nowhere"})
	require.ErrorContains(t, err, "cluster address")
}

// TestReadersTakeLittleMemory opens as many readers as a process of a small crawl has. Even unused
// buffers would make the garbage collector run later.
func TestReadersTakeLittleMemory(t *testing.T) {
	b := broker(t, 0)
	require.NoError(t, b.Tell(t.Context(), message.Dedupe, 0, []byte("x")))
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	const readers = 16
	for range readers {
		r := b.Read(message.Dedupe, 0, 1)
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
