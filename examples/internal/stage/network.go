package stage

import (
	"context"
	"crypto/x509"
	"net"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// A Network is where requests go. The zero Network is the machine's own.
type Network struct {
	Resolve resolve.Lookup
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	Roots   *x509.CertPool // trusted certificates; nil means those of the system
}
