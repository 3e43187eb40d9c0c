package stage

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/spinneret-go/spinneret/fetch"
)

// A Blame says whose trouble a failed visit is. It matters because a crawler's own trouble must
// never be recorded as a server's failure.
type Blame int

// The choices.
const (
	Theirs  Blame = iota // somebody out there answered, if only to refuse
	Unclear              // the host, its name servers or the network between: the error cannot tell
	Ours                 // this machine's, for sure
)

// exhausted are the errors of a machine that has run out of something.
var exhausted = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// BlameFor judges the error of a fetch or of a name lookup. addr is the host's address, the zero
// Addr if it is not known. The way to a loopback address is never in doubt.
func BlameFor(err error, addr netip.Addr) Blame {
	var dns *net.DNSError
	var failed *fetch.Error
	for _, own := range exhausted {
		if errors.Is(err, own) {
			return Ours
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
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
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return Unclear // no route, network down and the like
		}
	}
	return Theirs
}
