package stage

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/neterr"
)

// A Blame says who caused a failed visit. A crawler's own failure must never be recorded as a
// server's.
type Blame int

// The choices.
const (
	Theirs  Blame = iota // a remote host answered, if only to refuse
	Unclear              // the host, its name servers or the network between: the error cannot tell
	Ours                 // this machine's, for sure
)

// BlameFor classifies the error of a fetch or of a name lookup. addr is the host's address, the
// zero Addr if it is not known. The route to a loopback address always works.
func BlameFor(err error, addr netip.Addr) Blame {
	var dns *net.DNSError
	var failed *fetch.Error
	switch {
	case neterr.Exhausted(err), errors.Is(err, context.Canceled):
		return Ours
	case errors.As(err, &dns) && dns.IsNotFound:
		return Theirs
	case addr.IsLoopback():
		return Theirs
	case !errors.As(err, &failed):
		return Unclear // a lookup that got no answer
	}
	switch failed.Kind {
	case fetch.Resolve, fetch.ResolveTimeout, fetch.ConnectTimeout, fetch.TLSTimeout,
		fetch.HeadTimeout:
		return Unclear
	case fetch.Connect:
		if !neterr.Refused(err) {
			return Unclear // no route, network down and the like
		}
	}
	return Theirs
}
