// Package neterr distinguishes network errors of this machine from those of the server. Windows has
// error numbers of its own that package syscall does not define: syscall.ENETDOWN, for example, is
// an invented number there, which no real error equals.
package neterr

import (
	"errors"
	"net"
	"slices"
)

// Local reports whether this machine could not open a connection because it ran out of resources,
// has no network, or did not get through to its proxy.
func Local(err error) bool { return Exhausted(err) || is(err, unconnected) || proxy(err) }

// proxy reports whether err is about the connection to a proxy, by the operation that net/http
// names in such an error.
func proxy(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "proxyconnect"
}

// Exhausted reports whether this machine ran out of a resource, such as file descriptors.
func Exhausted(err error) bool { return is(err, exhausted) }

// Refused reports whether a reachable host refused the connection because nothing listens on the
// port.
func Refused(err error) bool { return is(err, refused) }

// Reset reports whether the peer or the system aborted a connection.
func Reset(err error) bool { return is(err, reset) }

func is(err error, any []error) bool {
	return slices.ContainsFunc(any, func(one error) bool { return errors.Is(err, one) })
}
