package resolve_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// TestErrorsTellWhoseFaultItIs has name servers that say no, that fail, and that do not exist.
func TestErrorsTellWhoseFaultItIs(t *testing.T) {
	failing := zone{}.handler(func(m *message) { m.RCode = dnsmessage.RCodeServerFailure })
	refusing := zone{}.handler(func(m *message) { m.RCode = dnsmessage.RCodeRefused })
	silent := func(message) [][]byte { return nil }
	for _, tt := range []struct {
		name                         string
		servers                      []handler // nil: nobody listens
		notFound, failure, unreached bool
		timeout                      bool
		kept                         bool
		took                         time.Duration
	}{
		{"no such host", []handler{zone{}.handler()}, true, false, false, false, true, 0},
		{"a server failed", []handler{failing}, false, true, false, false, true, 0},
		{"a server refused", []handler{refusing}, false, true, false, false, true, 0},
		{"nobody listens", []handler{nil}, false, false, true, false, false, 0},
		{"nobody answers", []handler{silent}, false, false, true, true, false, 10 * time.Second},
		{"no server at all", []handler{}, false, false, true, false, false, 0},
		{"one refuses, one is silent", []handler{refusing, silent}, false, true, false, false, true,
			10 * time.Second},
		{"one is down, one knows", []handler{nil, zone{}.handler()}, true, false, false, false, true, 0},
		{"one fails, one knows", []handler{failing, zone{}.handler()}, true, false, false, false, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{t: t, servers: map[string]handler{}}
				opts := resolve.Options{Dial: n.dial, Servers: []netip.AddrPort{}}
				for i, h := range tt.servers {
					addr := fmt.Sprintf("192.0.2.%d:53", i+1)
					opts.Servers = append(opts.Servers, netip.MustParseAddrPort(addr))
					if h != nil {
						n.serve(addr, h)
					}
				}
				r := resolve.New(opts)
				begun := time.Now()
				_, err := r.LookupNetIP(t.Context(), "ip", "a.test")
				require.Equal(t, tt.took, time.Since(begun))
				var dns *net.DNSError
				require.ErrorAs(t, err, &dns)
				require.Equal(t, tt.notFound, dns.IsNotFound, "%v", err)
				require.Equal(t, tt.failure, errors.Is(err, resolve.ErrServerFailure), "%v", err)
				require.Equal(t, tt.unreached, errors.Is(err, resolve.ErrUnreachable), "%v", err)
				require.Equal(t, !tt.notFound, dns.IsTemporary, "%v", err)
				require.Equal(t, tt.timeout, dns.IsTimeout, "%v", err)
				require.Equal(t, "a.test", dns.Name)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "it is not the caller's")
				require.Equal(t, tt.kept, r.Stats().Entries == 1, "our own failures are not kept")

				err = r.Ping(t.Context())
				require.Equal(t, tt.notFound, err == nil, "%v", err)
				require.Equal(t, tt.unreached, errors.Is(err, resolve.ErrUnreachable), "%v", err)
				require.LessOrEqual(t, r.Stats().Entries, 1)
			})
		})
	}
}

// TestFailuresAreCachedBriefly is section 3.2 of RFC 9520: at least a second, at most five minutes.
func TestFailuresAreCachedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, zone{}.handler(func(m *message) { m.RCode = dnsmessage.RCodeServerFailure }))
		r := n.resolver(resolve.Options{})
		for range 100 {
			_, err := r.LookupNetIP(t.Context(), "ip", "a.test")
			require.ErrorIs(t, err, resolve.ErrServerFailure)
			var dns *net.DNSError
			require.ErrorAs(t, err, &dns)
			require.True(t, dns.IsTemporary)
			require.False(t, dns.IsNotFound)
			_, known := r.Cached("a.test")
			require.False(t, known)
		}
		asked := len(n.questions())
		require.Equal(t, 4, asked, "two attempts for each kind of address")
		time.Sleep(29 * time.Second)
		_, err := r.Addr(t.Context(), "a.test")
		require.ErrorIs(t, err, resolve.ErrServerFailure)
		require.Empty(t, n.questions())
		n.serve(one, zone{"a.test.": {a("a.test.", "192.0.2.9", 60)}}.handler())
		time.Sleep(time.Second)
		addr, err := r.Addr(t.Context(), "a.test")
		require.NoError(t, err)
		require.Equal(t, "192.0.2.9", addr.String())
	})
}

// TestAFailureNobodyWaitsForIsForgotten has a look-up fail after its only caller has left, and after another one has
// got an answer.
func TestAFailureNobodyWaitsForIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		r := resolve.New(resolve.Options{Lookup: func(context.Context, string) ([]netip.Addr, time.Duration, error) {
			if calls.Add(1) == 1 {
				time.Sleep(time.Minute)
				return nil, 0, resolve.ErrServerFailure
			}
			return addrs("192.0.2.1"), time.Hour, nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.Addr(ctx, "a.test")
		require.Error(t, err)
		_, err = r.Addr(t.Context(), "a.test")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = r.Addr(t.Context(), "a.test")
		require.NoError(t, err)
		require.EqualValues(t, 2, calls.Load())
	})
}

// TestHalfAnAnswerIsNoWholeOne loses one kind of address: nobody has said that there is none.
func TestHalfAnAnswerIsNoWholeOne(t *testing.T) {
	records := zone{"a.test.": {a("a.test.", "192.0.2.9", 86400), a("a.test.", "2001:db8::9", 86400)}}
	for _, lost := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		for _, silent := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				broken.Store(true)
				n := newNetwork(t, func(q message) [][]byte {
					switch kind := q.Questions[0].Type; {
					case !broken.Load() || kind != lost:
						return records.answer(q)
					case silent:
						return nil
					}
					return records.answer(q, func(m *message) {
						m.RCode, m.Answers = dnsmessage.RCodeServerFailure, nil
					})
				})
				r := n.resolver(resolve.Options{})
				known, other, want := "ip6", "ip4", addrs("2001:db8::9")
				if lost == dnsmessage.TypeAAAA {
					known, other, want = "ip4", "ip6", addrs("192.0.2.9")
				}
				for range 3 {
					for _, family := range []string{"ip", known} {
						got, err := r.LookupNetIP(t.Context(), family, "a.test")
						require.NoError(t, err)
						require.Equal(t, want, got)
					}
					_, err := r.LookupNetIP(t.Context(), other, "a.test")
					require.ErrorIs(t, err, resolve.ErrServerFailure)
					var dns *net.DNSError
					require.ErrorAs(t, err, &dns)
					require.False(t, dns.IsNotFound)
					require.True(t, dns.IsTemporary)
				}
				asked := 3 // a server that fails is tried twice
				if silent {
					asked = 2
				}
				require.Len(t, n.questions(), asked, "cached")
				broken.Store(false)
				time.Sleep(29 * time.Second)
				got, err := r.LookupNetIP(t.Context(), "ip", "a.test")
				require.NoError(t, err)
				require.Equal(t, want, got)
				time.Sleep(time.Second)
				got, err = r.LookupNetIP(t.Context(), "ip", "a.test")
				require.NoError(t, err)
				require.Equal(t, addrs("192.0.2.9", "2001:db8::9"), got)
				time.Sleep(time.Hour)
				n.questions()
				_, err = r.LookupNetIP(t.Context(), other, "a.test")
				require.NoError(t, err)
				require.Empty(t, n.questions(), "the whole answer has its own ttl")
			})
		}
	}
}

// TestHalfSilentServersFail: a server that answers only one of the queries that a name takes, for one kind
// of address or for the alias alone, can be reached. So its failure is cached.
func TestHalfSilentServersFail(t *testing.T) {
	alias := zone{"a.test.": {cname("a.test.", "b.test.", 60)}}
	silent := func(kind dnsmessage.Type, code dnsmessage.RCode) handler {
		return func(q message) [][]byte {
			if q.Questions[0].Type == kind {
				return nil
			}
			return zone{}.answer(q, func(m *message) { m.RCode = code })
		}
	}
	for _, h := range []handler{
		silent(dnsmessage.TypeA, dnsmessage.RCodeSuccess),
		silent(dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess),
		silent(dnsmessage.TypeA, dnsmessage.RCodeServerFailure),
		silent(dnsmessage.TypeAAAA, dnsmessage.RCodeServerFailure),
		func(q message) [][]byte {
			if strings.EqualFold(q.Questions[0].Name.String(), "b.test.") {
				return nil
			}
			return alias.answer(q)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newNetwork(t, h).resolver(resolve.Options{})
			for range 2 {
				_, err := r.Addr(t.Context(), "a.test")
				require.ErrorIs(t, err, resolve.ErrServerFailure)
				require.NotErrorIs(t, err, resolve.ErrUnreachable)
			}
			require.EqualValues(t, 1, r.Stats().Loads)
		})
	}
}

// TestASilentSearchDomainFails: so does a server that answers only some of the names of a search list, and
// the names after those are looked up.
func TestASilentSearchDomainFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := zone{"found.b.test.": {a("found.b.test.", "192.0.2.9", 60)}}
		n := newNetwork(t, func(q message) [][]byte {
			if strings.HasSuffix(strings.ToLower(q.Questions[0].Name.String()), ".silent.") {
				return nil
			}
			return records.answer(q)
		})
		r := resolve.New(resolve.Options{Dial: n.dial})
		r.UseFiles(write(t, "resolv.conf", "nameserver 192.0.2.1\nsearch a.test silent b.test\n"), write(t, "hosts", ""))
		for range 2 {
			for _, host := range []string{"absent.example", "absent"} {
				_, err := r.Addr(t.Context(), host)
				require.ErrorIs(t, err, resolve.ErrServerFailure)
				require.NotErrorIs(t, err, resolve.ErrUnreachable)
			}
		}
		require.EqualValues(t, 2, r.Stats().Loads, "and that is cached")
		_, err := r.Addr(t.Context(), "found")
		require.NoError(t, err)
	})
}

// An outage that took half of an answer is over with the next Ping.
func TestHalfAnAnswerOfAnOutageIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := zone{"a.test.": {a("a.test.", "192.0.2.9", 86400), a("a.test.", "2001:db8::9", 86400)}}
		var broken atomic.Bool
		broken.Store(true)
		n := newNetwork(t, func(q message) [][]byte {
			return records.answer(q, func(m *message) {
				if q := q.Questions[0]; broken.Load() && (q.Type == dnsmessage.TypeA || q.Name.String() == ".") {
					m.RCode, m.Answers = dnsmessage.RCodeServerFailure, nil
				}
			})
		})
		r := n.resolver(resolve.Options{})
		_, err := r.LookupNetIP(t.Context(), "ip4", "a.test")
		require.ErrorIs(t, err, resolve.ErrServerFailure)
		require.ErrorIs(t, r.Ping(t.Context()), resolve.ErrServerFailure)
		broken.Store(false)
		require.NoError(t, r.Ping(t.Context()))
		_, known := r.Cached("a.test")
		require.False(t, known, "Addr asks again, and gets another address")
		_, err = r.LookupNetIP(t.Context(), "ip4", "a.test")
		require.NoError(t, err)
	})
}

// A server that has no TCP for an answer that is too long for UDP has answered: no fault of ours.
func TestATruncatedAnswerWithoutTCPIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t, servers: map[string]handler{}}
		n.servers["udp "+one] = zone{}.handler(func(m *message) { m.Truncated = true })
		r := n.resolver(resolve.Options{})
		for range 5 {
			_, err := r.LookupNetIP(t.Context(), "ip", "a.test")
			require.ErrorIs(t, err, resolve.ErrServerFailure)
			require.NotErrorIs(t, err, resolve.ErrUnreachable)
		}
		require.Len(t, n.questions(), 4, "and that is cached")
	})
}

// TestWithoutDescriptorsForTCP: what this machine lacks is not remembered against the host.
func TestWithoutDescriptorsForTCP(t *testing.T) {
	for _, ours := range []error{syscall.EMFILE, syscall.ENETUNREACH, syscall.EPERM} {
		synctest.Test(t, func(t *testing.T) {
			has := zone{"a.test.": {a("a.test.", "192.0.2.9", 60)}}
			n := &network{t: t, servers: map[string]handler{
				"udp " + one: has.handler(func(m *message) { m.Truncated = true }), "tcp " + one: has.handler(),
			}}
			lacking := true
			servers := []netip.AddrPort{netip.MustParseAddrPort(one)}
			r := resolve.New(resolve.Options{Servers: servers, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if network == "tcp" && lacking {
					return nil, &net.OpError{Op: "dial", Net: network, Err: ours}
				}
				return n.dial(ctx, network, address)
			}})
			_, err := r.LookupNetIP(t.Context(), "ip4", "a.test")
			require.ErrorIs(t, err, resolve.ErrUnreachable)
			require.NotErrorIs(t, err, resolve.ErrServerFailure)
			lacking = false
			_, err = r.LookupNetIP(t.Context(), "ip4", "a.test")
			require.NoError(t, err)
		})
	}
}

// TestFailuresOfAnOutageAreForgotten has a name server that fails for all names while it has no
// network, as a local one does. Once it is back, no host must be blamed for that.
func TestFailuresOfAnOutageAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := zone{}.handler(func(m *message) { m.RCode = dnsmessage.RCodeServerFailure })
		up := zone{"a.test.": {a("a.test.", "192.0.2.9", 60)}, "b.test.": {a("b.test.", "192.0.2.9", 60)}}.handler()
		n := newNetwork(t, down)
		r := n.resolver(resolve.Options{})
		_, err := r.Addr(t.Context(), "a.test")
		require.ErrorIs(t, err, resolve.ErrServerFailure)
		require.ErrorIs(t, r.Ping(t.Context()), resolve.ErrServerFailure)
		_, err = r.Addr(t.Context(), "b.test") // after the Ping
		require.ErrorIs(t, err, resolve.ErrServerFailure)
		n.serve(one, up)
		require.NoError(t, r.Ping(t.Context()))
		for _, host := range []string{"a.test", "b.test"} {
			_, err = r.Addr(t.Context(), host)
			require.NoError(t, err, host)
		}
		require.NoError(t, r.Ping(t.Context()), "and again")
	})
}

// TestAFailureThatOutlastsItsOutageIsForgotten has a look-up begin before a Ping and fail after it.
func TestAFailureThatOutlastsItsOutageIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		r := resolve.New(resolve.Options{Lookup: func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
			if up.Load() {
				return addrs("192.0.2.1"), time.Hour, nil
			}
			if host != "." {
				time.Sleep(2 * time.Second)
			}
			return nil, 0, resolve.ErrServerFailure
		}})
		require.Error(t, r.Ping(t.Context()))
		go func() {
			time.Sleep(time.Second)
			up.Store(true)
			require.NoError(t, r.Ping(t.Context()))
		}()
		_, err := r.Addr(t.Context(), "a.test")
		require.ErrorIs(t, err, resolve.ErrServerFailure)
		_, err = r.Addr(t.Context(), "a.test")
		require.NoError(t, err)
	})
}

// TestOnlyAnswersTellOfAnOutage: a Ping that is cancelled, or that a Lookup refuses, begins and ends none.
func TestOnlyAnswersTellOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, refused := 0, errors.New("no such table")
		var root error
		r := resolve.New(resolve.Options{Lookup: func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			if host == "." {
				return nil, 0, cmp.Or(context.Cause(ctx), root)
			}
			asked++
			return nil, 0, resolve.ErrServerFailure
		}})
		ended, end := context.WithCancel(t.Context())
		end()
		for range 3 {
			_, err := r.Addr(t.Context(), "broken.test")
			require.ErrorIs(t, err, resolve.ErrServerFailure)
			root = nil
			require.ErrorIs(t, r.Ping(ended), context.Canceled)
			require.NoError(t, r.Ping(t.Context()))
			root = refused
			require.ErrorIs(t, r.Ping(t.Context()), refused)
		}
		require.Equal(t, 1, asked)
		root = resolve.ErrServerFailure
		require.ErrorIs(t, r.Ping(t.Context()), root)
		_, err := r.Addr(t.Context(), "broken.test")
		require.ErrorIs(t, err, root)
		require.Equal(t, 2, asked)
	})
}

// TestErrorsKeepWhatTheyWrap, also around an error of package net.
func TestErrorsKeepWhatTheyWrap(t *testing.T) {
	of := &net.DNSError{Err: "server misbehaving", Name: "broken.test", Server: "192.0.2.1", IsTemporary: true}
	cause := errors.New("shut down")
	r := resolve.New(resolve.Options{Lookup: func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
		return nil, 0, fmt.Errorf("%w: %w", cmp.Or(context.Cause(ctx), resolve.ErrServerFailure), of)
	}})
	for range 2 {
		_, err := r.Addr(t.Context(), "broken.test")
		require.ErrorIs(t, err, resolve.ErrServerFailure)
		dns := err.(*net.DNSError)
		require.True(t, dns.IsTemporary)
		require.False(t, dns.IsNotFound)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	require.ErrorIs(t, r.Ping(ctx), cause)
}

// TestContextsEndLookups cancels contexts, and lets deadlines pass.
func TestContextsEndLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNetwork(t, func(message) [][]byte { return nil }).resolver(resolve.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := r.LookupNetIP(ctx, "ip", "a.test")
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, err.(*net.DNSError).IsTimeout)
		require.NotErrorIs(t, err, resolve.ErrUnreachable)

		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		_, err = r.LookupNetIP(ctx, "ip", "b.test")
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, err.(*net.DNSError).IsTimeout)
	})
}

// TestServersThatDoNotAnswerAreAskedLast waits for the first one only once.
func TestServersThatDoNotAnswerAreAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, func(message) [][]byte { return nil })
		n.serve(two, sample.handler())
		r := n.resolver(resolve.Options{Timeout: 2 * time.Second}, one, two)
		for i, want := range []time.Duration{2 * time.Second, 0, 0} {
			begun := time.Now()
			_, err := r.Addr(t.Context(), fmt.Sprintf("%d.test", i))
			require.ErrorContains(t, err, "no such host")
			require.Equal(t, want, time.Since(begun))
		}
		n.questions()
		n.serve(two, nil)
		n.servers = map[string]handler{"udp " + one: sample.handler()}
		begun := time.Now()
		addr, err := r.Addr(t.Context(), "plain.test")
		require.NoError(t, err, "the second is down, and the first is back")
		require.Equal(t, "192.0.2.10", addr.String())
		require.Zero(t, time.Since(begun))
	})
}

// TestServersThatFailKeepTheirPlace: SERVFAIL for one name is an answer, and a domain may provoke it. So
// it does not change the order of the servers, while silence does.
func TestServersThatFailKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, zone{}.handler(func(m *message) { m.RCode = dnsmessage.RCodeServerFailure }))
		n.serve(two, sample.handler())
		asked := func(r *resolve.Resolver, host string) (servers string) {
			n.questions()
			_, _ = r.LookupNetIP(t.Context(), "ip", host)
			for _, q := range n.questions() {
				servers += q[:5]
			}
			return servers
		}
		r := n.resolver(resolve.Options{}, one, two)
		for i := range 3 {
			require.Contains(t, asked(r, fmt.Sprintf("%d.test", i)), "udp 1", "look-up %d", i)
		}
		r = n.resolver(resolve.Options{}, three, one, two) // nobody listens at the third
		asked(r, "a.test")
		require.NotContains(t, asked(r, "b.test"), "udp 3")
		require.Contains(t, asked(r, "c.test"), "udp 1", "it answers, if only that it failed")
	})
}

// TestAnAnswerDoesNotWaitForASilentKind has queries for one kind of address dropped on the way.
func TestAnAnswerDoesNotWaitForASilentKind(t *testing.T) {
	for _, dropped := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, func(q message) [][]byte {
				if q.Questions[0].Type == dropped {
					return nil
				}
				time.Sleep(100 * time.Millisecond)
				return sample.answer(q)
			})
			r := n.resolver(resolve.Options{})
			begun := time.Now()
			_, err := r.Addr(t.Context(), "both.test")
			require.NoError(t, err)
			require.Equal(t, 1100*time.Millisecond, time.Since(begun))
			begun = time.Now()
			_, err = r.Addr(t.Context(), "none.test")
			require.True(t, isNotFound(err))
			require.Equal(t, 1100*time.Millisecond, time.Since(begun))
			if dropped == dnsmessage.TypeAAAA {
				require.NoError(t, r.Ping(t.Context()), "the root has no address of either kind")
			}
		})
	}
}

// TestManyFindTheFailureOfAnOutage at once: one of them asks again, for all.
func TestManyFindTheFailureOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, zone{}.handler(func(m *message) { m.RCode = dnsmessage.RCodeServerFailure }))
		r := n.resolver(resolve.Options{})
		_, err := r.Addr(t.Context(), "a.test")
		require.ErrorIs(t, err, resolve.ErrServerFailure)
		require.Error(t, r.Ping(t.Context()))
		up := zone{"a.test.": {a("a.test.", "192.0.2.9", 3600)}}
		n.serve(one, func(q message) [][]byte { time.Sleep(time.Second); return up.answer(q) })
		require.NoError(t, r.Ping(t.Context()))
		n.questions()
		var wait sync.WaitGroup
		for range 200 {
			wait.Go(func() {
				_, err := r.Addr(t.Context(), "a.test")
				require.NoError(t, err)
			})
		}
		wait.Wait()
		require.Len(t, n.questions(), 2)
	})
}
