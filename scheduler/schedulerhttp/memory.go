package schedulerhttp

import (
	"cmp"
	"crypto/tls"
	"hash/maphash"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/spinneret-go/spinneret/internal/httpurl"
)

// A memory is what the Transports with the same hosts know about servers and connections. Its
// methods are safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	proxies map[weak.Pointer[tls.Conn]]struct{} // connections through proxies, until they are freed
	delays  map[string][]asked                  // by host, for each server that asks for one
	none    map[string]time.Time                // when a host without such a server was asked first
	servers map[uint64]struct{}                 // at other ports than that of the scheme, which have answered
	seed    maphash.Seed
}

// asked is the Crawl-delay of a server of a host.
type asked struct {
	server uint64 // see serverOf
	delay  time.Duration
}

// maxKept bounds the hosts that are kept with delays, those without, and the servers that have answered; maxPorts
// bounds the servers of a host. What is forgotten is learned again at the next request.
const (
	maxKept  = 10_000
	maxPorts = 16
)

// restoredFor is how long a restored delay counts from the first request that says that its server asks
// for none, which may not be the server that asked for it.
const restoredFor = time.Hour

func newMemory() *memory {
	return &memory{
		proxies: map[weak.Pointer[tls.Conn]]struct{}{},
		delays:  map[string][]asked{},
		none:    map[string]time.Time{},
		servers: map[uint64]struct{}{},
		seed:    maphash.MakeSeed(),
	}
}

// longest returns the delay that a host has once one of its servers asks for a delay: no server, by
// scheme, name or port, shortens what another one asks for, unless more than maxKept hosts have a delay and
// this one was forgotten. A delay that is not positive cancels an earlier one of the same server, and -1
// that of the host. A host may have a restored delay, and nobody knows which server has asked for it. So
// for an hour, or longer if there are very many hosts, one that asks for none leaves it: longest returns
// 0. One that asks for another replaces it.
// It requires that m.mu is held.
func (m *memory) longest(host string, server uint64, delay time.Duration) time.Duration {
	all, known := m.delays[host]
	all = slices.DeleteFunc(all, func(a asked) bool { return a.server == server })
	if delay > 0 {
		all = append(all, asked{server, delay})
	}
	switch {
	case len(all) > 0:
	case !known && m.sinceNone(host) < restoredFor:
		return 0
	default:
		delete(m.none, host)
		delete(m.delays, host)
		return -1
	}
	slices.SortFunc(all, func(a, b asked) int { return cmp.Compare(b.delay, a.delay) })
	if !known {
		makeRoom(m.delays)
		host = strings.Clone(host) // it may be a part of a long URL
	}
	m.delays[host] = all[:min(len(all), maxPorts)]
	return all[0].delay
}

// serverOf returns a number for what a robots.txt holds for: the scheme, name and port by which a request
// asks. A host may answer to other names, or at a port for TLS without that, as if it had no robots.txt.
func (m *memory) serverOf(r *http.Request) uint64 {
	u := url.URL{Scheme: r.URL.Scheme, Host: cmp.Or(r.Host, r.URL.Host)}
	port, _ := strconv.ParseUint(httpurl.Port(&u), 10, 16) // which may begin with zeros; the base refuses others
	return maphash.Comparable(m.seed, struct {
		scheme, name string
		port         uint64
	}{u.Scheme, strings.ToLower(u.Hostname()), port})
}

// sinceNone returns how long ago a host was first asked while none of its servers asked for a delay.
func (m *memory) sinceNone(host string) time.Duration {
	first, known := m.none[host]
	if !known {
		first = time.Now()
		makeRoom(m.none)
		m.none[strings.Clone(host)] = first
	}
	return time.Since(first)
}

// answered records that there was an answer to a request.
func (m *memory) answered(r *http.Request) {
	if !m.isStrange(r) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	makeRoom(m.servers)
	m.servers[m.serverOf(r)] = struct{}{}
}

// isStrange reports whether a request goes to another port than that of its scheme, and nothing there has ever
// answered. That says nothing of a host whose pages are elsewhere: anybody can link to any port.
func (m *memory) isStrange(r *http.Request) bool {
	if !isUnusual(r.URL) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.servers[m.serverOf(r)]
	return !known
}

func isUnusual(u *url.URL) bool {
	return strings.TrimLeft(httpurl.Port(u), "0") != httpurl.Port(&url.URL{Scheme: u.Scheme})
}

// makeRoom forgets a host or a server if there are too many.
func makeRoom[K comparable, V any](hosts map[K]V) {
	for host := range hosts {
		if len(hosts) < maxKept {
			return
		}
		delete(hosts, host)
	}
}

// isProxy reports whether a connection leads to a proxy. net/http names the proxy when it makes the
// connection, but names the server when HTTP/2 uses it again. That needs TLS, so only such
// connections are remembered: not what they hold, as the certificates of a server may be long.
func (m *memory) isProxy(conn net.Conn, named bool) bool {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return named
	}
	key := weak.Make(secure)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.proxies[key]; known || !named {
		return known
	}
	m.proxies[key] = struct{}{}
	runtime.AddCleanup(secure, m.forget, key)
	return true
}

// forget is called when a connection has been freed.
func (m *memory) forget(conn weak.Pointer[tls.Conn]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.proxies, conn)
}

// isKey reports whether a connection can be found in a map.
func isKey(conn net.Conn) bool { return conn != nil && reflect.TypeOf(conn).Comparable() }
