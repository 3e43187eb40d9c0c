package schedulerhttp

import (
	"net"
	"reflect"
	"sync"
	"time"
)

// A memory is what the Transports with the same hosts know about connections and servers. Its
// methods are safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	users   map[net.Conn]int      // exchanges that use a connection
	proxies map[net.Conn]struct{} // connections to proxies
	delays  map[string]asked      // by host
}

// asked is the longest Crawl-delay of the servers of a host.
type asked struct {
	port  string // of the server
	delay time.Duration
}

// maxKept bounds the maps of a memory that nothing else bounds. What is forgotten is learned again
// at the next request, or costs a needless wait for the address of a proxy.
const maxKept = 10_000

func newMemory() *memory {
	return &memory{users: map[net.Conn]int{}, proxies: map[net.Conn]struct{}{}, delays: map[string]asked{}}
}

// longest returns the delay that a host has once one of its servers asks for a delay: no server, by
// scheme or port, shortens what another one asks for. A negative delay cancels an earlier one.
func (m *memory) longest(host, port string, delay time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, known := m.delays[host]
	if delay > now.delay || port == now.port {
		now = asked{port, delay}
	}
	if now.delay <= 0 {
		delete(m.delays, host)
		return -1
	}
	if !known {
		makeRoom(m.delays)
	}
	m.delays[host] = now
	return now.delay
}

// join records that an exchange uses a connection.
func (m *memory) join(conn net.Conn) {
	if isKey(conn) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.users[conn]++
	}
}

// leave is the inverse of join.
func (m *memory) leave(conn net.Conn) {
	if isKey(conn) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.users[conn]--; m.users[conn] <= 0 {
			delete(m.users, conn)
		}
	}
}

// isShared reports whether other exchanges use a connection than the one that asks, which may have
// joined it.
func (m *memory) isShared(conn net.Conn, joined bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	others := 0
	if isKey(conn) {
		others = m.users[conn]
	}
	if joined {
		others--
	}
	return others > 0
}

// isProxy reports whether a connection leads to a proxy. net/http names the proxy when it makes the
// connection, but names the server when HTTP/2 uses it again.
func (m *memory) isProxy(conn net.Conn, named bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !isKey(conn) {
		return named
	}
	if _, known := m.proxies[conn]; known || !named {
		return known
	}
	makeRoom(m.proxies)
	m.proxies[conn] = struct{}{}
	return true
}

// isKey reports whether a connection can be found in a map.
func isKey(conn net.Conn) bool { return conn != nil && reflect.TypeOf(conn).Comparable() }

// makeRoom forgets something if a map is full.
func makeRoom[K comparable, V any](m map[K]V) {
	for k := range m {
		if len(m) < maxKept {
			return
		}
		delete(m, k)
	}
}
