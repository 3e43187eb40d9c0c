package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// setup starts a broker and returns a function that connects to it.
func setup(t *testing.T) (connect func() (*jet.Bus, *jet.Table, *jet.Table)) {
	t.Helper()
	url := startBroker(t)
	return func() (*jet.Bus, *jet.Table, *jet.Table) {
		bus, err := jet.Connect(t.Context(), jet.Options{URL: url})
		require.NoError(t, err)
		t.Cleanup(bus.Close)
		require.NoError(t, bus.CreateStream(t.Context()))
		leases, err := bus.MakeTable(t.Context(), "leases")
		require.NoError(t, err)
		states, err := bus.MakeTable(t.Context(), "states")
		require.NoError(t, err)
		return bus, leases, states
	}
}

// startBroker starts a broker that ends with the test, and returns its URL.
func startBroker(t *testing.T) (url string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: t.TempDir(), JetStream: true, NoSigs: true, NoLog: true,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(20*time.Second))
	return s.ClientURL()
}

// owners records who runs which partition, and fails if two do so at the same time.
type owners struct {
	t  *testing.T
	mu sync.Mutex
	by map[int]string
	// epochs are those of each partition, in the order of their starts.
	epochs map[int][]uint64
}

func newOwners(t *testing.T) *owners {
	return &owners{t: t, by: map[int]string{}, epochs: map[int][]uint64{}}
}

func (o *owners) runner(name string) Runner {
	return func(ctx context.Context, c Claim) error {
		o.mu.Lock()
		if o.by[c.Part] != "" {
			o.t.Errorf("%s and %s have partition %d", o.by[c.Part], name, c.Part)
		}
		o.by[c.Part] = name
		o.epochs[c.Part] = append(o.epochs[c.Part], c.Epoch)
		o.mu.Unlock()
		defer func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.by, c.Part)
		}()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.Quit:
			return nil
		}
	}
}

// count returns the number of partitions of each process.
func (o *owners) count() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := map[string]int{}
	for _, name := range o.by {
		counts[name]++
	}
	return counts
}

// until waits for a condition. Only the timeout of the test ends a wait for one that never becomes
// true.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		require.NoError(t, t.Context().Err())
		time.Sleep(5 * time.Millisecond)
	}
}

const parts = 6

// join has a process take part until the returned function is called.
func join(t *testing.T, leases *jet.Table, name string, run Runner) (m *Member, leave func()) {
	t.Helper()
	m = NewMember(leases, Options{
		Name: name, TTL: 300 * time.Millisecond, Run: run,
		Parts: map[message.Module]int{message.Fetch: parts},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	leave = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(leave)
	return m, leave
}

func TestMembersShareEvenlyAndGiveBack(t *testing.T) {
	connect := setup(t)
	o := newOwners(t)
	leave := map[string]func(){}
	for i, want := range []map[string]int{{"a": 6}, {"a": 3, "b": 3}, {"a": 2, "b": 2, "c": 2}} {
		name := string(rune('a' + i))
		_, leases, _ := connect()
		_, leave[name] = join(t, leases, name, o.runner(name))
		until(t, func() bool { return fmt.Sprint(o.count()) == fmt.Sprint(want) })
	}
	leave["b"]()
	until(t, func() bool { return fmt.Sprint(o.count()) == fmt.Sprint(map[string]int{"a": 3, "c": 3}) })
	leave["a"]()
	leave["c"]()
	require.Empty(t, o.count())
	for part, epochs := range o.epochs {
		require.True(t, slices.IsSorted(epochs), "partition %d: %v", part, epochs)
		require.Len(t, slices.Compact(epochs), len(epochs), "each owner has an epoch of its own")
	}
}

// TestASilentMemberIsReplaced closes a member's connection, so the others take it for dead. It
// stops by itself before they take its partitions; otherwise owners would fail.
func TestASilentMemberIsReplaced(t *testing.T) {
	connect := setup(t)
	o := newOwners(t)
	busA, leases, _ := connect()
	a, _ := join(t, leases, "a", o.runner("a"))
	until(t, func() bool { return o.count()["a"] == parts })
	_, leases, _ = connect()
	join(t, leases, "b", o.runner("b"))
	until(t, func() bool { return o.count()["b"] == parts/2 })
	require.NoError(t, a.Check())
	busA.Close()
	until(t, func() bool { return o.count()["b"] == parts })
	require.ErrorIs(t, a.Check(), ErrLost)
	require.Zero(t, o.count()["a"])
}

// TestALeaseThatNobodyRunsIsTaken has a member whose leases the broker stored without an answer.
// The member takes its share of them, and leaves the rest to others.
func TestALeaseThatNobodyRunsIsTaken(t *testing.T) {
	_, leases, _ := setup(t)()
	o := newOwners(t)
	ctx, cancel := context.WithCancel(t.Context())
	m := NewMember(leases, Options{
		TTL: time.Hour, Run: o.runner("a"), Parts: map[message.Module]int{message.Fetch: parts},
	})
	put := func(key string, value any) {
		data, err := json.Marshal(value)
		require.NoError(t, err)
		require.NoError(t, leases.Put(ctx, key, data))
	}
	p, err := begin(ctx, leases, "a", time.Hour, m.session())
	require.NoError(t, err)
	put(sessionPrefix+"z", Session{Modules: []string{message.Fetch.String()}})
	for part := range parts {
		put(LeaseKey(message.Dest{To: message.Fetch, Part: part}), Lease{Owner: p.id, Epoch: 5})
	}
	var watching sync.WaitGroup
	watching.Go(func() { m.watch(ctx) })
	seen := func(owner string) (n int) {
		for part := range parts {
			if lease, _ := m.view.free(message.Dest{To: message.Fetch, Part: part}); lease.Epoch > 0 && lease.Owner == owner {
				n++
			}
		}
		return n
	}
	until(t, func() bool { return seen(p.id) == parts && !m.view.heard(p.id).IsZero() })
	m.reconcile(ctx, p)
	until(t, func() bool { return o.count()["a"] == parts/2 && seen("") == parts/2 })
	for _, epochs := range o.epochs {
		require.Equal(t, []uint64{6}, epochs)
	}
	m.reconcile(ctx, p)
	require.Equal(t, parts/2, m.Owned(), "running partitions are neither taken nor given back")
	m.quitAll(cancel)
	cancel()
	watching.Wait()
}

// TestAFailedPartitionIsLeftToOthers has a member whose disk is full: it reports that, leaves the
// module to the other one, and tries again after a while.
func TestAFailedPartitionIsLeftToOthers(t *testing.T) {
	connect := setup(t)
	_, leases, _ := connect()
	broken := errors.New("disk is full")
	var failures, works atomic.Int64
	full := NewMember(leases, Options{
		TTL: 300 * time.Millisecond, Parts: map[message.Module]int{message.Fetch: 2}, Rest: time.Second,
		Run:    func(context.Context, Claim) error { return broken },
		Failed: func(_ Claim, err error) { require.ErrorIs(t, err, broken); failures.Add(1) },
	})
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	running.Go(func() { full.Run(ctx) })
	until(t, func() bool { return failures.Load() > 0 })
	_, leases, _ = connect()
	fine := NewMember(leases, Options{
		TTL: 300 * time.Millisecond, Parts: map[message.Module]int{message.Fetch: 2},
		Run: func(_ context.Context, c Claim) error { works.Add(1); <-c.Quit; works.Add(-1); return nil },
	})
	running.Go(func() { fine.Run(ctx) })
	until(t, func() bool { return works.Load() == 2 })
	tried := failures.Load()
	until(t, func() bool { return failures.Load() > tried })
	cancel()
	running.Wait()
}

// TestAnUnreadableStateEndsOnlyItsPartition damages a chunk of one of two partitions.
func TestAnUnreadableStateEndsOnlyItsPartition(t *testing.T) {
	bus, leases, states := setup(t)()
	k, err := Keep(t.Context(), bus, states, claim(1))
	require.NoError(t, err)
	require.NoError(t, k.AddChunk(t.Context(), []byte("short")))
	require.NoError(t, store(t, k))
	failed := make(chan error, 9)
	fold := Fold(FoldOptions{
		Bus: bus, States: states, Post: newPost(t, bus),
		New: func(Claim) State { return &strict{adder{counts: map[string]int64{}}} },
	})
	m := NewMember(leases, Options{
		TTL: 300 * time.Millisecond, Parts: map[message.Module]int{message.Dedupe: 2},
		Run: func(ctx context.Context, c Claim) error {
			c.Epoch += 9 // that of the damaged state was taken above
			return fold(ctx, c)
		},
		Failed: func(_ Claim, err error) { failed <- err },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	err = <-failed
	require.ErrorContains(t, err, "the state of dedupe.0 cannot be read")
	require.ErrorContains(t, err, "chunk.dedupe.0.1.1")
	until(t, func() bool { return m.runs(LeaseKey(message.Dest{To: message.Dedupe, Part: 1})) })
	time.Sleep(time.Second) // several looks for partitions
	require.True(t, m.runs(LeaseKey(message.Dest{To: message.Dedupe, Part: 1})))
	require.Empty(t, failed, "it is not tried again")
	cancel()
	running.Wait()
}

// strict is an adder that notices damage.
type strict struct{ adder }

func (s *strict) Load(chunk []byte) error {
	if len(chunk) != 8 {
		return errors.New("damaged")
	}
	return s.adder.Load(chunk)
}

// claim returns the claim of an owner that is never lost.
func claim(epoch uint64) Claim {
	return Claim{
		Dest: message.Dest{To: message.Dedupe}, Epoch: epoch, Quit: make(chan struct{}), Guard: func() error { return nil },
	}
}

// store commits the root of a keeper.
func store(t *testing.T, k *Keeper) error {
	t.Helper()
	return <-newPost(t, k.bus).Commit(k, &Outbox{})
}

// TestAPreviousOwnerCannotReplaceTheState has an owner that was suspended and does not know that it
// was replaced: its guard still passes.
func TestAPreviousOwnerCannotReplaceTheState(t *testing.T) {
	bus, _, states := setup(t)()
	former, err := Keep(t.Context(), bus, states, claim(1))
	require.NoError(t, err)
	former.Root.Seq = 5
	require.NoError(t, former.AddChunk(t.Context(), []byte("one")))
	require.NoError(t, store(t, former))
	present, err := Keep(t.Context(), bus, states, claim(2))
	require.NoError(t, err)
	require.EqualValues(t, 5, present.Root.Seq)
	former.Root.Seq = 9
	require.ErrorIs(t, store(t, former), ErrFenced)
	require.NoError(t, present.AddChunk(t.Context(), []byte("two")))
	require.NoError(t, store(t, present))
	_, err = Keep(t.Context(), bus, states, claim(2))
	require.ErrorIs(t, err, ErrFenced, "an epoch has one owner")

	root, err := ReadRoot(t.Context(), bus, claim(0).Dest)
	require.NoError(t, err)
	require.EqualValues(t, 5, root.Seq)
	var chunks []string
	require.NoError(t, present.Load(t.Context(), func(data []byte) error {
		chunks = append(chunks, string(data))
		return nil
	}))
	require.Equal(t, []string{"one", "two"}, chunks)
}

// TestAnOwnerWinsOverOneThatStillWrites lets each owner write as fast as it can while the next one
// takes over.
func TestAnOwnerWinsOverOneThatStillWrites(t *testing.T) {
	bus, _, states := setup(t)()
	post := newPost(t, bus)
	former := make(chan error, 1)
	former <- ErrFenced // the first has no predecessor
	for epoch := uint64(1); epoch <= 20; epoch++ {
		k, err := Keep(t.Context(), bus, states, claim(epoch))
		require.NoError(t, err)
		require.ErrorIs(t, <-former, ErrFenced)
		writing := make(chan struct{})
		go func() {
			err := <-post.Commit(k, &Outbox{})
			close(writing)
			for err == nil {
				k.Root.Seq++
				err = <-post.Commit(k, &Outbox{})
			}
			former <- err
		}()
		<-writing
	}
	_, err := Keep(t.Context(), bus, states, claim(21))
	require.NoError(t, err)
	require.ErrorIs(t, <-former, ErrFenced)
}

func TestAFormerOwnerDoesNotTryToWrite(t *testing.T) {
	bus, _, states := setup(t)()
	c := claim(1)
	lost := false
	c.Guard = func() error {
		if lost {
			return ErrLost
		}
		return nil
	}
	k, err := Keep(t.Context(), bus, states, c)
	require.NoError(t, err)
	lost = true
	require.ErrorIs(t, store(t, k), ErrLost)
}

// TestALostPartitionDoesNotHoldUpOthers commits three partitions together, of which one has a new
// owner and another one is lost by then.
func TestALostPartitionDoesNotHoldUpOthers(t *testing.T) {
	bus, _, states := setup(t)()
	post := NewPost(bus, time.Hour)
	var lost bool
	var results []<-chan error
	for part := range 3 {
		c := claim(1)
		c.Part = part
		if part == 1 {
			c.Guard = func() error {
				if lost {
					return ErrLost
				}
				return nil
			}
		}
		k, err := Keep(t.Context(), bus, states, c)
		require.NoError(t, err)
		if part == 2 {
			c.Epoch = 2
			_, err = Keep(t.Context(), bus, states, c)
			require.NoError(t, err)
		}
		var out Outbox
		out.Put(message.Fetch, 0, message.Item{Kind: message.Page, URL: fmt.Sprint(part)})
		results = append(results, post.Commit(k, &out))
		require.Empty(t, out)
	}
	lost = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go post.Run(ctx)
	require.NoError(t, <-results[0])
	require.ErrorIs(t, <-results[1], ErrLost)
	require.ErrorIs(t, <-results[2], ErrFenced)
	r := bus.Read(message.Dest{To: message.Fetch}, 1)
	defer r.Stop()
	d, err := r.Next(t.Context())
	require.NoError(t, err)
	items, err := message.Decode(d.Data)
	require.NoError(t, err)
	require.Equal(t, []message.Item{{Kind: message.Page, URL: "0"}}, items)
	require.Zero(t, d.Pending)
}

// TestABatchHasABound commits more messages than fit into a batch.
func TestABatchHasABound(t *testing.T) {
	bus, _, states := setup(t)()
	post := NewPost(bus, time.Hour)
	var results []<-chan error
	const partitions, dests = 7, 300
	for part := range partitions {
		c := claim(1)
		c.Part = part
		k, err := Keep(t.Context(), bus, states, c)
		require.NoError(t, err)
		var out Outbox
		for to := range dests {
			out.Put(message.Fetch, to, message.Item{Kind: message.Page, URL: fmt.Sprint(part)})
		}
		results = append(results, post.Commit(k, &out))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go post.Run(ctx)
	for _, result := range results {
		require.NoError(t, <-result)
	}
	level, err := bus.Level(t.Context())
	require.NoError(t, err)
	require.Len(t, level.Held, dests)
	require.EqualValues(t, 3*dests, bus.Sent(), "three partitions fit into a batch")
}

// TestAnOutboxOfAnySizeFitsIntoABatch releases many long URLs at once.
func TestAnOutboxOfAnySizeFitsIntoABatch(t *testing.T) {
	var out Outbox
	url := "http://a.test/" + strings.Repeat("x", 2000)
	for range 1 << 15 {
		out.Put(message.Fetch, 0, message.Item{Kind: message.Page, URL: url})
	}
	pieces := out.pieces[message.Dest{To: message.Fetch}]
	require.Less(t, len(pieces), maxUsual/jet.MaxMessage+out.size/jet.LargestMessage+10)
	for _, piece := range pieces {
		require.LessOrEqual(t, len(piece), jet.LargestMessage)
	}
}

// adder is a state that adds up numbers, and sends each one on with the sum so far. This shows if
// owners do not agree on the sum.
type adder struct {
	sum    uint64
	counts map[string]int64
}

func (a *adder) Apply(it message.Item, _ time.Time, emit Emit) {
	a.sum += uint64(it.Depth)
	emit(message.Hosts, int(it.Depth)%2, message.Item{
		Kind: message.Page, URL: fmt.Sprint(a.sum), Depth: it.Depth,
	})
}
func (a *adder) Wants() []string          { return nil }
func (a *adder) Open() int                { return 0 }
func (a *adder) Counts() map[string]int64 { return a.counts }
func (a *adder) Changes(bool, int) [][]byte {
	return [][]byte{binary.BigEndian.AppendUint64(nil, a.sum)}
}

func (a *adder) Load(chunk []byte) error {
	a.sum = binary.BigEndian.Uint64(chunk)
	return nil
}

// TestAFoldIsExactAcrossOwners replaces the owner again and again, in an orderly way or by closing
// its connection, and has two at a time that both consider themselves the owner. The next module
// must receive what one undisturbed owner would have sent.
func TestAFoldIsExactAcrossOwners(t *testing.T) {
	connect := setup(t)
	bus, _, _ := connect()
	const numbers = 3000
	self := claim(0).Dest
	require.NoError(t, bus.Send(t.Context(), jet.Message{To: self, Data: []byte("no message")}))
	feeding := make(chan error, 1)
	go func() { feeding <- feedNumbers(t.Context(), bus, numbers) }()

	var running sync.WaitGroup
	var quits []chan struct{}
	begin := func(epoch uint64) *jet.Bus {
		bus, _, states := connect()
		c := claim(epoch)
		quit := make(chan struct{})
		c.Quit = quit
		quits = append(quits, quit)
		run := Fold(FoldOptions{
			Bus: bus, States: states, Post: newPost(t, bus),
			New: func(Claim) State { return &adder{counts: map[string]int64{}} },
		})
		running.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_ = run(ctx, c) // fenced, closed or nil: only what was sent counts
		})
		return bus
	}
	reached := func(seq uint64) func() bool {
		return func() bool {
			root, err := ReadRoot(t.Context(), bus, self)
			require.NoError(t, err)
			return root.Seq >= seq
		}
	}
	for epoch := uint64(1); epoch <= 6; epoch++ {
		begin(epoch) // the previous one does not know, and continues until it is fenced
		until(t, reached(epoch*5))
		if epoch%2 == 0 {
			close(quits[len(quits)-1])
		}
	}
	require.NoError(t, <-feeding)
	begin(7)
	end, err := bus.End(t.Context(), self)
	require.NoError(t, err)
	until(t, reached(end))
	requireSums(t, bus, numbers)
	// A previous owner with nothing left to read does not notice that it was replaced.
	for i := 0; i < len(quits); i += 2 {
		close(quits[i])
	}
	running.Wait()
}

// newPost returns a post that ends with the test.
func newPost(t *testing.T, bus *jet.Bus) *Post {
	p := NewPost(bus, 5*time.Millisecond)
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() { p.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return p
}

// feedNumbers sends the numbers from 1 to n to the fold.
func feedNumbers(ctx context.Context, bus *jet.Bus, n uint32) error {
	for i := uint32(1); i <= n; i += 10 {
		var items []message.Item
		for j := i; j < i+10; j++ {
			items = append(items, message.Item{Kind: message.Page, URL: "x", Depth: j})
		}
		err := bus.Send(ctx, jet.Message{To: claim(0).Dest, Data: message.Encode(nil, items...)})
		if err != nil {
			return err
		}
	}
	return nil
}

// requireSums checks the messages that the fold has sent.
func requireSums(t *testing.T, bus *jet.Bus, n int) {
	t.Helper()
	got := map[uint32]string{}
	for part := range 2 {
		to := message.Dest{To: message.Hosts, Part: part}
		end, err := bus.End(t.Context(), to)
		require.NoError(t, err)
		r := bus.Read(to, 1)
		for seq := uint64(0); seq < end; {
			d, err := r.Next(t.Context())
			require.NoError(t, err)
			seq = d.Seq
			items, err := message.Decode(d.Data)
			require.NoError(t, err)
			for _, it := range items {
				require.Empty(t, got[it.Depth], "number %d arrived twice", it.Depth)
				got[it.Depth] = it.URL
			}
		}
		r.Stop()
	}
	require.Len(t, got, n)
	sum := uint64(0)
	for i := uint32(1); i <= uint32(n); i++ {
		sum += uint64(i)
		require.Equal(t, fmt.Sprint(sum), got[i])
	}
}
