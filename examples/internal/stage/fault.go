package stage

import (
	"context"
	"errors"
	"net"
	"net/netip"

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
