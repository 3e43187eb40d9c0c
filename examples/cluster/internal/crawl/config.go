// Package crawl has the modules of a crawl that is spread over many processes, those of Ueda et
// al., "A parallel distributed crawler of producer-consumer modules" (§5), over JetStream.
//
//	seeder (m) ─► dedupe (h) ─► hosts (i)(j)(k) ─► fetch (a)(b)(c)(d)(e)(f)(g)(l) ─┐
//	                ▲              ▲   └─ names to look up ─► lookup ─┐            │
//	                │              └──────────────────────────────────┘            │
//	                │              ▲                                               │
//	                │              └──── answers for robots.txt ◄──────────────────┤
//	                └──────────── links and redirects ◄────────────────────────────┘
//
// A switcher chooses the next module by an item's kind. Modules are used at several places of the
// flow: fetch gets pages and robots.txt; dedupe comes after the seeder, the parser and redirects.
//
// # Ownership of data
//
//	dedupe   by h(URL)      the set of URLs that have passed
//	hosts    by h(host)     addresses, rules of robots.txt, and the URLs that wait for either
//	fetch    by h(address)  the items that wait for the delays of their host and address
//
// # Why fetch is one module
//
// The paper has a scheduler, a downloader, a parser, two filters and a store. Here they are one
// module, which runs in the process that owns the address. If a lease of the scheduler traveled to
// another process, it would have to expire when that process seems dead. But the process may just be
// slow, and then two requests go to one address at the same time. Within one process the lease ends
// with the ownership. Also, pages never travel: a page is parsed where it arrives and written to the
// archive of that process. So the broker carries a few dozen URLs per page instead of its bytes. A
// robots.txt travels once, to the partition that needs its rules.
package crawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/robots"
)

// Options are the options that all processes of a crawl must agree on. The broker stores them.
type Options struct {
	Parts int // partitions of each module, which cannot be changed later; 0 means DefaultParts

	Agent   string        // of robots.txt and User-Agent; "" means "spinneret"
	Contact string        // where site owners reach the operator; "" is allowed on loopback only
	Delay   time.Duration // between two requests to a host or address; 0 means 5 s, negative none
	Timeout time.Duration // of a request; 0 means that of package fetch

	Scope     string // how far from the seeds to go; "" means "any"
	MaxDepth  int    // links from a seed; 0 means 20, negative means any number
	HostPages int    // of one host; 0 means 10,000

	// Retries is how often a page is retried after a temporary failure. 0 means DefaultRetries,
	// negative means never.
	Retries int
	// Retry is the delay before the first retry. It doubles each time, up to a day. A Retry-After
	// may make it longer. 0 means a minute to an hour, depending on the failure.
	Retry time.Duration
	// Backoff is the delay of a host after a failure, which doubles with each further one. 0 means
	// that of package scheduler.
	Backoff time.Duration
	// Revisit is the minimum interval between visits to a page; its history makes it longer. 0
	// means that pages are visited once.
	Revisit time.Duration
	// NoSitemaps leaves out the sitemaps that robots.txt files name; false means that they are
	// read.
	NoSitemaps bool
	// RulesTTL bounds the lifetime of a robots.txt and of an address; 0 means 24 hours, see RFC 9309
	// §2.4.
	RulesTTL time.Duration
	// Deny has entries of a urlfilter.List: URLs that are never requested. nil denies nothing.
	Deny []string

	// Waiting bounds the URLs that wait in each partition of hosts for an address or a robots.txt.
	// At half of it seeds wait, and at the bound links are dropped. 0 means DefaultWaiting.
	Waiting int

	Replicas    int   // brokers that store everything; those of the connection that creates the crawl
	StreamBytes int64 // the bound of the stream; that of the same connection

	Loopback bool // only addresses of this machine may be visited; false means only public ones

	// Seeds define the scope; nil means none, which is enough for the scope "any". They are stored
	// apart from the other options, as there may be more of them than fit into a value.
	Seeds []string `json:"-"`
}

// DefaultParts is how many partitions a module has. A module can be spread over as many processes.
const DefaultParts = 16

// maxParts bounds the partitions of a module: one page may have links to all of dedupe, and they are
// committed in one batch.
const maxParts = 256

// DefaultWaiting is as many URLs as a partition of fetch has in memory by default.
const DefaultWaiting = 1 << 16

func (o Options) withDefaults() Options {
	o.Parts = cmp.Or(o.Parts, DefaultParts)
	o.Agent = cmp.Or(o.Agent, "spinneret")
	o.Delay = cmp.Or(o.Delay, 5*time.Second)
	o.Scope = cmp.Or(o.Scope, string(urlfilter.Any))
	o.MaxDepth = cmp.Or(o.MaxDepth, 20)
	o.HostPages = cmp.Or(o.HostPages, 10_000)
	o.Retries = cmp.Or(o.Retries, DefaultRetries)
	o.RulesTTL = cmp.Or(o.RulesTTL, rulesTTL)
	o.Waiting = cmp.Or(o.Waiting, DefaultWaiting)
	return o
}

// robots returns the options of the caches for robots.txt.
func (o *Options) robots() robots.Options {
	return robots.Options{
		Agent: o.Agent, MinTTL: min(o.RulesTTL, minTTL), MaxTTL: o.RulesTTL,
		Retry: errorTTL, MaxRetry: errorTTL,
	}
}

// userAgent names the crawler and its contact.
func (o Options) userAgent() string {
	if o.Contact == "" {
		return ""
	}
	return o.Agent + "/0.1 (+" + o.Contact + ")"
}

// Crawl is a crawl's options and tables at the broker. Its methods are safe for concurrent use.
type Crawl struct {
	Options
	Bus     *jet.Bus
	Leases  *jet.Table
	States  *jet.Table
	Control *jet.Table // the operator's settings, and the places of archives

	seedWaits atomic.Int64 // times that seeds had no room
}

// ErrNone means that the broker knows no such crawl.
var ErrNone = errors.New("crawl: not created yet")

const optionsKey = "options"

// format is the version of messages and states. A crawl of another version cannot be continued.
const format = 4

// ErrFormat means that an incompatible version of the program created the crawl.
var ErrFormat = errors.New("crawl: made by another version of this program: finish it with that " +
	"version, or create a new crawl with another -crawl NAME; \"merge\" takes the archives of both")

// A stored is the form in which the broker stores the options.
type stored struct {
	Format    int
	SeedLists []string `json:",omitempty"` // keys of the values with the seeds
	Options
}

// maxList bounds a value with seeds, well below the limit of messages.
const maxList = 512 << 10

// store stores the options unless another process was faster. The seeds come first, so that nobody
// sees options without them.
func (c *Crawl) store(ctx context.Context, o Options) error {
	s := stored{Format: format, Options: o}
	name := message.Hash(strings.Join(o.Seeds, "\n"))
	for left := o.Seeds; len(left) > 0; {
		n, size := 0, 0
		for n < len(left) && size+len(left[n]) < maxList {
			size += len(left[n]) + 1
			n++
		}
		key := fmt.Sprintf("seeds.%016x.%d", name, len(s.SeedLists))
		if err := c.States.Put(ctx, key, []byte(strings.Join(left[:n], "\n"))); err != nil {
			return err
		}
		s.SeedLists, left = append(s.SeedLists, key), left[n:]
	}
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("crawl: encode options: %w", err)
	}
	for {
		present, err := c.States.Get(ctx, optionsKey)
		if err != nil || present != nil {
			return err
		}
		c.States.Try(ctx, optionsKey, value, 0)
	}
}

// load loads the options.
func (c *Crawl) load(ctx context.Context, value []byte) error {
	var s stored
	if err := json.Unmarshal(value, &s); err != nil {
		return fmt.Errorf("crawl: options: %w", err)
	}
	if s.Format != format {
		return fmt.Errorf("%w (format %d, this version has %d)", ErrFormat, s.Format, format)
	}
	c.Options = s.withDefaults()
	for _, key := range s.SeedLists {
		list, err := c.States.Get(ctx, key)
		if err != nil {
			return err
		}
		c.Seeds = append(c.Seeds, strings.Split(string(list), "\n")...)
	}
	return nil
}

// thinned reports whether one seed of each host is enough to define a scope.
func thinned(scope string) bool {
	return scope == string(urlfilter.Host) || scope == string(urlfilter.Domain)
}

// keepsSeedsOf reports whether the crawl has all seeds that define another scope.
func (o *Options) keepsSeedsOf(scope string) bool {
	return scope == string(urlfilter.Any) || len(o.Seeds) > 0 && (thinned(scope) || !thinned(o.Scope))
}

// thin returns the seeds that define the scope: if that is hosts or domains, one seed of each host.
func thin(scope string, seeds []string) (few []string) {
	if !thinned(scope) {
		return seeds
	}
	known := map[string]bool{}
	for _, seed := range seeds {
		if host := stage.Authority(seed); !known[host] {
			known[host] = true
			few = append(few, seed)
		}
	}
	return few
}

// Create creates a crawl, or opens an existing one. If that has other options, Create returns the
// crawl and [ErrDiffers].
func Create(ctx context.Context, bus *jet.Bus, o Options) (*Crawl, error) {
	o = o.withDefaults()
	o.Replicas, o.StreamBytes = bus.Limits()
	o.Seeds = thin(o.Scope, o.Seeds)
	if _, err := o.filter(Settings{}); err != nil {
		return nil, err
	}
	if o.Parts < 1 || o.Parts > maxParts {
		return nil, fmt.Errorf("crawl: %d partitions of each module: want 1 to %d", o.Parts, maxParts)
	}
	if err := o.create(ctx, bus); err != nil {
		return nil, err
	}
	c, err := Open(ctx, bus)
	if err == nil {
		err = c.Options.differs(o)
	}
	return c, err
}

// create creates a crawl unless it exists. It writes the options last, so that the next attempt can
// finish what a failed one has begun.
func (o Options) create(ctx context.Context, bus *jet.Bus) error {
	if _, err := Open(ctx, bus); !errors.Is(err, ErrNone) {
		return err
	}
	if err := bus.CreateStream(ctx); err != nil {
		return err
	}
	c, err := tables(bus, func(name string) (*jet.Table, error) { return bus.MakeTable(ctx, name) })
	if err != nil {
		return err
	}
	return c.store(ctx, o)
}

// Open opens an existing crawl. It fails with [ErrNone] if there is none, and with [ErrFormat] if
// an incompatible version of the program created it.
func Open(ctx context.Context, bus *jet.Bus) (*Crawl, error) {
	c, err := tables(bus, func(name string) (*jet.Table, error) { return bus.Table(ctx, name) })
	switch {
	case errors.Is(err, jet.ErrNoTable):
		return nil, ErrNone
	case err != nil:
		return nil, err
	}
	value, err := c.States.Get(ctx, optionsKey)
	switch {
	case err != nil:
		return nil, err
	case value == nil:
		return nil, ErrNone
	}
	return c, c.load(ctx, value)
}

// tables opens the tables of a crawl.
func tables(bus *jet.Bus, open func(name string) (*jet.Table, error)) (c *Crawl, err error) {
	c = &Crawl{Bus: bus}
	if c.States, err = open("states"); err == nil {
		c.Leases, err = open("leases")
	}
	if err == nil {
		c.Control, err = open("control")
	}
	return c, err
}

// urlPart and hostPart choose partitions.
func (o *Options) urlPart(url string) int   { return message.Part(url, o.Parts) }
func (o *Options) hostPart(host string) int { return message.Part(host, o.Parts) }

// partOfHost returns the partition of hosts for a URL.
func (o *Options) partOfHost(url string) int { return o.hostPart(weburl.Host(url)) }
