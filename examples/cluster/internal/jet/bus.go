// Package jet hides NATS JetStream behind small types.
//
//	Bus     a connection, and the streams and tables of one crawl
//	Reader  the messages of one stream, in order, each once, from a sequence on
//	Pipe    sends to one stream in order, and resends unacknowledged messages
//	Cell    a value that can be replaced only by a writer that knows the current one
//	Server  a broker inside this process
//
// # What the broker guarantees, and how it is used
//
// A stream stores acknowledged messages in one order, on as many servers as it has replicas. It
// acknowledges before it syncs to disk, so a power failure of a majority of the servers loses the
// last messages. If a client has to send a message twice, the stream may store it twice. There are
// no acknowledgements of consumers, no redelivery and no pinning here: each partition is a stream
// of its own. Its owner remembers the sequence up to which its state reaches, and continues reading
// from there.
package jet

import (
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
	MaxBytes int64 // of a stream, beyond which it takes no more; 0 means DefaultMaxBytes

	// Waiting is told why the brokers do not answer: at once, then every ten seconds, and nil when
	// they answer again. Several goroutines may call it. nil means no reports.
	Waiting func(why error)
}

// Timeouts of operations that must not hang forever while servers are away.
const (
	requestTimeout = 3 * time.Second
	ackTimeout     = 3 * time.Second
	reconnectWait  = 100 * time.Millisecond
	maxBuffered    = 4096 // publications in flight on one connection
)

// A Bus is a connection to the broker of one crawl. Its methods are safe for concurrent use.
type Bus struct {
	conn  *nats.Conn
	js    jetstream.JetStream
	opts  Options
	crawl string

	sent   atomic.Int64 // messages that the brokers have acknowledged
	silent atomic.Bool  // the brokers did not answer, and that was reported
	mu     sync.Mutex
	told   time.Time // of the last report

	refusing sync.Once
	refused  chan struct{} // closed when refusal is set
	refusal  error
}

// Connect connects to the broker. While servers are away it retries until ctx ends. It fails with
// [ErrRefused] if retrying is pointless.
func Connect(ctx context.Context, o Options) (*Bus, error) {
	if o.Crawl == "" {
		o.Crawl = "crawl"
	}
	if strings.ContainsAny(o.Crawl, ".*> \t/\\") {
		return nil, fmt.Errorf("jet: crawl name %q may have no dots, spaces, slashes or wildcards", o.Crawl)
	}
	if o.URL == "" {
		o.URL = nats.DefaultURL
	}
	o.Replicas = max(o.Replicas, 1)
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	b := &Bus{opts: o, crawl: o.Crawl, refused: make(chan struct{})}
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
		// The pipe resends in order what could not be sent. A second copy from the connection's
		// buffer would only arrive when it is no longer needed.
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
	b.js, err = jetstream.New(b.conn, jetstream.WithPublishAsyncMaxPending(maxBuffered),
		jetstream.WithPublishAsyncTimeout(ackTimeout), jetstream.WithDefaultTimeout(requestTimeout))
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

// Sent returns how many messages the brokers have acknowledged to this process.
func (b *Bus) Sent() int64 { return b.sent.Load() }

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

// stream returns the name of the stream of a partition.
func (b *Bus) stream(m message.Module, part int) string {
	return fmt.Sprintf("%s-%s-%d", b.crawl, m, part)
}

// subject returns the subject of the messages to a partition.
func (b *Bus) subject(m message.Module, part int) string {
	return fmt.Sprintf("%s.%s.%d", b.crawl, m, part)
}

// CreateStreams creates the streams of a module's partitions. Streams that exist from a failed
// attempt get the options of this connection. It fails with a [RoomError] if the brokers have too
// little disk.
func (b *Bus) CreateStreams(ctx context.Context, m message.Module, parts int) error {
	for part := range parts {
		config := jetstream.StreamConfig{
			Name:     b.stream(m, part),
			Subjects: []string{b.subject(m, part)},
			Storage:  jetstream.FileStorage,
			Replicas: b.opts.Replicas,
			MaxBytes: b.opts.MaxBytes,
			// A full stream refuses messages, and the sender waits: no old messages are dropped.
			Discard: jetstream.DiscardNew,
			// The numbers in messages replace the broker's window of message ids, without a time
			// limit and without memory. This is the smallest window that is possible.
			Duplicates: 100 * time.Millisecond,
		}
		if err := b.retry(ctx, func() error {
			attempt, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			_, err := b.js.CreateStream(attempt, config)
			// A broker without room reports that even if the stream exists.
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || noRoom(err) {
				again := b.adjust(attempt, config)
				if !errors.Is(again, jetstream.ErrStreamNotFound) {
					err = again
				}
			}
			return err
		}); noRoom(err) {
			return &RoomError{config.MaxBytes, parts, part, err}
		} else if err != nil {
			return fmt.Errorf("jet: create stream %s: %w", config.Name, err)
		}
	}
	return nil
}

// adjust reconfigures an existing stream if it is empty. Another create may have been faster, and a
// smaller bound would remove messages.
func (b *Bus) adjust(ctx context.Context, config jetstream.StreamConfig) error {
	stream, err := b.js.Stream(ctx, config.Name)
	if err != nil || stream.CachedInfo().State.Msgs > 0 {
		return err
	}
	_, err = b.js.UpdateStream(ctx, config)
	return err
}

// RemoveStreams removes the streams of a module that never got a message. They would continue to
// reserve disk.
func (b *Bus) RemoveStreams(ctx context.Context, m message.Module, parts int) error {
	for part := range parts {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		stream, err := b.js.Stream(attempt, b.stream(m, part))
		if err == nil && stream.CachedInfo().State.LastSeq == 0 {
			err = b.js.DeleteStream(attempt, b.stream(m, part))
		}
		cancel()
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("jet: remove %s: %w", b.stream(m, part), err)
		}
	}
	return nil
}

// tries is how often a request is repeated that servers may not answer just after their start.
const tries = 20

// retry repeats an operation that failed without a leader or an answer.
func (b *Bus) retry(ctx context.Context, do func() error) (err error) {
	for range tries {
		if err = do(); err == nil {
			b.answered()
			return nil
		}
		if errorCode(err) == tooFewBrokers && b.conn.ConnectedClusterName() == "" {
			return fmt.Errorf("%w: a single broker has no replicas: create the crawl with -replicas 1",
				err)
		}
		if !transient(err) {
			return err
		}
		b.wait(err)
		if !sleep(ctx, 5*reconnectWait) {
			break
		}
	}
	return errors.Join(err, ctx.Err())
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

// A Level is how full a stream is.
type Level struct {
	First, Last uint64 // sequences; First is Last+1 in an empty stream
	Messages    uint64
	Bytes       uint64
	Share       float64 // of its bound in bytes
}

// Level returns how full the stream of a partition is. It waits while servers are away.
func (b *Bus) Level(ctx context.Context, m message.Module, part int) (Level, error) {
	var stream jetstream.Stream
	err := b.untilAnswered(ctx, func(ctx context.Context) (err error) {
		stream, err = b.js.Stream(ctx, b.stream(m, part))
		return err
	})
	if err != nil {
		return Level{}, fmt.Errorf("jet: look at %s: %w", b.stream(m, part), err)
	}
	info := stream.CachedInfo() // current, since Stream has just requested it
	level := Level{
		First: info.State.FirstSeq, Last: info.State.LastSeq,
		Messages: info.State.Msgs, Bytes: info.State.Bytes,
	}
	if info.Config.MaxBytes > 0 {
		level.Share = float64(level.Bytes) / float64(info.Config.MaxBytes)
	}
	return level, nil
}

// settleTries times reconnectWait is how long a new leader of a stream may take to know its end.
const settleTries = 50

// LevelFrom is Level for a stream that is known to have reached a sequence. It returns a lower one
// only if the broker keeps reporting it: then the broker has lost messages.
func (b *Bus) LevelFrom(
	ctx context.Context, m message.Module, part int, reached uint64,
) (level Level, err error) {
	for range settleTries {
		if level, err = b.Level(ctx, m, part); err != nil || level.Last >= reached {
			return level, err
		}
		sleep(ctx, reconnectWait)
	}
	return level, ctx.Err()
}

// Forget removes the messages of a partition up to a sequence.
func (b *Bus) Forget(ctx context.Context, m message.Module, part int, upTo uint64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.stream(m, part))
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSequence(upTo+1))
	}
	if err != nil {
		return fmt.Errorf("jet: purge %s: %w", b.stream(m, part), err)
	}
	return nil
}

// Tell sends one message to a partition and waits until it is stored. It tries once.
func (b *Bus) Tell(ctx context.Context, m message.Module, part int, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := b.js.Publish(ctx, b.subject(m, part), data, jetstream.WithRetryAttempts(0)); err != nil {
		return fmt.Errorf("jet: send to %s: %w", b.subject(m, part), err)
	}
	return nil
}
