package resolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/internal/neterr"
)

// maxAliases bounds the CNAME records that are followed for one name.
const maxAliases = 16

// A finding is what is known about a name that has addresses.
type finding struct {
	addrs []netip.Addr
	ttl   time.Duration
	half  bool // the kind of address that is not among addrs is unknown: the query for it failed
}

// secondKind is how long the answer for one kind of address waits for that of the other. Some networks
// drop queries for IPv6, which would otherwise hold up each look-up until all tries have failed.
const secondKind = time.Second

// errSecondKind means that the other answer did not come in that time.
var errSecondKind = errors.New("no answer for the other kind of address")

// query asks for the addresses of a name, IPv4 and IPv6 at the same time. With an error, the finding
// has the ttl of it.
func (r *Resolver) query(ctx context.Context, c *config, fqdn string) (finding, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v4 := r.begin(ctx, c, fqdn, dnsmessage.TypeA)
	if c.only4 || fqdn == root { // any answer will do for the root
		found := <-v4.done
		return finding{addrs: found.addrs, ttl: found.ttl}, found.err
	}
	v6 := r.begin(ctx, c, fqdn, dnsmessage.TypeAAAA)
	select {
	case found := <-v4.done:
		return merge(found, v6.after(found))
	case found := <-v6.done:
		return merge(v4.after(found), found)
	}
}

// A pending is a query for one kind of address, and those that its aliases take.
type pending struct {
	begun chan struct{} // closed once it has a slot
	done  chan result
}

func (r *Resolver) begin(ctx context.Context, c *config, fqdn string, kind dnsmessage.Type) *pending {
	p := &pending{make(chan struct{}), make(chan result, 1)}
	go func() {
		release, err := r.acquire(ctx, fqdn)
		if err != nil {
			p.done <- result{err: err}
			return
		}
		defer release()
		close(p.begun)
		p.done <- r.follow(ctx, c, fqdn, kind)
	}()
	return p
}

// after returns the result once that for the other kind is known. If the latter is all that is needed, it
// does not wait for long.
func (p *pending) after(other result) result {
	if other.err != nil && !other.noName {
		return <-p.done
	}
	select {
	case found := <-p.done:
		return found
	case <-p.begun: // waiting for a slot is not the server's fault
	}
	patience := time.NewTimer(secondKind)
	defer patience.Stop()
	select {
	case found := <-p.done:
		return found
	case <-patience.C:
		return result{err: errSecondKind}
	}
}

// merge returns what both results say about the name.
func merge(v4, v6 result) (finding, error) {
	// One kind of address is enough, and a name that does not exist has none of the other kind.
	switch {
	case v4.err == nil && v6.err == nil:
		return finding{addrs: append(v4.addrs, v6.addrs...), ttl: min(v4.ttl, v6.ttl)}, nil
	case v4.err == nil:
		return finding{v4.addrs, v4.ttl, v6.err != errNotFound}, nil
	case v6.err == nil:
		return finding{v6.addrs, v6.ttl, v4.err != errNotFound}, nil
	case v4.noName:
		return finding{ttl: v4.ttl}, errNotFound
	case v6.noName:
		return finding{ttl: v6.ttl}, errNotFound
	}
	err := v4.err
	if err == errNotFound || errors.Is(v6.err, ErrServerFailure) {
		err = v6.err
	}
	if v4.err == errNotFound || v6.err == errNotFound {
		err = afterAnswer(err)
	}
	return finding{ttl: min(v4.ttl, v6.ttl)}, err
}

// afterAnswer returns the error of a query if another one of the same look-up was answered: as a server can
// be reached, its silence is a failure.
func afterAnswer(err error) error {
	if errors.Is(err, ErrUnreachable) && !isOurs(err) {
		return fmt.Errorf("%w: one of several queries has no answer", ErrServerFailure)
	}
	return err
}

// A result is the outcome of a query for one kind of address.
type result struct {
	addrs  []netip.Addr // empty if there is an error
	ttl    time.Duration
	err    error // errNotFound if there is no address of this kind
	noName bool  // nor one of another kind, as the name does not exist
}

// follow queries one kind of address. Usually one message has everything, but some servers leave it
// to the client to look up the target of an alias.
func (r *Resolver) follow(ctx context.Context, c *config, fqdn string, kind dnsmessage.Type,
) result {
	left, ttl := maxAliases, maxDuration
	for name := fqdn; ; {
		m, err := r.exchange(ctx, c, name, kind)
		if err != nil && name != fqdn {
			err = afterAnswer(err)
		}
		if err != nil {
			return result{err: err}
		}
		end, aliases, aliasTTL := m.resolve(name, left)
		ttl = min(ttl, aliasTTL)
		switch left -= aliases; {
		case left <= 0:
			return result{err: fmt.Errorf("%w: too many aliases", ErrServerFailure)}
		case len(m.addrs[end]) > 0:
			return result{addrs: m.addrs[end], ttl: min(ttl, m.ttls[end])}
		case m.noName:
			return result{err: errNotFound, noName: true, ttl: min(ttl, m.negativeTTL(end))}
		case end == name || m.isAbove(end): // an SOA record of another zone says nothing about the target
			return result{err: errNotFound, ttl: min(ttl, m.negativeTTL(end))}
		}
		name = end
	}
}

// exchange queries one server after the other, until one knows the answer.
func (r *Resolver) exchange(ctx context.Context, c *config, name string, kind dnsmessage.Type,
) (*message, error) {
	q, err := newQuestion(name, kind)
	if err != nil {
		return nil, errNotFound
	}
	if len(c.servers) == 0 {
		return nil, fmt.Errorf("%w: none is configured", ErrUnreachable)
	}
	var failed, lost error
	first, alive := int(r.first.Load()), false
	if c.rotate {
		first = rand.IntN(len(c.servers))
	}
	for range c.attempts {
		for i := range c.servers {
			number := (first + i) % len(c.servers)
			m, err := r.try(ctx, c, c.servers[number], q)
			if answered := err == nil || errors.Is(err, ErrServerFailure); answered && !alive {
				if alive = true; i > 0 {
					r.first.Store(uint32(number)) // those before it are silent
				}
			}
			switch {
			case err == nil:
				return m, nil
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.Is(err, ErrServerFailure):
				failed = err
			default:
				lost = err
			}
		}
	}
	if failed != nil {
		return nil, failed
	}
	return nil, fmt.Errorf("%w: %w", ErrUnreachable, lost)
}

// try queries one server, over UDP and if necessary over TCP.
func (r *Resolver) try(ctx context.Context, c *config, server netip.AddrPort, q *question,
) (m *message, err error) {
	timeout := c.timeout
	if r.opts.Timeout > 0 {
		timeout = r.opts.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, edns := range []bool{true, false} {
		err = errTCP
		if !c.tcp {
			m, err = r.overUDP(ctx, server, q, edns)
		}
		if errors.Is(err, errTCP) {
			if m, err = r.overTCP(ctx, server, q, edns); err != nil && !c.tcp && !isOurs(err) {
				// It has answered over UDP, so this is its own fault.
				err = fmt.Errorf("%w: not over UDP alone: %w", ErrServerFailure, err)
			}
		}
		if err != nil {
			return nil, err
		}
		if m.rcode != dnsmessage.RCodeFormatError {
			break // otherwise the server may be too old for EDNS
		}
	}
	switch m.rcode {
	case dnsmessage.RCodeSuccess, dnsmessage.RCodeNameError:
		if m.lame {
			return nil, fmt.Errorf("%w: %v refers to others", ErrServerFailure, server)
		}
		return m, nil
	}
	return nil, fmt.Errorf("%w: %v answers %v", ErrServerFailure, server, m.rcode)
}

// isOurs reports whether an error is one of this machine, such as a lack of descriptors or a firewall.
func isOurs(err error) bool { return neterr.Local(err) || errors.Is(err, fs.ErrPermission) }
