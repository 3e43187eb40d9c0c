package jet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// ErrRefused says that this process and the broker do not want each other: a certificate, a user or
// a right is missing. Other faults pass by themselves, so that everything here waits for their end;
// this one does not.
var ErrRefused = errors.New("jet: refused")

// refusal makes an error an [ErrRefused] that says what to do.
func refusal(err error) error {
	if text := advice(err); text != "" {
		return fmt.Errorf("%w: %w: %s", ErrRefused, err, text)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// advice says what the operator can do about an error. It is empty for those that may pass.
func advice(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return "name a file with the certificate of the brokers' authority with -ca"
	case errors.As(err, &name):
		return "call the brokers in -nats by a name that their certificate has"
	case errors.As(err, &invalid):
		return "renew the brokers' certificate, or set the clock of this machine"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the brokers do not speak TLS: configure it, or write nats:// in -nats"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return "name a file with the credentials of a user whom the brokers know with -creds"
	case errors.Is(err, nats.ErrPermissionViolation):
		return "give the user the permissions that README.md lists under \"Brokers for real\""
	}
	return ""
}

// refuse notes an error of the connection if it is one that does not pass.
func (b *Bus) refuse(err error) {
	if advice(err) == "" {
		return
	}
	b.refusing.Do(func() {
		b.refusal = refusal(err)
		close(b.refused)
	})
}

// Refused returns why the broker does not let this process go on, or nil.
func (b *Bus) Refused() error {
	select {
	case <-b.refused:
		return b.refusal
	default:
		return nil
	}
}

// Bound returns a context that also ends when the broker refuses this process. What is called with
// it waits for brokers that are away and not for rights that nobody will give. Whoever is told that
// it has ended finds the reason in Refused.
func (b *Bus) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-b.refused:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
