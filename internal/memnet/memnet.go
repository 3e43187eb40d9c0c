// Package memnet connects clients and servers inside one process, without sockets.
//
// Its connections come from net.Pipe, so goroutines that wait for them count as durably blocked in
// a testing/synctest bubble: a 30-second timeout fires after exactly 30 seconds of fake time.
//
//	n := memnet.New()
//	l, err := n.Listen("192.0.2.1:80")
//	go http.Serve(l, handler)
//	conn, err := n.Dial(ctx, "tcp", "192.0.2.1:80")
//
// A pipe has no buffer: a Write blocks until the data has been read.
package memnet

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// ErrInUse means that an address already has a listener.
var ErrInUse = errors.New("memnet: address in use")

// Network is a set of listeners. Its methods are safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

// New returns a Network without listeners.
func New() *Network { return &Network{listeners: make(map[string]*listener)} }

// Listen returns a listener for connections to addr, which may be any string.
func (n *Network) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, ErrInUse
	}
	l := &listener{net: n, addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects to the listener at addr and waits until it accepts. Without a listener, the
// connection is refused, as in a real network.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	client, server := net.Pipe()
	var err error
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		err = syscall.ECONNREFUSED
	case <-ctx.Done():
		err = ctx.Err()
	}
	client.Close()
	server.Close()
	return nil, &net.OpError{Op: "dial", Net: network, Err: err}
}

// listener implements net.Listener.
type listener struct {
	net    *Network
	addr   string
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		delete(l.net.listeners, l.addr)
		close(l.closed)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return addr(l.addr) }

// addr implements net.Addr.
type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }
