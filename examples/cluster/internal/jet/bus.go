// Package jet hides NATS JetStream behind small types.
//
//	Bus     a connection, and the stream and tables of one crawl
//	Reader  the messages of one partition, in order, each once, from a sequence on
//	Table   values by key, which are replaced only by a writer that knows the current one
//
// # What the broker guarantees, and how it is used
//
// A crawl is one stream. Each partition has a subject for the messages to it, and one for its record,
// of which only the latest is kept. [Bus.Commit] stores the records of a process and what follows
// from them in one atomic batch: all of it, or nothing. Each record names the one that it replaces, so
// a repetition is refused, and so is an owner that was replaced. So each message is stored once, and
// there are no numbers, no acknowledgements of consumers and no redelivery here: the record of a
// partition has the sequence up to which its state reaches, and its owner continues reading from
// there.
//
// The broker acknowledges before it syncs to disk. A power failure of a majority of the servers loses
// the end of the stream: records and messages together, so what is left fits together.
package jet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// Options has the address of the brokers and the options of a crawl's streams.
type Options struct {
	URL   string // of one or more servers, with commas between them; "" means nats.DefaultURL
	Creds string // a file with a user's credentials; "" means none
	CA    string // a file with the certificate of the authority of the servers; "" means the system's
	Crawl string // the first part of all names; "" means "crawl"
	Name  string // of this connection, for the operator; "" means none

	Replicas int   // servers that store each stream; 0 means 1
	MaxBytes int64 // of the stream, beyond which it takes no more; 0 means DefaultMaxBytes

	// Waiting is told why the brokers do not answer: at once, then every ten seconds, and nil when
	// they answer again. Several goroutines may call it. nil means no reports.
	Waiting func(why error)
}

// Timeouts of operations that must not hang forever while servers are away.
const (
	requestTimeout = 3 * time.Second
	reconnectWait  = 100 * time.Millisecond
)

// A Bus is a connection to the broker of one crawl. Its methods are safe for concurrent use.
type Bus struct {
	conn  *nats.Conn
	js    jetstream.JetStream
	opts  Options
	crawl string

	sent   atomic.Int64 // messages that the brokers have committed
	silent atomic.Bool  // the brokers did not answer, and that was reported
	mu     sync.Mutex
	told   time.Time        // of the last report
	stream jetstream.Stream // nil until it was opened

	welcome context.Context // ends when the broker refuses this process; its cause is the reason
	refused context.CancelCauseFunc
}

// Connect connects to the broker. While servers are away it retries until ctx ends. It fails with
// [ErrRefused] if retrying is pointless.
func Connect(ctx context.Context, o Options) (*Bus, error) {
	o.Crawl = cmp.Or(o.Crawl, "crawl")
	if strings.ContainsAny(o.Crawl, ".*> \t/\\") {
		return nil, fmt.Errorf("jet: crawl name %q may have no dots, spaces, slashes or wildcards", o.Crawl)
	}
	o.URL, o.MaxBytes = cmp.Or(o.URL, nats.DefaultURL), cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.Replicas = max(o.Replicas, 1)
	b := &Bus{opts: o, crawl: o.Crawl}
	b.welcome, b.refused = context.WithCancelCause(context.Background())
	if err := b.dial(ctx); err != nil {
		return nil, err
	}
	for {
		// Servers that have not found each other yet do not answer at all.
		attempt, cancel := context.WithTimeout(ctx, requestTimeout/3)
		_, err := b.js.AccountInfo(attempt)
		cancel()
		if err == nil {
			b.answered()
			return b, nil
		}
		if refusal := b.Refused(); refusal != nil {
			b.conn.Close()
			return nil, refusal
		}
		b.wait(err)
		if !sleep(ctx, reconnectWait) {
			b.conn.Close()
			return nil, fmt.Errorf("jet: reach %s: %w", Redacted(o.URL), errors.Join(err, ctx.Err()))
		}
	}
}

var errConnectionLost = errors.New("the connection is lost")

// wait tells the operator why requests must wait.
func (b *Bus) wait(why error) {
	b.mu.Lock()
	due := time.Since(b.told) > tellEvery
	if due {
		b.told = time.Now()
	}
	b.mu.Unlock()
	if due && b.opts.Waiting != nil {
		switch { // the errors of the client library are about itself
		case errors.Is(why, nats.ErrReconnectBufExceeded):
			why = errConnectionLost
		case errors.Is(why, context.DeadlineExceeded):
			why = nats.ErrTimeout
		}
		b.silent.Store(true)
		b.opts.Waiting(why)
	}
}

// answered tells the operator that waiting is over.
func (b *Bus) answered() {
	if b.silent.Load() && b.silent.CompareAndSwap(true, false) {
		b.opts.Waiting(nil)
	}
}

// tellEvery is how often a waiting operator is told why.
const tellEvery = 10 * time.Second

// dial connects as soon as a server is available. The client library could wait by itself, but
// would not report why it waits.
func (b *Bus) dial(ctx context.Context) (err error) {
	o := b.opts
	options := []nats.Option{
		nats.Name(o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second),
		// Commit repeats what could not be sent. A second copy from the connection's buffer would
		// only arrive when it is no longer needed.
		nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.refuse(err) }),
		// The library closes a connection for good when its user is no longer accepted.
		nats.ClosedHandler(func(c *nats.Conn) { b.refuse(c.LastError()) }),
	}
	if o.Creds != "" {
		options = append(options, nats.UserCredentials(o.Creds))
	}
	if o.CA != "" {
		options = append(options, nats.RootCAs(o.CA))
	}
	for {
		if b.conn, err = nats.Connect(o.URL, options...); err == nil {
			break
		}
		if advice(err) != "" || errors.Is(err, fs.ErrNotExist) {
			return refusal(fmt.Errorf("connect to %s: %w", Redacted(o.URL), err))
		}
		b.wait(err)
		if !sleep(ctx, reconnectWait) {
			return fmt.Errorf("jet: connect to %s: %w", Redacted(o.URL), errors.Join(err, ctx.Err()))
		}
	}
	b.js, err = jetstream.New(b.conn, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		b.conn.Close()
		return fmt.Errorf("jet: %w", err)
	}
	return nil
}

// Redacted returns URLs, with commas between them, without their passwords.
func Redacted(urls string) string {
	all := strings.Split(urls, ",")
	for i, s := range all {
		if u, err := url.Parse(s); err != nil {
			all[i] = "(no URL)" // an error of the connection says why
		} else {
			all[i] = u.Redacted()
		}
	}
	return strings.Join(all, ",")
}

// Sent returns how many messages the brokers have committed for this process.
func (b *Bus) Sent() int64 { return b.sent.Load() }

// Limits returns the replicas and the bound of the stream that this connection would create.
func (b *Bus) Limits() (replicas int, maxBytes int64) { return b.opts.Replicas, b.opts.MaxBytes }

// Close ends the connection. Operations in progress fail.
func (b *Bus) Close() { b.conn.Close() }

// sleep waits, and reports whether ctx is still active.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// subject returns the subject of the messages to a partition.
func (b *Bus) subject(to message.Dest) string { return b.crawl + ".in." + to.String() }

// recordSubject returns the subject of the record of a partition.
func (b *Bus) recordSubject(of message.Dest) string { return b.crawl + ".record." + of.String() }

// DefaultMaxBytes bounds the stream unless the options say otherwise. The brokers reserve it.
const DefaultMaxBytes = 3 << 30

// MinMaxBytes is the least useful bound.
const MinMaxBytes = 16 << 20

// CreateStream creates the stream of the crawl. If it exists, from an attempt that failed, it gets
// the options of this connection.
func (b *Bus) CreateStream(ctx context.Context) error {
	begun := time.Now()
	err := b.untilAnswered(ctx, func(ctx context.Context) error {
		stream, err := b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name:     b.crawl,
			Subjects: []string{b.crawl + ".in.>", b.crawl + ".record.>"},
			Storage:  jetstream.FileStorage,
			Replicas: b.opts.Replicas,
			MaxBytes: b.opts.MaxBytes,
			// A full stream refuses messages, and the sender waits: no old messages are dropped.
			Discard:            jetstream.DiscardNew,
			AllowAtomicPublish: true,
			AllowRollup:        true, // a record removes the one before it
		})
		switch code := errorCode(err); {
		case code == tooFewBrokers && b.conn.ConnectedClusterName() == "":
			return fmt.Errorf("a single broker has no replicas: create the crawl with -replicas 1: %s", err)
		case noRoom(err):
			return fmt.Errorf("the brokers have too little disk: the stream reserves %d MiB on each (%s); "+
				"give a smaller -stream-bytes, or free disk or raise max_file_store, and start the brokers again",
				b.opts.MaxBytes>>20, err)
		case (code == noPeers || code == tooFewBrokers) && time.Since(begun) > placeWithin:
			return fmt.Errorf("the brokers cannot store it %d times (%s): start more, or create the crawl with "+
				"fewer -replicas", b.opts.Replicas, err)
		}
		if err == nil && !stream.CachedInfo().Config.AllowAtomicPublish { // a broker ignores what it does not know
			err = fmt.Errorf("broker %s has no atomic batches: use nats-server 2.12 or later", b.conn.ConnectedServerVersion())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("jet: create stream %s: %w", b.crawl, err)
	}
	return nil
}

// noRoom reports whether a broker refuses a stream because of its size.
func noRoom(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case 10047, 10023, 10028:
		return true
	}
	return api.ErrorCode == noPeers && strings.Contains(api.Description, "insufficient storage")
}

// opened returns the stream of the crawl.
func (b *Bus) opened(ctx context.Context) (stream jetstream.Stream, err error) {
	b.mu.Lock()
	stream = b.stream
	b.mu.Unlock()
	if stream != nil {
		return stream, nil
	}
	if stream, err = b.js.Stream(ctx, b.crawl); err == nil {
		b.mu.Lock()
		b.stream = stream
		b.mu.Unlock()
	}
	return stream, err
}

// untilAnswered repeats a request while servers are away, until ctx ends.
func (b *Bus) untilAnswered(ctx context.Context, do func(context.Context) error) error {
	return b.within(ctx, requestTimeout, do)
}

// within is untilAnswered with a time for each attempt.
func (b *Bus) within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, limit)
		err := do(attempt)
		cancel()
		switch {
		case err == nil:
			b.answered()
			return nil
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), err)
		case !transient(err):
			return err
		}
		b.wait(err)
		sleep(ctx, reconnectWait)
	}
}

// Error codes of the brokers. Both may be temporary, until more servers are available.
const (
	noPeers       = 10005
	tooFewBrokers = 10074
)

// errorCode returns the code of a broker's error, or 0 for other errors.
func errorCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return 0
	}
	return api.ErrorCode
}

// placeWithin is how long brokers that have just started may take to find each other.
const placeWithin = 10 * time.Second

// transient reports whether an error means that servers are away.
func transient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		// 503 is the class of all responses that mean "not now".
		return api.Code == 503 || api.ErrorCode == noPeers || api.ErrorCode == tooFewBrokers
	}
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded)
}

// A Level is how full the stream is.
type Level struct {
	Share float64                 // of its bound in bytes
	Held  map[message.Dest]uint64 // messages to each partition that are not removed yet
}

// Level returns how full the stream is. It waits while servers are away.
func (b *Bus) Level(ctx context.Context) (level Level, err error) {
	prefix := b.crawl + ".in."
	err = b.untilAnswered(ctx, func(ctx context.Context) error {
		info, err := b.info(ctx, prefix)
		if err != nil {
			return err
		}
		level = Level{Held: map[message.Dest]uint64{}}
		if info.Config.MaxBytes > 0 {
			level.Share = float64(info.State.Bytes) / float64(info.Config.MaxBytes)
		}
		for subject, n := range info.State.Subjects {
			if d, ok := message.ParseDest(strings.TrimPrefix(subject, prefix)); ok {
				level.Held[d] = n
			}
		}
		return nil
	})
	if err != nil {
		return level, fmt.Errorf("jet: look at stream %s: %w", b.crawl, err)
	}
	return level, nil
}

// Records returns the records of all partitions. However many they are, that is a few requests.
func (b *Bus) Records(ctx context.Context) (records map[message.Dest][]byte, err error) {
	records = map[message.Dest][]byte{}
	err = b.latestOf(ctx, ".record.", false, func(d message.Dest, _ uint64, data []byte) { records[d] = data })
	return records, err
}

// Ends returns the sequence of the last message to each partition, of those that are not removed.
func (b *Bus) Ends(ctx context.Context) (ends map[message.Dest]uint64, err error) {
	ends = map[message.Dest]uint64{}
	err = b.latestOf(ctx, ".in.", true, func(d message.Dest, seq uint64, _ []byte) { ends[d] = seq })
	return ends, err
}

// latestOf calls see with the last message of each partition's subject of a kind, if headers without its
// content.
func (b *Bus) latestOf(
	ctx context.Context, kind string, headers bool, see func(d message.Dest, seq uint64, data []byte),
) error {
	prefix := b.crawl + kind
	err := b.untilAnswered(ctx, func(context.Context) error {
		// However long the messages take, they must keep coming.
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := time.AfterFunc(requestTimeout, func() { cancel(context.DeadlineExceeded) })
		defer late.Stop()
		// The consumer cannot tell when all have come: if some are replaced meanwhile, their successors
		// are delivered, too, and count as pending.
		info, err := b.info(ctx, prefix)
		if err != nil {
			return err
		}
		consumer, err := b.js.CreateConsumer(ctx, b.crawl, jetstream.ConsumerConfig{
			DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: prefix + ">", HeadersOnly: headers,
			AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: requestTimeout, Replicas: 1, MemoryStorage: true,
		})
		if err != nil {
			return err
		}
		defer func() { _ = b.js.DeleteConsumer(ctx, b.crawl, consumer.CachedInfo().Name) }() // or the broker does, soon
		// A few at a time: over a slow link, heartbeats would come late behind many large ones.
		messages, err := consumer.Messages(jetstream.PullHeartbeat(readHeartbeat), jetstream.PullExpiry(readExpiry),
			jetstream.PullMaxMessages(16))
		if err != nil {
			return err
		}
		defer messages.Stop()
		for left := info.State.Subjects; len(left) > 0; {
			m, err := messages.Next(jetstream.NextContext(ctx))
			if err != nil {
				return cmp.Or(context.Cause(ctx), nats.ErrDisconnected)
			}
			late.Reset(requestTimeout)
			meta, err := m.Metadata()
			if err != nil {
				return err
			}
			if d, ok := message.ParseDest(strings.TrimPrefix(m.Subject(), prefix)); ok {
				see(d, meta.Sequence.Stream, m.Data())
			}
			delete(left, m.Subject())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("jet: read %s: %w", prefix, err)
	}
	return nil
}

// info returns the state of the stream, with the subjects that begin with a prefix.
func (b *Bus) info(ctx context.Context, prefix string) (*jetstream.StreamInfo, error) {
	stream, err := b.opened(ctx)
	if err != nil {
		return nil, err
	}
	return stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
}

// Forget removes the messages to a partition up to a sequence.
func (b *Bus) Forget(ctx context.Context, to message.Dest, upTo uint64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := b.opened(ctx)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(b.subject(to)), jetstream.WithPurgeSequence(upTo+1))
	}
	if err != nil {
		return fmt.Errorf("jet: remove messages to %s: %w", to, err)
	}
	return nil
}
