package jet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// ErrRefused means that the broker refuses this process, or the reverse: a certificate, a user or a
// permission is missing. Other failures are temporary, so this package waits until they are over;
// this one is permanent.
var ErrRefused = errors.New("jet: refused")

// refusal wraps an error in an [ErrRefused] with advice.
func refusal(err error) error {
	if text := advice(err); text != "" {
		return fmt.Errorf("%w: %w: %s", ErrRefused, err, text)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// advice returns what the operator can do about an error, or "" for temporary ones.
func advice(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return "use -ca to name a file with the CA certificate of the brokers"
	case errors.As(err, &name):
		return "address the brokers in -nats by a name in their certificate"
	case errors.As(err, &invalid):
		return "renew the brokers' certificate, or set the clock of this machine"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the brokers do not speak TLS: configure it, or write nats:// in -nats"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return "use -creds to name a file with the credentials of a user that the brokers accept"
	case errors.Is(err, nats.ErrPermissionViolation):
		return "give the user the permissions that OPERATING.md lists under \"Brokers for real\""
	}
	return ""
}

// refuse records an error of the connection if it is permanent.
func (b *Bus) refuse(err error) {
	if advice(err) != "" {
		b.refused(refusal(err))
	}
}

// Refused returns why the broker refuses this process, or nil.
func (b *Bus) Refused() error { return context.Cause(b.welcome) }

// Bound returns a context that also ends when the broker refuses this process. A call with it waits
// for brokers that are away, but not for missing permissions. Refused then returns the reason.
func (b *Bus) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(b.welcome, cancel)
	return ctx, func() { unhook(); cancel() }
}
