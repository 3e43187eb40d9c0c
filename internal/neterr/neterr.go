// Package neterr tells whose fault an error of the network is. Windows has numbers of its own for
// such errors, which its package syscall does not name: syscall.ENETDOWN is made up there, and no
// error is ever equal to it.
package neterr

import (
	"errors"
	"slices"
)

// Local reports whether an error says that this machine could not open a connection, whatever the
// server: it has run out of something, or has no network.
func Local(err error) bool { return Exhausted(err) || is(err, unconnected) }

// Exhausted reports whether an error says that this machine has run out of something.
func Exhausted(err error) bool { return is(err, exhausted) }

// Refused reports whether an error says that nobody listens at a port of a host that was reached.
func Refused(err error) bool { return is(err, refused) }

// Reset reports whether an error says that the other side, or the system, ended a connection.
func Reset(err error) bool { return is(err, reset) }

func is(err error, any []error) bool {
	return slices.ContainsFunc(any, func(one error) bool { return errors.Is(err, one) })
}
