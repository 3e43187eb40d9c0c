package resolve

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// maxStrays is how many messages that do not answer a query are dropped before it is repeated over
// TCP. They are errors, or attempts to guess the id.
const maxStrays = 64

// errTCP means that a query must be repeated over TCP.
var errTCP = errors.New("ask over TCP")

// send opens a connection to a name server, which lasts as long as the context, and sends a query. done
// closes it.
func (r *Resolver) send(ctx context.Context, network string, server netip.AddrPort, q *question, edns bool,
) (conn net.Conn, done func(), err error) {
	packed, err := q.pack(edns)
	if err != nil {
		return nil, nil, err
	}
	if network == "udp" {
		packed = packed[2:] // without its length
	}
	conn, err = r.opts.Dial(ctx, network, server.String())
	if err != nil {
		return nil, nil, lost(ctx, server, err)
	}
	// A deadline in the past wakes blocked reads and writes.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	done = func() {
		stop()
		conn.Close()
	}
	if _, err := conn.Write(packed); err != nil {
		done()
		return nil, nil, lost(ctx, server, err)
	}
	return conn, done, nil
}

// overUDP sends a query. The socket has a random port and accepts messages from the server only.
func (r *Resolver) overUDP(ctx context.Context, server netip.AddrPort, q *question, edns bool,
) (m *message, err error) {
	conn, done, err := r.send(ctx, "udp", server, q, edns)
	if err != nil {
		return nil, err
	}
	defer done()
	b := make([]byte, 4096)
	for range maxStrays {
		n, err := conn.Read(b)
		if err != nil {
			return nil, lost(ctx, server, err)
		}
		switch m, err := q.parse(b[:n], true); {
		case err == errStray:
		case err == errSpelling, err == nil && m.truncated:
			return nil, errTCP
		default:
			return m, err
		}
	}
	return nil, errTCP
}

// overTCP sends a query over its own connection, on which nobody else can answer.
func (r *Resolver) overTCP(ctx context.Context, server netip.AddrPort, q *question, edns bool,
) (m *message, err error) {
	conn, done, err := r.send(ctx, "tcp", server, q, edns)
	if err != nil {
		return nil, err
	}
	defer done()
	b := make([]byte, 2, 512)
	if _, err := io.ReadFull(conn, b); err != nil {
		return nil, lost(ctx, server, err)
	}
	b = make([]byte, binary.BigEndian.Uint16(b))
	if _, err := io.ReadFull(conn, b); err != nil {
		return nil, lost(ctx, server, err)
	}
	m, err = q.parse(b, false)
	if err == errStray || err == nil && m.truncated {
		return nil, fmt.Errorf("%w: %v: %w", ErrServerFailure, server, errStray)
	}
	return m, err
}

// lost returns the error of a connection that broke or took too long.
func lost(ctx context.Context, server netip.AddrPort, err error) error {
	if ctx.Err() != nil {
		err = os.ErrDeadlineExceeded // not that of the caller's context
	}
	return fmt.Errorf("%v: %w", server, err)
}
