package schedulerhttp

import (
	"cmp"
	"crypto/tls"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"
)

// A memory is what the Transports with the same hosts know about servers and connections. Its
// methods are safe for concurrent use.
type memory struct {
	began   time.Time
	mu      sync.Mutex
	proxies map[weak.Pointer[tls.Conn]]struct{} // connections through proxies, until they are freed
	delays  map[string][]asked                  // by host, for each server that asks for one
}

// asked is the Crawl-delay of a server of a host.
type asked struct {
	port  string
	delay time.Duration
}

// maxKept bounds the hosts whose delays are kept, and maxPorts their servers. What is forgotten is
// learned again at the next request.
const (
	maxKept  = 10_000
	maxPorts = 16
)

// restoredFor is how long a restored delay counts, whatever servers ask for that may not be those that
// asked for it.
const restoredFor = time.Hour

func newMemory() *memory {
	return &memory{
		began:   time.Now(),
		proxies: map[weak.Pointer[tls.Conn]]struct{}{},
		delays:  map[string][]asked{},
	}
}

// longest returns the delay that a host has once one of its servers asks for a delay: no server, by
// scheme or port, shortens what another one asks for, unless more than maxKept hosts have a delay and
// this one was forgotten. A delay that is not positive cancels an earlier one of the same port, and -1
// that of the host. A host may have a restored delay, and nobody knows which server has asked for it. So
// for an hour, one that asks for none leaves it: longest returns 0. One that asks for another replaces it.
// It requires that m.mu is held.
func (m *memory) longest(host, port string, delay time.Duration) time.Duration {
	all, known := m.delays[host]
	all = slices.DeleteFunc(all, func(a asked) bool { return a.port == port })
	if delay > 0 {
		all = append(all, asked{strings.Clone(port), delay})
	}
	switch {
	case len(all) > 0:
	case !known && time.Since(m.began) < restoredFor:
		return 0
	default:
		delete(m.delays, host)
		return -1
	}
	slices.SortFunc(all, func(a, b asked) int { return cmp.Compare(b.delay, a.delay) })
	if !known {
		m.makeRoom()
		host = strings.Clone(host) // it may be a part of a long URL
	}
	m.delays[host] = all[:min(len(all), maxPorts)]
	return all[0].delay
}

// makeRoom forgets the delays of a host if there are too many.
func (m *memory) makeRoom() {
	for host := range m.delays {
		if len(m.delays) < maxKept {
			return
		}
		delete(m.delays, host)
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
