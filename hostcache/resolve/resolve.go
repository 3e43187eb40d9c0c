package resolve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/hostcache"
)

// The defaults of [Options].
const (
	DefaultMinTTL     = time.Minute
	DefaultMaxTTL     = 24 * time.Hour
	DefaultTimeout    = 5 * time.Second
	DefaultMaxQueries = 256
)

const (
	// maxNegative bounds how long it is cached that a name does not exist: more than a few hours
	// have been found to cause trouble (RFC 2308 §5).
	maxNegative = 3 * time.Hour

	// failureTTL is how long it is cached that the name servers failed: RFC 9520 §3.2 wants between
	// a second and five minutes.
	failureTTL = 30 * time.Second
)

var (
	// ErrUnreachable means that no name server answered. It says nothing about the host.
	ErrUnreachable = errors.New("no name server answered")

	// ErrServerFailure means that a name server reported a failure, sent an invalid answer, or answered only
	// some of the queries that a name takes.
	ErrServerFailure = errors.New("the name server failed")

	errNotFound = errors.New("no such host") // as package net calls it

	errFailedBefore = fmt.Errorf("%w less than %v ago", ErrServerFailure, failureTTL)
)

// A Lookup finds the addresses of a host, and says how long to cache them, within the bounds of the
// [Options]. If there is no such host, it returns a *net.DNSError of that Name, or of none, with
// IsNotFound set. An error that wraps [ErrServerFailure] is cached briefly, others are not: also one of another
// Name, as when the server that the Lookup asks cannot be found. [Resolver.Ping] calls it with ".", the root,
// and takes any other failure for the Lookup's own. It must find its server without the Resolver, unless that is
// in Options.Hosts: a Resolver that asks itself waits until the context ends.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)

// Options configures a [Resolver]. The zero Options resolves as the system does.
type Options struct {
	// Servers are the name servers to query, in this order; a server that does not answer goes to
	// the end of the list. Names are then looked up as they are, without a search list. nil means
	// the servers, search list and options of /etc/resolv.conf, read again when it changes. If
	// there is no such file, package net is used, and its answers are cached for MinTTL.
	Servers []netip.AddrPort

	// Hosts maps names in lower case to addresses; they are not looked up, see [ParseHosts]. Names
	// of /etc/hosts come next. nil means only those.
	Hosts map[string][]netip.Addr

	// MinTTL is the minimum time for which answers are cached, so that a host with many requests is
	// not looked up for each. 0 means DefaultMinTTL, negative means that the ttl is always obeyed.
	MinTTL time.Duration

	// MaxTTL is the maximum time for which answers are cached. 0 means DefaultMaxTTL. The maximum
	// for negative answers is three hours. That a host has no address of one kind counts as long as
	// its addresses of the other kind.
	MaxTTL time.Duration

	// MaxBytes bounds the memory for answers. 0 means hostcache.DefaultMaxBytes, about 700,000
	// names.
	MaxBytes int

	// MaxQueries bounds the queries in flight, or the calls of Lookup; others wait. Names with the same
	// last two labels get half of them at most, so that no domain whose servers are silent holds up all
	// others. 0 means DefaultMaxQueries.
	MaxQueries int

	// Timeout limits one try with one server. 0 means that of resolv.conf, or DefaultTimeout.
	Timeout time.Duration

	// Lookup replaces the name servers. nil means name servers.
	Lookup Lookup

	// Dial opens the connections to name servers and those of DialContext. nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (o Options) withDefaults() Options {
	if o.MinTTL == 0 {
		o.MinTTL = DefaultMinTTL
	}
	if o.MaxTTL == 0 {
		o.MaxTTL = DefaultMaxTTL
	}
	if o.MaxQueries <= 0 {
		o.MaxQueries = DefaultMaxQueries
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	return o
}

// A Resolver looks up host names, and caches the answers. Its methods are safe for concurrent use.
// LookupNetIP and DialContext are drop-in replacements of those of net.Resolver and net.Dialer.
type Resolver struct {
	opts   Options
	cache  *hostcache.Cache[answer]
	system *system
	load   hostcache.Loader[answer]
	slots  chan struct{} // has a value for each query in flight, see acquire
	mu     sync.Mutex
	lanes  map[string]*lane // by domain; guarded by mu
	first  atomic.Uint32    // number of the server that is asked first

	outages atomic.Uint32 // odd while Ping fails; cached failures count until it changes
}

// How many addresses of a host are kept.
const (
	maxV4 = 4
	maxV6 = 2
)

// An answer is what the cache stores about a host. It has no pointers, so millions of them cost the
// garbage collector nothing.
//
// If the name servers failed, Failed is the number of outages then, plus one. The kinds of address of
// which there is none are then unknown: one kind, or both.
type answer struct {
	N4, N6 uint8
	Failed uint32 // see below
	V4     [maxV4][4]byte
	V6     [maxV6][16]byte
}

func newAnswer(addrs []netip.Addr) (a answer) {
	for _, addr := range addrs {
		switch addr = addr.Unmap(); {
		case addr.Is4() && a.N4 < maxV4:
			a.V4[a.N4] = addr.As4()
			a.N4++
		case addr.Is6() && a.N6 < maxV6:
			a.V6[a.N6] = addr.As16()
			a.N6++
		}
	}
	return a
}

// append appends the addresses to a list, those of version 4 first.
func (a *answer) append(to []netip.Addr) []netip.Addr {
	for _, b := range a.V4[:min(a.N4, maxV4)] {
		to = append(to, netip.AddrFrom4(b))
	}
	for _, b := range a.V6[:min(a.N6, maxV6)] {
		to = append(to, netip.AddrFrom16(b))
	}
	return to
}

// New returns a Resolver with an empty cache. It keeps no goroutine running, so it needs no Close.
func New(o Options) *Resolver {
	r := newResolver(o)
	r.cache = hostcache.New[answer](hostcache.Options{MaxBytes: o.MaxBytes})
	return r
}

// Open returns a Resolver that starts with what [Resolver.Save] wrote to a file, if that exists. When that
// expires, the Options of its time have decided. Failures are not among it: nobody knows what outages there were.
// Errors are those of [hostcache.Open]: with one that wraps [hostcache.ErrCorrupt] the Resolver is
// usable, and has the entries before the damage.
func Open(file string, o Options) (*Resolver, error) {
	cache, err := hostcache.Open[answer](file, hostcache.Options{MaxBytes: o.MaxBytes})
	if cache == nil {
		return nil, err
	}
	r := newResolver(o)
	r.cache = cache
	r.outages.Store(2 + 2*rand.Uint32N(1<<30)) // another number than that of a failure in the file
	return r, err
}

func newResolver(o Options) *Resolver {
	o = o.withDefaults()
	r := &Resolver{opts: o, system: newSystem(resolvConf, hostsFile), slots: make(chan struct{}, o.MaxQueries)}
	r.lanes = map[string]*lane{}
	r.load = r.fetch
	return r
}

// Save writes the cache to the file that was given to [Open].
func (r *Resolver) Save() error { return r.cache.Save() }

// Stats describes the cache. Loads counts the names that were looked up.
func (r *Resolver) Stats() hostcache.Stats { return r.cache.Stats() }

// LookupNetIP returns the addresses of a host, IPv4 first. The network is "ip", "ip4" or "ip6". It
// differs from net.Resolver's method in the order and the number of addresses.
func (r *Resolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	// This is small enough to be inlined, so the list need not be allocated if it does not escape.
	return r.lookup(ctx, make([]netip.Addr, 0, maxV4+maxV6), network, host)
}

// Addr returns the first address of a host, which stays the same while the answer is cached. A
// crawler that has a delay per address can rely on connecting to this one.
func (r *Resolver) Addr(ctx context.Context, host string) (netip.Addr, error) {
	var space [maxV4 + maxV6]netip.Addr
	addrs, err := r.lookup(ctx, space[:0], "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	return addrs[0], nil
}

// Cached is Addr if it is known without a query.
func (r *Resolver) Cached(host string) (addr netip.Addr, known bool) {
	var space [maxV4 + maxV6]netip.Addr
	name, addr, ok := parseHost(host)
	if !ok || addr.IsValid() {
		return addr, ok
	}
	addrs := r.local(space[:0], name)
	if len(addrs) == 0 {
		if a, _ := r.cache.Get(name); !r.isStale(a) {
			addrs = a.append(addrs)
		}
	}
	if len(addrs) == 0 {
		return addr, false
	}
	return addrs[0], true
}

// root is the name of the root of all names.
const root = "."

// Ping queries the name servers for the root of all names, which all of them know, and caches
// nothing. An error means that no name can be looked up now. The failures of other names are then
// not theirs: those that are cached when Ping begins to fail, and when it succeeds again, are
// forgotten. Only ErrUnreachable and ErrServerFailure count as such a failure, and silence until the
// deadline of the context: a Ping that is canceled, or waits behind other look-ups, has found out nothing.
func (r *Resolver) Ping(ctx context.Context) error {
	_, err := r.ask(ctx, root)
	down := uint32(1)
	switch {
	case err == nil, err == errNotFound: // that it has no address is an answer
		down, err = 0, nil
	case errors.Is(err, errWaited), errors.Is(ctx.Err(), context.Canceled),
		(ctx.Err() == nil || r.opts.Lookup != nil) && !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrServerFailure):
		return dnsError(root, err)
	}
	if before := r.outages.Load(); before&1 != down {
		r.outages.CompareAndSwap(before, before+1)
	}
	if err == nil {
		return nil
	}
	return dnsError(root, err)
}

// lookup appends the addresses of a host to a list, at least one if there is no error.
func (r *Resolver) lookup(ctx context.Context, to []netip.Addr, network, host string) ([]netip.Addr,
	error) {
	want4, want6 := network != "ip6", network != "ip4"
	if want4 && want6 && network != "ip" {
		return nil, net.UnknownNetworkError(network)
	}
	name, addr, ok := parseHost(host)
	if !ok {
		return nil, dnsError(host, errNotFound)
	}
	missing := errNotFound // if there is no address of the wanted kind
	if addr.IsValid() {
		to = append(to, addr)
	} else if to = r.local(to, name); len(to) == 0 {
		a, err := r.answer(ctx, name)
		if err != nil {
			return nil, dnsError(host, err)
		}
		if to = a.append(to); a.Failed != 0 {
			missing = errFailedBefore
		}
	}
	kept := to[:0]
	for _, addr := range to {
		if addr.Is4() && want4 || addr.Is6() && want6 {
			kept = append(kept, addr)
		}
	}
	if len(kept) == 0 {
		return nil, dnsError(host, missing)
	}
	return kept, nil
}

// answer returns what the cache or the name servers say.
func (r *Resolver) answer(ctx context.Context, name string) (answer, error) {
	for {
		a, err := r.cache.Load(ctx, name, r.load)
		switch {
		case errors.Is(err, hostcache.ErrNegative):
			return a, errNotFound
		case err != nil || a.Failed == 0:
			return a, err
		case r.isStale(a):
		case a.N4 > 0 || a.N6 > 0:
			return a, nil
		default:
			return a, errFailedBefore
		}
		r.cache.Drop(name, r.isStale)
	}
}

// isStale reports whether an answer, or half of it, is missing for the fault of an outage that is over,
// or was found to be one since.
func (r *Resolver) isStale(a answer) bool { return a.Failed != 0 && a.Failed != r.outages.Load()+1 }

// local appends the addresses that need no name server.
func (r *Resolver) local(to []netip.Addr, name string) []netip.Addr {
	name = strings.TrimSuffix(name, ".")
	for _, table := range []map[string][]netip.Addr{r.opts.Hosts, r.system.refresh().hosts} {
		if addrs := table[name]; len(addrs) > 0 {
			return appendSorted(to, addrs)
		}
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761 §6.3
		return append(to, netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback())
	}
	return to
}

// appendSorted appends addresses to a list, those of version 4 first, also in their mapped form.
func appendSorted(to, addrs []netip.Addr) []netip.Addr {
	for _, want4 := range []bool{true, false} {
		for _, addr := range addrs {
			if addr = addr.Unmap(); addr.IsValid() && addr.Is4() == want4 {
				to = append(to, addr)
			}
		}
	}
	return to
}

// fetch is the loader of the cache.
func (r *Resolver) fetch(ctx context.Context, name string) (answer, time.Duration, error) {
	// The query is for all who wait, so the values of one are none of its: a trace of a request, for example.
	plain, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	failed := answer{Failed: r.outages.Load() + 1} // before it asks: a later Ping must count
	found, err := r.ask(plain, name)
	if errors.Is(err, hostcache.ErrNegative) {
		err = foreignError{err}
	}
	longest := r.opts.MaxTTL
	switch {
	case err == errNotFound:
		longest = min(longest, maxNegative)
		err = hostcache.ErrNegative
	case errors.Is(err, ErrServerFailure):
		return failed, min(failureTTL, longest), storedError{err}
	case err != nil:
		return answer{}, 0, err // not stored, even if it wraps hostcache.ErrStored
	}
	a, ttl := newAnswer(found.addrs), min(max(found.ttl, r.opts.MinTTL), longest)
	if found.half {
		a.Failed, ttl = failed.Failed, min(ttl, failureTTL)
	}
	return a, ttl, err
}

// A storedError has a record of the failure cached. Those who wait get to know what happened.
type storedError struct{ error }

func (e storedError) Unwrap() []error { return []error{e.error, hostcache.ErrStored} }

// A foreignError hides that another hostcache.Cache has no value, as that of a Lookup: it says nothing about
// the host, neither here nor in a Cache above.
type foreignError struct{ error }

func (e foreignError) Is(target error) bool {
	return target != hostcache.ErrNegative && errors.Is(e.error, target)
}
func (e foreignError) As(target any) bool { return errors.As(e.error, target) }

// ask queries the name servers, or Options.Lookup. A name that does not exist is errNotFound.
func (r *Resolver) ask(ctx context.Context, name string) (found finding, err error) {
	c := r.system.refresh()
	switch {
	case r.opts.Lookup != nil:
		found, err = r.lookUp(ctx, name, r.opts.Lookup)
	case r.opts.Servers != nil:
		plain := config{servers: r.opts.Servers, ndots: 1, attempts: 2, timeout: DefaultTimeout}
		return r.askServers(ctx, &plain, name)
	case c.missing:
		found, err = r.lookUp(ctx, name, lookupOfNet)
	default:
		return r.askServers(ctx, c, name)
	}
	if isNotFound(err, name) || err == nil && len(found.addrs) == 0 {
		err = errNotFound
	}
	return found, err
}

// isNotFound reports whether an error says that there is no such host. Around one of another name it
// says that whoever was to be asked cannot be found.
func isNotFound(err error, host string) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound &&
		(dns.Name == "" || strings.EqualFold(strings.TrimSuffix(dns.Name, "."), strings.TrimSuffix(host, ".")))
}

// lookUp calls a Lookup, as one query.
func (r *Resolver) lookUp(ctx context.Context, name string, lookup Lookup) (found finding, err error) {
	release, err := r.acquire(ctx, name)
	if err != nil {
		return found, err
	}
	defer release()
	found.addrs, found.ttl, err = lookup(ctx, name)
	return found, err
}

// lookupOfNet is package net's, which has no ttl.
func lookupOfNet(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if addr := (*net.AddrError)(nil); errors.As(err, &addr) { // "no suitable address"
		err = errNotFound
	}
	return addrs, 0, err
}

// askServers tries the names of the search list.
func (r *Resolver) askServers(ctx context.Context, c *config, name string) (finding, error) {
	ttl, err := maxNegative, errNotFound
	answered := false
	for _, fqdn := range c.names(name) {
		found, fqdnErr := r.query(ctx, c, fqdn)
		if fqdnErr == nil {
			return found, nil
		}
		ttl = min(ttl, found.ttl)
		if answered {
			fqdnErr = afterAnswer(fqdnErr)
		}
		answered = answered || fqdnErr == errNotFound || errors.Is(fqdnErr, ErrServerFailure)
		if fqdnErr != errNotFound {
			err = fqdnErr // so it is not known whether the name exists
		}
		if errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			break
		}
	}
	return finding{ttl: ttl}, err
}

// dnsError returns the error of a look-up in package net's form. What err wraps stays wrapped.
func dnsError(host string, err error) error {
	notFound := err == errNotFound || isNotFound(err, host)
	if dns, ok := err.(*net.DNSError); ok && dns.IsNotFound == notFound {
		return dns
	}
	e := &net.DNSError{Err: err.Error(), Name: host, UnwrapErr: err}
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		e.Server, e.IsTemporary = dns.Server, dns.IsTemporary
	}
	switch {
	case notFound:
		e.Err, e.IsNotFound = errNotFound.Error(), true
	case errors.Is(err, ErrUnreachable), errors.Is(err, ErrServerFailure):
		e.IsTemporary = true
	}
	var timeout interface{ Timeout() bool }
	e.IsTimeout = errors.As(err, &timeout) && timeout.Timeout()
	return e
}
