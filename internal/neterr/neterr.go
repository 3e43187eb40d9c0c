// Package neterr distinguishes network errors of this machine from those of the server. Windows has
// error numbers of its own that package syscall does not define: syscall.ENETDOWN, for example, is
// an invented number there, which no real error equals.
package neterr

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Local reports whether an error says nothing about the server: it is one of this Machine, or an
// error of err has a method Local() bool that returns true, as those of layers that refuse a request
// or fail themselves do.
func Local(err error) bool {
	var own interface{ Local() bool }
	return errors.As(err, &own) && own.Local() || Machine(err)
}

// Machine reports whether this machine ran out of resources, has no network, or did not get through
// to its proxy, which net/http names as the operation that has failed, or to which it has no password.
func Machine(err error) bool {
	var op *net.OpError
	return Exhausted(err) || lacks(err, unconnected) || errors.As(err, &op) && op.Op == "proxyconnect" || lacksPassword(err)
}

// lacksPassword reports whether a proxy wants another password before it connects to a server. Package net/http
// has no more than these words for that: those of the proxy, to which some add a sentence, or of SOCKS.
func lacksPassword(err error) bool {
	return AnyText(err, func(text string) bool {
		text = strings.ToLower(text)
		return strings.HasPrefix(text, "proxy authentication required") ||
			strings.HasPrefix(text, "proxy authorization required") ||
			text == "no acceptable authentication methods" || text == "username/password authentication failed"
	})
}

// AnyText reports whether f is true for the text of an error of err, whatever layers have wrapped it.
func AnyText(err error, f func(text string) bool) bool {
	switch {
	case err == nil:
		return false
	case f(err.Error()):
		return true
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), func(one error) bool { return AnyText(one, f) })
	}
	return AnyText(errors.Unwrap(err), f)
}

// Sent reports whether a server may have noticed the request that has failed: an error of err has a
// method Sent() bool that returns true. An error can be Local nevertheless, such as that of a caller
// who did not wait for the answer.
func Sent(err error) bool {
	var of interface{ Sent() bool }
	return errors.As(err, &of) && of.Sent()
}

// Network reports whether an error is one of a network that was tried: of a connection, a look-up,
// or a connection that ended. Errors of files have the same numbers, but not the same types.
func Network(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Handshake returns the error of a TLS handshake for a layer that wraps it. Clients of net/http know
// two such errors by their types, which they do not look for within another error: http.Client that
// of a server without TLS, and go-retryablehttp that of a bad certificate, by these words as well.
func Handshake(err error) error {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return http.ErrSchemeMismatch
	case errors.As(err, &certificate) && !strings.Contains(err.Error(), untrusted):
		return fmt.Errorf("%s: %w", untrusted, err)
	}
	return err
}

const untrusted = "certificate is not trusted"

// Exhausted reports whether this machine ran out of a resource, such as file descriptors.
func Exhausted(err error) bool { return lacks(err, exhausted) }

// lacks is like is, and also knows the causes of look-ups that failed: package net keeps only their texts.
func lacks(err error, any []error) bool {
	var dns *net.DNSError
	return is(err, any) || errors.As(err, &dns) && slices.ContainsFunc(any, func(one error) bool {
		return strings.HasSuffix(dns.Err, one.Error())
	})
}

// Refused reports whether a reachable host refused the connection because nothing listens on the
// port.
func Refused(err error) bool { return is(err, refused) }

// Reset reports whether the peer or the system aborted a connection.
func Reset(err error) bool { return is(err, reset) }

func is(err error, any []error) bool {
	return slices.ContainsFunc(any, func(one error) bool { return errors.Is(err, one) })
}
