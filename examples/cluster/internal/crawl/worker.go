package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/brotli"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// WorkerOptions are the options of one process of a crawl.
type WorkerOptions struct {
	Name    string           // of the process; "" means "member"
	Modules []message.Module // whose partitions it may own; nil means all
	Workers int              // requests in flight for each partition of fetch; 0 means 16
	// Requests bounds the requests in flight of the whole process; 0 means that only Workers does.
	Requests int
	Window   int           // items in memory for each partition of fetch; 0 means 65536, the most
	Rest     time.Duration // see engine.Options; 0 means that of package engine
	TTL      time.Duration // see engine.Options; 0 means that of package engine
	Every    time.Duration // how long results wait to be committed together; 0 means engine.DefaultEvery
	Dir      string        // of this process's archive; "" means none, which is refused for fetch
	Log      *slog.Logger  // of the process; nil means no log

	// Hosts are addresses that need no lookup; nil means only the system's.
	Hosts map[string][]netip.Addr
	// Lookup finds the addresses of a host; nil means the system's name servers.
	Lookup resolve.Lookup
	// Dial opens a connection to an address; nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Worker is one process of a crawl. Its methods are safe for concurrent use.
type Worker struct {
	*Crawl
	opts     WorkerOptions
	member   *engine.Member
	post     *engine.Post
	names    *resolve.Resolver
	turns    *stage.Lookups // of names
	uplink   *stage.Uplink
	settings atomic.Pointer[followed]
	client   *fetch.Client    // nil without fetch
	store    *archive.Archive // nil without fetch
	visits   atomic.Int64
	room     struct { // what hasRoom said lately: partitions have few reasons to ask it again
		sync.Mutex
		at  time.Time
		yes bool
	}
	full  atomic.Bool   // the stream is nearly full: links are dropped
	grown atomic.Bool   // the stream may have grown since its level was looked at
	slots chan struct{} // has a value for each request in flight; nil without a bound
	start time.Time
}

// NewWorker returns a process that takes part in the crawl as soon as it runs.
func (c *Crawl) NewWorker(o WorkerOptions) (*Worker, error) {
	o.Workers, o.Every = cmp.Or(o.Workers, 16), cmp.Or(o.Every, engine.DefaultEvery)
	if o.Window == 0 || o.Window > maxWindow {
		o.Window = maxWindow
	}
	if len(o.Modules) == 0 {
		o.Modules = message.Modules()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	w := &Worker{Crawl: c, opts: o, start: time.Now()}
	f, err := c.filter(Settings{})
	if err != nil {
		return nil, err
	}
	w.settings.Store(&followed{filter: f, changed: make(chan struct{})})
	// The partitions of hosts store the addresses; this resolver only joins concurrent lookups.
	w.names = resolve.New(resolve.Options{
		Lookup: o.Lookup, Hosts: o.Hosts, MaxQueries: 2*stage.MaxLookups + 16,
		MinTTL: min(resolve.DefaultMinTTL, c.RulesTTL),
	})
	w.turns = stage.NewLookups()
	w.uplink = stage.NewUplink(w.names.Ping, w.tellTrouble)
	if c.Loopback {
		w.uplink.Probe = func(context.Context) error { return nil } // there is no network to fail
	}
	if o.Requests > 0 {
		w.slots = make(chan struct{}, o.Requests)
	}
	w.post = engine.NewPost(c.Bus, o.Every)
	// A member counts only for the modules that it runs: this keeps the shares of others right.
	parts := map[message.Module]int{}
	for _, m := range o.Modules {
		parts[m] = c.Parts
	}
	w.member = engine.NewMember(c.Leases, engine.Options{
		Name: o.Name, TTL: o.TTL, Parts: parts, Run: w.runner(),
		Report: func() any { return w.Report() }, Rest: o.Rest, Longest: max(cmp.Or(c.Timeout, fetch.DefaultTimeout), 0),
		Failed: func(c engine.Claim, err error) {
			o.Log.Error("a partition has failed", "partition", c.Dest, "err", err)
		},
	})
	if parts[message.Fetch] > 0 {
		if err := w.openFetch(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// openFetch opens the client and the archive, which all partitions of fetch in this process share.
func (w *Worker) openFetch() (err error) {
	if w.opts.Dir == "" {
		return errors.New("crawl: a process that fetches needs a directory for its archive")
	}
	if err := w.newClient(); err != nil {
		return err
	}
	w.store, err = archive.Open(w.opts.Dir, archive.Options{Info: map[string]string{
		"software": "spinneret cluster", "operator": w.Contact, "robots": "obey",
	}})
	if errors.Is(err, archive.ErrLocked) {
		err = fmt.Errorf("%w: give each process a directory of its own with -dir", err)
	}
	return err
}

// newClient creates a client with the crawl's options.
func (w *Worker) newClient() (err error) {
	reach := fetch.Public
	if w.Loopback {
		reach = fetch.Loopback
	}
	w.client, err = fetch.New(fetch.Options{
		UserAgent: w.userAgent(), Reach: reach, Timeout: w.Timeout,
		Resolve: stage.NoLookup, Dial: w.dial,
		Brotli: brotli.New,
	})
	return err
}

// runner runs the partitions of all modules.
func (w *Worker) runner() engine.Runner {
	o := engine.FoldOptions{Bus: w.Bus, States: w.States, Post: w.post, Room: w.recentRoom, Ask: w.locate}
	o.New = func(c engine.Claim) engine.State {
		switch c.To {
		case message.Dedupe:
			return newSeen(&w.Options)
		case message.Hosts:
			s := newHosts(&w.Options, c.Part)
			s.wanted = func(it message.Item) bool { return w.settings.Load().filter.Check(knownOf(it)) == urlfilter.Fine }
			return s
		default:
			return w.newFetcher(c)
		}
	}
	return engine.Fold(o)
}

// Run takes part in the crawl until ctx ends or the operator drains this process, and returns when
// all results are stored. If a partition fails because of this process, for example because its disk
// is full, the process leaves the module to others for a while.
func (w *Worker) Run(ctx context.Context) (err error) {
	run, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer func() { err = errors.Join(err, w.close()) }()
	// Before the first request, so that a process that starts during a pause makes none.
	settings, revision, err := w.Settings(ctx)
	if err == nil {
		err = w.follow(settings, revision, end)
	}
	if err != nil {
		return err
	}
	var following sync.WaitGroup
	until, stop := context.WithCancel(context.WithoutCancel(ctx))
	following.Go(func() { w.obeySettings(until, end) })
	following.Go(func() { w.post.Run(until) })
	following.Go(func() { w.watchLevel(until) })
	if run.Err() == nil {
		w.member.Run(run)
	}
	stop()
	following.Wait()
	return err
}

func (w *Worker) close() error {
	if w.client == nil {
		return nil
	}
	w.client.CloseIdleConnections()
	return w.store.Close()
}

// watchLevel notices when the stream is nearly full. Then further links are counted but not followed: a
// worker that waited with them would hold up the fetches that make room. While nothing arrives, it
// asks the broker nothing.
func (w *Worker) watchLevel(ctx context.Context) {
	for ctx.Err() == nil {
		if w.grown.Swap(false) || w.full.Load() {
			level, err := w.Bus.Level(ctx)
			if err == nil && (level.Share > levelFull || level.Share < levelRoom) {
				w.full.Store(level.Share > levelFull)
			}
		}
		select {
		case <-time.After(min(5*w.opts.Every, 5*time.Second)):
		case <-ctx.Done():
		}
	}
}

// roomEvery is how long the answer of hasRoom is used by all partitions of a process.
const roomEvery = time.Second

// recentRoom is hasRoom, asked rarely.
func (w *Worker) recentRoom(ctx context.Context, part int) bool {
	w.room.Lock()
	defer w.room.Unlock()
	if time.Since(w.room.at) >= roomEvery {
		w.room.yes, w.room.at = w.hasRoom(ctx, part, false), time.Now()
	}
	return w.room.yes
}

// A Report describes a process.
type Report struct {
	Owned   int     // partitions
	Visits  int64   // responses stored
	Sent    int64   // messages to partitions
	Rate    float64 // visits per second, since the process started
	Started time.Time
	Heap    uint64 // bytes in use at the last garbage collection
	// Resident is the memory of the process: heap, garbage, stacks and everything else. 0 means
	// unknown.
	Resident uint64
	Revision uint64 // of the settings that the process follows
}

// Report describes the process.
func (w *Worker) Report() Report {
	n := w.visits.Load()
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(heap)
	return Report{
		Heap: heap[0].Value.Uint64(), Resident: resident(), Revision: w.settings.Load().revision,
		Owned: w.member.Owned(), Visits: n, Sent: w.Bus.Sent(), Started: w.start,
		Rate: float64(n) / max(time.Since(w.start).Seconds(), 1e-9),
	}
}

// resident reads the resident memory from Linux: the second figure, in pages.
func resident() uint64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// Check fails while the session of the process has expired or was replaced.
func (w *Worker) Check() error { return w.member.Check() }

// askAgain is the delay before a name that no server answered for is looked up again.
const askAgain = time.Minute

// locate looks up the address of a host. It waits while this machine is offline.
func (w *Worker) locate(ctx context.Context, host string) message.Item {
	found := message.Item{Kind: message.Located, URL: host, Delay: min(errorTTL, w.RulesTTL)}
	for w.uplink.Wait(ctx) {
		began := time.Now()
		_, known := w.names.Cached(host) // by a hosts file: then no name server has answered
		var addr netip.Addr
		err := w.turns.Do(ctx, host, false, func(ctx context.Context) (err error) {
			addr, err = w.names.Addr(ctx, host)
			return err
		})
		if err == nil {
			if found.Addr = addr; !known {
				w.uplink.Answered()
			}
			break
		}
		if w.uplink.Ours(ctx, err, netip.Addr{}, began) {
			continue
		}
		if dns, ok := errors.AsType[*net.DNSError](err); !ok || !dns.IsNotFound {
			found.Delay, found.Status = askAgain, 1
			w.opts.Log.Debug("lookup failed", "host", host, "again in", askAgain, "err", err)
		}
		break
	}
	return found
}

// tellTrouble logs that this machine is offline, and with "" that it is online again.
func (w *Worker) tellTrouble(trouble string) {
	if trouble == "" {
		w.opts.Log.Info("the network is back")
		return
	}
	w.opts.Log.Warn("this machine is offline, or its name server does not answer; "+
		"nothing is fetched until that is over, and nothing is lost", "err", trouble)
}

// dial opens a connection that sends nothing once the ownership is lost.
func (w *Worker) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := w.opts.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &guarded{conn, w.member.Check}, nil
}

// guarded checks just before each request whether this process may still make it: it may have been
// suspended since it got the lease, and another process may have taken over.
type guarded struct {
	net.Conn
	check func() error
}

// Write sends p unless the ownership is lost.
func (g *guarded) Write(p []byte) (int, error) {
	if err := g.check(); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}
