package webtest

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options describes a [Web]. The zero Options is 100 hosts of 50 pages on 100 addresses.
type Options struct {
	Seed  uint64 // another seed is another web; 0 means seed 0
	Hosts int    // generated hosts; 0 means 100, or none if Static is set
	Addrs int    // addresses that all hosts share in turn; 0 means one per host, at most 250
	Pages int    // per host; 0 means 50
	Size  int    // median bytes of a page; 0 means 4096

	// Traits returns the behaviour of each host. Start calls it once per host. For hosts from
	// Static and Handlers, only Latency, Throttle, Lookup and Refuse apply. nil means that all
	// hosts behave well.
	Traits func(host int) Traits

	// Static is a directory. Each of its sub-directories whose name does not begin with a dot is served
	// as the host of that name. "" means none.
	Static string

	// Handlers are your own hosts, by name, whatever its case. Requests to them are logged, too. A
	// connection that one of them hijacks is its own to close. nil means none. If a web has hosts from
	// Static or Handlers, it has generated ones only if Hosts is set.
	Handlers map[string]http.Handler

	// TLS makes the URLs of all hosts https, with HTTP/2 for clients that offer it. Plain HTTP gets an
	// answer only from [Web.Proxy], which redirects. [Web.Roots] verifies the certificates. false means
	// http.
	TLS bool

	// Port is bound on every address, for programs that cannot use Dial. 0 means a free port, which
	// only Dial knows.
	Port int

	// Now returns the time by which pages change; its first result is the start. nil means
	// time.Now.
	Now func() time.Time

	// Network carries the connections in place of sockets, for testing/synctest bubbles, in which
	// waits take no time. Only Dial reaches such a web. nil means sockets.
	Network interface {
		Listen(addr string) (net.Listener, error)
		Dial(ctx context.Context, network, addr string) (net.Conn, error)
	}

	NoLog  bool      // keep no requests in memory; false means that Log has them all
	LogTSV io.Writer // gets a line for every answered request, flushed by Close; nil means none

	shared   bool // use 127.0.0.1 only, as on systems without more; false means if need be
	treeOnly bool // leave out the links at random; false means with them
}

// withDefaults leaves Addrs alone: its default depends on how many static hosts there are.
func (o Options) withDefaults() Options {
	if o.Hosts == 0 && o.Static == "" && len(o.Handlers) == 0 {
		o.Hosts = 100
	}
	o.Pages = cmp.Or(o.Pages, 50)
	o.Size = cmp.Or(o.Size, 4096)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Host is one host of a [Web].
type Host struct {
	Name  string
	Addr  netip.Addr // where it is, on port 80 or, with TLS, 443
	Index int        // the argument of Options.Traits: generated hosts, static ones, own handlers
	web   *Web
}

// host is the state of a host.
type host struct {
	Host
	pages   int          // 0 for a host that is not generated
	handler http.Handler // of a host from Options.Handlers; else nil
	traits  Traits
	asked   atomic.Int64 // requests so far that count for the throttle
	lookups atomic.Int64 // of the name
}

// Web is a running virtual web. Its methods are safe for concurrent use.
type Web struct {
	scheme    string // of all URLs, with its "://"
	seed      uint64
	prose     *prose
	hosts     []host // generated ones first
	generated int    // number of them
	byName    map[string]int
	treeOnly  bool
	size      float64
	now       func() time.Time
	start     time.Time
	static    *os.Root // nil without static hosts

	log       *recorder
	server    *http.Server
	listeners map[netip.Addr]netip.AddrPort // virtual address → real one
	virtual   map[netip.AddrPort]netip.Addr // and back
	ctx       context.Context               // ends with the web
	cancel    context.CancelFunc
	network   bool                                                              // there are no sockets
	dial      func(ctx context.Context, network, addr string) (net.Conn, error) // to a real address
	authority *authority                                                        // nil without TLS
	closeOnce sync.Once
	closeErr  error
	serving   sync.WaitGroup // accept loops
	conns     sync.WaitGroup // connections, and requests over HTTP/2; grows only while accept loops run

	mu       sync.Mutex // protects hijacked, and see enter and goServe
	hijacked map[net.Conn]struct{}
}

// Start starts a web. It listens once Start returns.
func Start(o Options) (*Web, error) {
	o = o.withDefaults()
	w := &Web{
		seed: mix(o.Seed + 1), prose: newProse(o.Seed), generated: o.Hosts,
		treeOnly: o.treeOnly, size: float64(o.Size), now: o.Now, start: o.Now(),
		log: newRecorder(!o.NoLog, o.LogTSV), hijacked: make(map[net.Conn]struct{}),
	}
	if w.scheme = "http://"; o.TLS {
		w.scheme, w.authority = "https://", newAuthority()
	}
	names, err := w.openStatic(o.Static)
	if err != nil {
		return nil, errors.Join(err, w.closeStatic())
	}
	all, err := w.bind(o, append(names, slices.Sorted(maps.Keys(o.Handlers))...))
	if err != nil {
		return nil, errors.Join(err, w.closeStatic())
	}
	w.serve(all)
	return w, nil
}

// bind gives every host its address and opens the listeners. Named hosts follow the generated ones.
func (w *Web) bind(o Options, named []string) ([]net.Listener, error) {
	n := o.Hosts + len(named)
	addrs := o.Addrs
	if addrs == 0 {
		addrs = min(n, 250)
	}
	counts := o.Hosts >= 0 && n <= maxHosts && o.Pages >= 1 && o.Pages < math.MaxInt32
	if !counts || o.Size < 0 || addrs < 1 || addrs > maxAddrs || o.Port < 0 || o.Port > 65535 {
		return nil, fmt.Errorf("webtest: start %d hosts of %d pages on %d addresses, port %d: "+
			"out of range", n, o.Pages, addrs, o.Port)
	}
	w.addHosts(o, named, addrs)
	if len(w.byName) < n {
		return nil, errors.New("webtest: start: two hosts have one name, in whatever case")
	}
	var all []net.Listener
	var err error
	if o.Network != nil {
		w.dial, w.network = o.Network.Dial, true
		all, err = listenIn(o.Network.Listen, addrs)
	} else {
		w.dial = new(net.Dialer).DialContext
		all, err = listen(addrs, o.Port, o.shared)
	}
	if err != nil {
		return nil, err
	}
	w.listeners = make(map[netip.Addr]netip.AddrPort, addrs)
	w.virtual = make(map[netip.AddrPort]netip.Addr, addrs)
	for i, l := range all {
		behind := l.Addr().(*net.TCPAddr).AddrPort()
		w.listeners[virtualAddr(firstServing, i)] = behind
		w.virtual[behind] = virtualAddr(firstServing, i)
	}
	return all, nil
}

// addHosts assigns the addresses in turn. A refusing host gets one of its own, since an address
// that answers for its other hosts cannot refuse for one.
func (w *Web) addHosts(o Options, named []string, addrs int) {
	n := o.Hosts + len(named)
	w.hosts, w.byName = make([]host, n), make(map[string]int, n)
	for i := range w.hosts {
		h := &w.hosts[i]
		h.Host = Host{Index: i, Addr: virtualAddr(firstServing, i%addrs), web: w}
		if o.Traits != nil {
			h.traits = o.Traits(i)
		}
		if i < o.Hosts {
			pages := cmp.Or(h.traits.Pages, o.Pages)
			h.Name, h.pages = hostName(i), min(max(1, pages), math.MaxInt32)
		} else {
			h.Name = named[i-o.Hosts]
			h.handler = o.Handlers[h.Name]
		}
		if h.traits.Refuse {
			h.Addr = virtualAddr(firstRefusing, i)
		}
		w.byName[strings.ToLower(h.Name)] = i
	}
}

// maxHosts leaves each refusing host an address of its own.
const maxHosts = maxAddrs

// hostName names host i. Every eighth has a registrable domain of its own.
func hostName(i int) string {
	if i%8 == 7 {
		return fmt.Sprintf("www.site%d.example", i)
	}
	return fmt.Sprintf("h%05d.vweb.test", i)
}

// Roots returns the pool that verifies the certificates of the hosts; nil without TLS.
func (w *Web) Roots() *x509.CertPool {
	if w.authority == nil {
		return nil
	}
	return w.authority.roots
}

// Close closes every connection and returns when nothing of the web runs any more. The log stays
// readable. It may be called more than once.
func (w *Web) Close() error {
	w.closeOnce.Do(func() {
		w.cancel()
		w.closeHijacked() // tunnels are in serving, and may wait for their client
		err := w.server.Close()
		w.serving.Wait()
		// A connection accepted while the server closed may have slipped through.
		err = errors.Join(err, w.server.Close())
		w.conns.Wait()
		w.closeErr = errors.Join(err, w.log.flush(), w.closeStatic())
	})
	return w.closeErr
}

// Hosts returns all hosts, by index.
func (w *Web) Hosts() iter.Seq[Host] {
	return func(yield func(Host) bool) {
		for i := range w.hosts {
			if !yield(w.hosts[i].Host) {
				return
			}
		}
	}
}

// Host finds a host by name, in any case and with or without the trailing dot.
func (w *Web) Host(name string) (Host, bool) {
	i, ok := w.byName[strings.TrimSuffix(strings.ToLower(name), ".")]
	if !ok {
		return Host{}, false
	}
	return w.hosts[i].Host, true
}

// URL returns the host's root, from which all of its pages can be reached.
func (h Host) URL() string { return h.web.scheme + h.Name + "/" }

// Pages returns the URLs of all pages of the host, whatever its robots.txt says. Only a generated
// host has any.
func (h Host) Pages() iter.Seq[string] {
	return func(yield func(string) bool) {
		for p := range h.web.hosts[h.Index].pages {
			if !yield(string(h.web.appendURL(nil, h.Index, p))) {
				return
			}
		}
	}
}

// IsPage reports whether url is one that [Host.Pages] yields for a generated host.
func (w *Web) IsPage(url string) bool {
	_, _, ok := w.locate(url)
	return ok
}

// locate finds the page behind a URL.
func (w *Web) locate(raw string) (host, page int, ok bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme+"://" != w.scheme {
		return 0, 0, false
	}
	host, ok = w.byName[u.Host]
	if !ok || host >= w.generated {
		return 0, 0, false
	}
	page, ok = w.findPage(host, u.RequestURI())
	return host, page, ok
}

// Log returns all requests so far, in the order of their arrival. With Options.NoLog it is empty.
func (w *Web) Log() []Request { return w.log.all() }
