package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// setup starts a broker and returns a function that connects to it.
func setup(t *testing.T) (connect func() (*jet.Bus, *jet.Table, *jet.Table)) {
	t.Helper()
	s, err := jet.StartServer(jet.ServerOptions{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return func() (*jet.Bus, *jet.Table, *jet.Table) {
		bus, err := jet.Connect(t.Context(), jet.Options{URL: s.URL()})
		require.NoError(t, err)
		t.Cleanup(bus.Close)
		leases, err := bus.MakeTable(t.Context(), "leases")
		require.NoError(t, err)
		states, err := bus.MakeTable(t.Context(), "states")
		require.NoError(t, err)
		return bus, leases, states
	}
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
		put(LeaseKey(message.Fetch, part), Lease{Owner: p.id, Epoch: 5})
	}
	var watching sync.WaitGroup
	watching.Go(func() { m.watch(ctx) })
	seen := func(owner string) (n int) {
		for part := range parts {
			if lease, _ := m.view.free(message.Fetch, part); lease.Epoch > 0 && lease.Owner == owner {
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
	require.NoError(t, bus.CreateStreams(t.Context(), message.Dedupe, 2))
	k, err := Keep(t.Context(), states, claim(1))
	require.NoError(t, err)
	require.NoError(t, k.AddChunk(t.Context(), []byte("short")))
	require.NoError(t, k.Store(t.Context()))
	failed := make(chan error, 9)
	fold := Fold(FoldOptions{
		Bus: bus, States: states, Post: newPost(t, bus), Every: 5 * time.Millisecond,
		New: func(int) State { return &strict{adder{counts: map[string]int64{}}} },
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
	require.ErrorContains(t, err, "the state of dedupe 0 cannot be read")
	require.ErrorContains(t, err, "chunk.dedupe.0.1.1")
	until(t, func() bool { return m.Owns(Dest{message.Dedupe, 1}) })
	time.Sleep(time.Second) // several looks for partitions
	require.True(t, m.Owns(Dest{message.Dedupe, 1}))
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
		Module: message.Dedupe, Epoch: epoch, Quit: make(chan struct{}), Guard: func() error { return nil },
	}
}

// TestAPreviousOwnerCannotReplaceTheState has an owner that was suspended and does not know that it
// was replaced: its guard still passes.
func TestAPreviousOwnerCannotReplaceTheState(t *testing.T) {
	_, _, states := setup(t)()
	former, err := Keep(t.Context(), states, claim(1))
	require.NoError(t, err)
	former.Root.Seq = 5
	require.NoError(t, former.AddChunk(t.Context(), []byte("one")))
	require.NoError(t, former.Store(t.Context()))
	present, err := Keep(t.Context(), states, claim(2))
	require.NoError(t, err)
	require.EqualValues(t, 5, present.Root.Seq)
	former.Root.Seq = 9
	require.ErrorIs(t, former.Store(t.Context()), jet.ErrFenced)
	require.NoError(t, present.AddChunk(t.Context(), []byte("two")))
	require.NoError(t, present.Store(t.Context()))
	_, err = Keep(t.Context(), states, claim(2))
	require.ErrorIs(t, err, jet.ErrFenced, "an epoch has one owner")

	root, err := ReadRoot(t.Context(), states, message.Dedupe, 0)
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
	_, _, states := setup(t)()
	former := make(chan error, 1)
	former <- jet.ErrFenced // the first has no predecessor
	for epoch := uint64(1); epoch <= 20; epoch++ {
		k, err := Keep(t.Context(), states, claim(epoch))
		require.NoError(t, err)
		require.ErrorIs(t, <-former, jet.ErrFenced)
		writing := make(chan struct{})
		go func() {
			err := k.Store(t.Context())
			close(writing)
			for err == nil {
				k.Root.Seq++
				err = k.Store(t.Context())
			}
			former <- err
		}()
		<-writing
	}
	_, err := Keep(t.Context(), states, claim(21))
	require.NoError(t, err)
	require.ErrorIs(t, <-former, jet.ErrFenced)
}

func TestAFormerOwnerDoesNotTryToWrite(t *testing.T) {
	_, _, states := setup(t)()
	c := claim(1)
	lost := false
	c.Guard = func() error {
		if lost {
			return ErrLost
		}
		return nil
	}
	k, err := Keep(t.Context(), states, c)
	require.NoError(t, err)
	lost = true
	require.ErrorIs(t, k.Store(t.Context()), ErrLost)
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
	bus, _, states := connect()
	require.NoError(t, bus.CreateStreams(t.Context(), message.Dedupe, 1))
	require.NoError(t, bus.CreateStreams(t.Context(), message.Hosts, 2))
	const numbers = 3000
	require.NoError(t, bus.Tell(t.Context(), message.Dedupe, 0, []byte("no message")))
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
			Bus: bus, States: states, Every: 5 * time.Millisecond, Post: newPost(t, bus),
			New: func(int) State { return &adder{counts: map[string]int64{}} },
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
			root, err := ReadRoot(t.Context(), states, message.Dedupe, 0)
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
	level, err := bus.Level(t.Context(), message.Dedupe, 0)
	require.NoError(t, err)
	until(t, reached(level.Last))
	until(t, func() bool {
		root, err := ReadRoot(t.Context(), states, message.Dedupe, 0)
		require.NoError(t, err)
		return root.Waiting() == 0
	})
	requireSums(t, bus, numbers)
	// A previous owner with nothing left to read does not notice that it was replaced.
	for i := 0; i < len(quits); i += 2 {
		close(quits[i])
	}
	running.Wait()
}

// newPost returns a post that treats all partitions as those of the process.
func newPost(t *testing.T, bus *jet.Bus) *Post {
	p := NewPost(bus, 5*time.Millisecond, func(Dest) bool { return true })
	t.Cleanup(p.Close)
	return p
}

// feedNumbers sends the numbers from 1 to n to the fold.
func feedNumbers(ctx context.Context, bus *jet.Bus, n uint32) error {
	p := bus.NewPipe(message.Dedupe, 0, nil)
	defer p.Close()
	for i := uint32(1); i <= n; i += 10 {
		parcel := jet.Parcel{From: message.Source{Module: message.Fetch}, First: uint64(i), N: 10}
		for j := i; j < i+10; j++ {
			it := message.Item{Kind: message.Page, URL: "x", Depth: j}
			parcel.Items = it.Append(parcel.Items)
		}
		p.Send(parcel)
		if err := p.Flush(ctx); err != nil {
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
		level, err := bus.Level(t.Context(), message.Hosts, part)
		require.NoError(t, err)
		r := bus.Read(message.Hosts, part, 1)
		var marks message.Marks
		for seq := uint64(0); seq < level.Last; {
			d, err := r.Next(t.Context())
			require.NoError(t, err)
			seq = d.Seq
			m, err := message.Decode(d.Data)
			require.NoError(t, err)
			for _, p := range m.Parcels {
				for _, it := range p.Items[marks.Take(p, len(p.Items)):] {
					require.Empty(t, got[it.Depth], "number %d arrived twice", it.Depth)
					got[it.Depth] = it.URL
				}
			}
		}
		require.Zero(t, marks.Lost())
		r.Stop()
	}
	require.Len(t, got, n)
	sum := uint64(0)
	for i := uint32(1); i <= uint32(n); i++ {
		sum += uint64(i)
		require.Equal(t, fmt.Sprint(sum), got[i])
	}
}
