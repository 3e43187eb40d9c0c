package stage

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/neterr"
)

// A Fault says whose fault a failed visit is. A crawler's own failure must never be recorded as a
// server's.
type Fault int

// The choices.
const (
	TheirFault   Fault = iota // a remote host answered, if only to refuse
	UnclearFault              // the error cannot tell: the host, its name servers, or the network between
	OurFault                  // certainly this machine's
)

// Attribute classifies the error of a fetch or of a name lookup. addr is the host's address, the
// zero Addr if it is not known. The route to a loopback address always works.
func Attribute(err error, addr netip.Addr) Fault {
	var dns *net.DNSError
	var failed *fetch.Error
	switch {
	case neterr.Exhausted(err), errors.Is(err, context.Canceled):
		return OurFault
	case errors.Is(err, fetch.Proxy): // unreachable, or its name unknown
		if refusedByProxy(err) {
			return TheirFault
		}
		if brokeOff(err) {
			return UnclearFault
		}
		return OurFault
	case errors.As(err, &dns) && dns.IsNotFound:
		return TheirFault
	case addr.IsLoopback():
		return TheirFault
	case !errors.As(err, &failed):
		return UnclearFault // a lookup that got no answer
	}
	switch failed.Kind {
	case fetch.Resolve, fetch.ResolveTimeout, fetch.ConnectTimeout, fetch.TLSTimeout,
		fetch.HeadTimeout:
		return UnclearFault
	case fetch.Connect:
		if !neterr.Refused(err) {
			return UnclearFault // no route, network down and the like
		}
	}
	return TheirFault
}

// brokeOff reports whether a SOCKS proxy closed a connection, as ssh -D does for servers that it cannot
// reach.
func brokeOff(err error) bool {
	return errors.Is(err, io.EOF) && strings.HasPrefix(proxyText(err), "socks connect ")
}

// proxyText returns what went wrong at a proxy, for which there is no type; "" if nothing did.
func proxyText(err error) string {
	var op *net.OpError
	if errors.Is(err, fetch.Proxy) && errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return ""
}

// refusedByProxy reports whether a proxy works, and refuses the requests to this server. A server may
// answer a plain request as a proxy does that wants a password, and must not pass for a broken one.
func refusedByProxy(err error) bool {
	text := proxyText(err)
	if _, reply, socks := strings.Cut(text, "unknown error "); socks { // it comes after the password
		return reply != "command not supported"
	}
	answer, tunnel := strings.CutPrefix(text, "proxy: ")
	if strings.HasPrefix(answer, "407 ") {
		return !tunnel
	}
	return tunnel || strings.HasSuffix(text, "connection not allowed by ruleset")
}
